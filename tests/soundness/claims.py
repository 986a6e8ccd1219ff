"""What a covering lemma of the package claims, as a plain function of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.targets import Kind, Points, Target, matrix_norms

BUDGETS = {
    "T1": Budget(fro=1.0),
    "T2": Budget(two_one=1.0),
    "T3": Budget(one_one=1.0),
    "T13": Budget(two_one=1.0),
    "T14": Budget(schatten=(1.0, 1.0)),
}


def subject(lemma: str, d: int, k: int, norms: Budget | None = None, kind: Kind = "map") -> Target:
    """A d x k target on points of radius 1, its budget 1 in the lemma's norm unless others are given."""
    known = matrix_norms(FLOAT, norms or BUDGETS.get(lemma, Budget(op=1.0)), d, k)
    assert known is not None
    return Target(kind, d, k, 1.0, known, Points(1))


def claim(
    lemma: str,
    y: float,
    d: int = 1,
    k: int = 1,
    n: int = 1,
    *,
    kind: Kind = "map",
    params: Mapping[str, float] | None = None,
    norms: Budget | None = None,
) -> float:
    """Log-count at eps = reach/y, with the optimiser's parameters unless others are given (0 once y <= 1)."""
    if y <= 1:
        return 0.0
    rule = LEMMAS[lemma]
    target = subject(lemma, d, k, norms, kind)
    chosen = rule.params(math.log(y), target, n) if params is None else params
    assert rule.check_params(chosen) is None
    return rule.sharp(FLOAT, y, target, n, chosen)
