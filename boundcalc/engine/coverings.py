"""What covers of one matrix cost, lemma by lemma, beside the volumes that none can undercut: values of the checker."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from boundcalc.base.intervals import INTERVAL, lower_float, upper_float
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.uniform import volume_floor
from boundcalc.statements.targets import MatrixNorms, Points, Target

BUDGETS: Mapping[str, str] = {
    "T4r": "op",
    "T4f": "F",
    "T4v": "(2,1)",
    "T12": "F",
    "T13": "(2,1)",
    "T14": "nuclear",
}
"""Covers in the spectral metric, and the norm whose budget each is for."""

SCALES = (0.3, 0.1, 0.05, 0.03, 0.01, 0.001)


@dataclass(frozen=True, slots=True)
class Coverings:
    """Log counts of covers at one eps, over the number of entries.

    Attributes:
        eps: over the radius of the input and the budget.
        counts: by lemma, rounded up.
        floor: what volumes leave, rounded down; below 0 where they say nothing.
    """

    eps: float
    counts: Mapping[str, float]
    floor: float


def coverings(d: int, k: int, scales: Sequence[float] = SCALES) -> Iterator[Coverings]:
    """Covers of d x k matrices of which each lemma's norm is at most 1, on points of norm at most 1."""
    one = INTERVAL.number(1)
    target = Target("map", d, k, one, MatrixNorms(one, one, one, one, one, one, min(d, k)), Points(1))
    for eps in scales:
        y = 1 / INTERVAL.number(eps)
        counts: dict[str, float] = {}
        for name in BUDGETS:
            lemma = LEMMAS[name]
            params = lemma.params(-math.log(eps), target, 1)
            counts[name] = upper_float(lemma.sharp(INTERVAL, y, target, one, params) / target.size)
        yield Coverings(eps, counts, lower_float(volume_floor(INTERVAL, d, k, INTERVAL.number(eps)) / target.size))
