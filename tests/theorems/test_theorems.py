"""Theorem objects: their numbers against the checker and against written-out sums, their uses, their refusals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

import boundcalc.theorems as theorems
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.latent import excess_risk, learning_gap
from boundcalc.statements.network import Network
from boundcalc.theorems import Policy

POINT: dict[str, Any] = {"C": 1.5, "m": 10**7, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}


def test_trauger_is_what_the_checker_proves() -> None:
    C, K = 1.5, 4.0
    norms = Norms(budgets={kind: Budget(op=C, one_one=K) for kind in ("W_QK", "W_V", "W_1", "readout")})
    setting = Setting.of(norms=norms, depth=3, d=64, heads=2, n_train=10**9, margin=1.0)
    policy = Policy("T3 alone", "", frozenset({"T3"}), "closed")
    (found,) = Search(setting, policy).gaps()
    checked = check(found.certificate).log_value
    formula = theorems.trauger2024.gap.value(C=C, K=K, m=10**9, depth=3, d=64, heads=2, gamma=1, delta=0.05)
    assert math.log(formula) == pytest.approx(checked, rel=1e-12)


@pytest.mark.parametrize("depth", [1, 4])
def test_x5_in_symbolic_depth_is_at_least_the_sum(depth: int) -> None:
    """X5 of the calculus on the pieces of a network with numbers; equal for one block, a little less for more."""
    setting = Setting.of(C=1.5, depth=depth, d=16, heads=2, n_train=10**7, margin=1.0)
    dimensions: list[float] = []
    stretches: list[float] = []
    for piece in Network(setting, FLOAT).pieces:
        (member,) = piece.members
        target = next(t for t in member.targets if t.kind in ("map", "query"))
        dimensions.append(member.multiplicity * target.size)
        stretches.append(2 * piece.gain * target.radius * target.norms.op)
    inverse = float(mpmath.log(20))
    want = learning_gap(FLOAT, dimensions, stretches, inverse, 10**7)
    values = POINT | {"depth": depth}
    got = theorems.zhang2022.gap.value(**values)
    assert want <= got * (1 + 1e-12)
    assert got == pytest.approx(want, rel=1e-12 if depth == 1 else 0.05)
    excess = theorems.zhang2022.formula("excess").value(**values)
    assert excess == pytest.approx(excess_risk(FLOAT, got, inverse, 10**7), rel=1e-12)
