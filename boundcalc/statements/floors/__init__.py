"""Floors: what no bound of the gap can go below, by explicit networks of the class (F0 to F3, R1, N1).

`counting` turns two values into a floor; `edelman` and `residual` are the constructions, each with its values in any
number system; docs/theory.md has the proofs, tests/soundness/members.py builds the networks.
"""

from __future__ import annotations

from boundcalc.statements.floors._edelman import A, B, C, D, E
from boundcalc.statements.floors._residual import N
from boundcalc.statements.floors.base import Construction

Construction.KINDS.update({kind.name: kind for kind in (A, B, C, D, E, N)})
