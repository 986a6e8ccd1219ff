"""Mixed pieces: the split as symbols, and stationarity that characterises the best one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy

from boundcalc.base import symbols as sym
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.symbols import eps
from boundcalc.formulas.symbolic import Allocation, allocation
from boundcalc.formulas.symbolic.allocation import MULTIPLIER
from boundcalc.formulas.symbolic.functions import expand_constants
from boundcalc.setting import Setting

SETTING = Setting.of(C=1.5, depth=1, seq_len=64, n_train=10**5, d=8)
MIXED = {"W_1": "T4", "W_V": "T2", "W_QK": "T1"}


def numbers(found: Allocation) -> tuple[Any, Any]:
    """Total cost and the vector of stationarity's left sides, as functions of the shares (and lambda)."""
    shares = [share.symbol for share in found.shares]
    total = sympy.lambdify(shares, expand_constants(found.covering_number.expr))
    slopes = sympy.lambdify([*shares, MULTIPLIER], [expand_constants(e.lhs) for e in found.stationarity])
    return total, slopes


def solved(found: Allocation, scale: float) -> list[float]:
    """The shares that meet the constraint and the conditions, by bisection in lambda and in each share."""
    gains = [float(share.gain) for share in found.shares]
    slopes = [sympy.lambdify(s.symbol, expand_constants(sympy.diff(s.cost, s.symbol))) for s in found.shares]

    def share(index: int, multiplier: float) -> float:
        low, high = -30.0, 10.0
        for _ in range(80):
            middle = (low + high) / 2
            falling = slopes[index](math.exp(middle)) + multiplier * gains[index] < 0
            low, high = (middle, high) if falling else (low, middle)
        return math.exp(low)

    low, high = -20.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        spent = sum(g * share(i, math.exp(middle)) for i, g in enumerate(gains))
        low, high = (middle, high) if spent > scale else (low, middle)
    return [share(i, math.exp(high)) for i in range(len(gains))]


def test_no_other_split_is_cheaper_than_the_stationary_one() -> None:
    found = allocation(SETTING, MIXED)
    assert [share.lemma for share in found.shares] == ["T1", "T2", "T4", "T1"]
    total, _ = numbers(found)
    gains = np.array([float(share.gain) for share in found.shares])
    best = solved(found, 0.05)
    assert float(np.dot(gains, best)) == pytest.approx(0.05, rel=1e-9)
    least = total(*best)
    rng = np.random.default_rng(1)
    for _ in range(200):
        weights = rng.dirichlet(np.ones(4)) if rng.random() < 0.5 else gains * best * np.exp(0.1 * rng.normal(size=4))
        other = 0.05 * weights / weights.sum() / gains
        assert total(*other) >= least * (1 - 1e-9)
    equal = 0.05 / 4 / gains  # Negative control: the comparison is not an identity.
    assert total(*equal) > 1.01 * least


def test_power_costs_alone_give_back_a1() -> None:
    found = allocation(SETTING)
    gains = [share.gain for share in found.shares]
    weights = [sympy.simplify(share.cost * share.symbol**2) for share in found.shares]
    total = sum((w * g**2) ** sympy.Rational(1, 3) for w, g in zip(weights, gains, strict=True))
    best = [
        eps * (w / g) ** sympy.Rational(1, 3) / total for w, g in zip(weights, gains, strict=True)
    ]  # A1: eps_j in proportion to (A_j/kappa_j)^(1/3)
    at = {share.symbol: value for share, value in zip(found.shares, best, strict=True)}
    multipliers = [
        sympy.solve(equation.subs(at), MULTIPLIER)[0].subs(eps, sympy.Rational(1, 10)).evalf(20)
        for equation in found.stationarity
    ]
    assert all(abs(value / multipliers[0] - 1) < 1e-15 for value in multipliers)
    spent = found.constraint.lhs.subs(at).subs(eps, sympy.Rational(1, 10)).evalf(20)
    assert abs(spent - sympy.Rational(1, 10)) < 1e-15


def test_presets_with_offsets_and_tables_have_an_allocation() -> None:
    found = allocation(Setting.of("bert", C=sym.C, seq_len=sym.T, n_train=sym.m, depth=1, normalisation="ball"))
    lemmas = {share.key: share.lemma for share in found.shares}
    assert lemmas["embedding"] == "T10"
    assert lemmas["b_V[0]"] == "T8"
    assert lemmas["W_1[0]"] == "T2"
    assert "lambda" in found.text()
    assert found.latex().count("{") == found.latex().count("}")


def test_refusals_name_the_piece_and_what_covers_it() -> None:
    with pytest.raises(Unsupported, match=r"T1 for the piece W_1\[0\] needs .*Lemmas that cover it: .*T2"):
        allocation(SETTING, {"W_1": "T1"})
    with pytest.raises(InvalidSetting, match="no covering lemma 'T99'"):
        allocation(SETTING, {"W_1": "T99"})
    with pytest.raises(InvalidSetting, match="depth as a number"):
        allocation(Setting.of(depth=sym.depth))
