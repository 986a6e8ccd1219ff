"""A1: the best split of an error among pieces whose costs are powers, in closed form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers import CoverLemma
from boundcalc.statements.network import Network, Piece


def _piece_coefficient(ns: NumberSystem, piece: Piece, samples: Any, lemmas: Collection[CoverLemma]) -> Number:
    """The A with cost <= A/share^2 for a piece: reach^2 times the least cost at y = 1, member by member.

    The closed cost of a quadratic lemma grows at most like y^2 beyond y = 1: its value there speaks for all scales.
    """
    total = ns.number(0)
    for member in piece.members:
        found = [
            lemma.reach(target) ** 2 * lemma.closed(ns, ns.number(1), target, target.points.count(samples))
            for target in member.targets
            for lemma in lemmas
            if lemma.quadratic and lemma.applies(target) is None
        ]
        if not found:
            names = ", ".join(lemma.name for lemma in lemmas)
            raise Unsupported(
                Refusal("a closed form", f"the piece {piece.key}, which none of {names} covers", "such a cover")
            )
        total = total + member.multiplicity * ns.minimum(*found)
    return total * piece.gain**2


def least_split(ns: NumberSystem, coefficients: Sequence[Number]) -> Number:
    """A1: the least sum of A_j k_j^2 / e_j^2 over shares that sum to 1, of such coefficients: (sum of cube roots)^3."""
    third = ns.number(1) / 3
    total = ns.number(0)
    for coefficient in coefficients:
        total = total + coefficient**third
    return total**3


def capacity(ns: NumberSystem, lowered: Network, samples: Any, lemmas: Collection[CoverLemma]) -> Number:
    """A4: C_F with log N(e) <= C_F/e^2 on the loss."""
    return least_split(ns, [_piece_coefficient(ns, piece, samples, lemmas) for piece in lowered.pieces])
