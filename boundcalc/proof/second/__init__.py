"""A second checker: the value of a certificate in 50 digits, written from docs/theory.md alone.

It shares no formula with the first: only the certificate and the setting as data. The first works in intervals and rounds
outward, so its value is at least this one; a difference beyond the last digits is a mistake in one of the two.
"""

from boundcalc.proof.second.value import log_value as log_value
