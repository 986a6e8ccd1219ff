"""A second checker, which stands alone: from a certificate's file to its value in 50 digits.

It is written from docs/theory.md and imports nothing but Python and mpmath, so that it may be copied out of the tree
and run by itself: `python -m second FILE`. The first checker works in intervals and rounds outward, so its value is at
least this one; a difference beyond the last digits is a mistake in one of the two.
"""

from ._checker import Confirmed as Confirmed
from ._checker import confirm as confirm
from ._checker import derive as derive
from ._checker import size as size
from ._floors import derive_floor as derive_floor
from ._numbers import Refused as Refused
