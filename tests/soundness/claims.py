"""What a covering lemma of the package claims, in floats and in intervals, as plain functions of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.targets import Kind, Points, Target, matrix_norms

BUDGETS = {
    "T1": Budget(fro=1.0),
    "T2": Budget(two_one=1.0),
    "T3": Budget(one_one=1.0),
    "T4v": Budget(two_one=1.0),
    "T4f": Budget(fro=1.0),
    "T12": Budget(fro=1.0),
    "T13": Budget(two_one=1.0),
    "T14": Budget(schatten=(1.0, 1.0)),
}


def subject(lemma: str, d: int, k: int, norms: Budget | None, kind: Kind, system: str = "float") -> Target:
    """A d x k target on points of radius 1, its budget 1 in the lemma's norm unless others are given."""
    ns = FLOAT if system == "float" else INTERVAL
    known = matrix_norms(ns, norms or BUDGETS.get(lemma, Budget(op=1.0)), d, k)
    assert known is not None
    return Target(kind, d, k, ns.number(1.0), known, Points(1))


def claim(
    lemma: str,
    y: float,
    d: int = 1,
    k: int = 1,
    n: int = 1,
    *,
    system: str = "float",
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
    if system == "float":
        return rule.sharp(FLOAT, y, target, n, chosen)
    exact = subject(lemma, d, k, norms, kind, system)
    return upper_float(rule.sharp(INTERVAL, arb(y), exact, arb(n), chosen))


def closed_claim(lemma: str, y: float, d: int, k: int, n: int = 1) -> float:
    """The closed form, in floats."""
    return LEMMAS[lemma].closed(FLOAT, y, subject(lemma, d, k, None, "map"), n)
