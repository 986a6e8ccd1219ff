"""Floors: what no bound of the gap can go below, by explicit networks of the class (F0 to F3, R1, N1).

`counting` turns two values, or a curve of them, into a floor; `a` to `e` and `n` are the constructions, each with its
values in any number system and its members as explicit weights; docs/theory.md has the proofs.
"""

from __future__ import annotations

from boundcalc.statements.floors.a import A
from boundcalc.statements.floors.b import B
from boundcalc.statements.floors.base import Construction
from boundcalc.statements.floors.c import C
from boundcalc.statements.floors.d import D
from boundcalc.statements.floors.e import E
from boundcalc.statements.floors.n import N

CONSTRUCTIONS: dict[str, type[Construction]] = {each.name: each for each in (A, B, C, D, E, N)}
"""Every construction by name."""
Construction.KINDS = CONSTRUCTIONS
