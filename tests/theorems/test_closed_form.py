"""The closed form in symbolic depth against sums written out block by block, and against the checked numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath
import pytest
import sympy
from mpmath import mpf

from boundcalc import evaluate
from boundcalc.setting import Setting
from boundcalc.statements.gap import CLOSED_OFFSET
from boundcalc.theorems import edelman2022
from boundcalc.theorems import symbols as sym
from boundcalc.theorems.formula import Formula

POINT: dict[str, Any] = {"T": 512, "m": 10**6, "d": 64, "heads": 1, "delta": 0.05, "gamma": 1}


def lam(k: Any, N: Any) -> Any:
    """T2's constant, from its statement: rho log((2Nk+1) rho^2/(rho-1)) at rho = 1 + 1/log(2Nk+1)."""
    wide = 2 * mpf(N) * k + 1
    rho = 1 + 1 / mpmath.log(wide)
    return rho * mpmath.log(wide * rho**2 / (rho - 1))


def direct_capacity(C: Any, D: int, T: int, n: int, d: int, H: int, gamma: Any) -> Any:
    """A1's sum over every matrix of D blocks of radius 1, amplifications multiplied out one by one."""
    C, gamma = mpf(C), mpf(gamma)
    lipschitz_of_block = H * C * (C + mpmath.sqrt(1 + C**2)) * C
    total = (mpmath.log(2 * n + 1) * C**2 / gamma**2) ** (mpf(1) / 3)
    amplification = C / gamma
    for block in reversed(range(D)):
        rows = 1 if block == D - 1 else T
        width = lam(d, n * rows)
        score = min(mpmath.log(2 * mpf(n) * rows * T + 1), width)
        for count, cost, gain in (
            (1, width, amplification),  # W_1
            (H, width, amplification * C * H),  # W_V of every head, through W_1
            (H, score, amplification * C * C * H),  # W_QK of every head, through W_V and W_1
        ):
            total += (count * cost * C**2 * gain**2) ** (mpf(1) / 3)
        amplification *= lipschitz_of_block
    return total**3


def direct_gap(capacity: Any, m: int, delta: Any) -> Any:
    k = mpf(17) / 32 * mpmath.e * mpmath.sqrt(2 * capacity / m)
    chain = 2 * k * (mpf(str(CLOSED_OFFSET)) + max(mpf(0), mpmath.log(1 / (2 * k))))
    return chain + mpmath.sqrt(mpmath.log(1 / mpf(str(delta))) / (2 * mpf(m)))


def value(formula: Formula, **values: Any) -> Any:
    """The formula as an mpmath number."""
    return mpf(formula.ball(**values).mid().str(40, radius=False))


def agree(a: Any, b: Any, tolerance: float = 1e-12) -> bool:
    return bool(abs(a - b) <= tolerance * abs(b))


def budget_with_ratio(ratio: float) -> Any:
    """The C at which one block (one head) multiplies errors by the given ratio, to forty digits."""
    with mpmath.workdps(60):
        return mpmath.findroot(lambda C: C**2 * (C + mpmath.sqrt(1 + C**2)) - ratio, mpf("0.7"))


@pytest.mark.parametrize("depth", [1, 2, 5, 40])
@pytest.mark.parametrize("ratio", [0.03, 0.999999, 1, 1.000001, 3.7, 60.0])
def test_symbolic_depth_is_the_sum_over_blocks(ratio: float, depth: int) -> None:
    with mpmath.workdps(40):
        C = budget_with_ratio(ratio)
        values = {"C": sympy.Rational(str(C)), "depth": depth, **POINT}
        expected = direct_capacity(C, depth, 512, 17 * 10**6, 64, 1, 1)
        assert agree(value(edelman2022.gap, **values), direct_gap(expected, 10**6, 0.05))


def test_the_direct_sum_can_tell_a_wrong_formula() -> None:
    """Negative control: the sum over blocks, one block short, is not the direct sum."""
    expected = direct_gap(direct_capacity(1, 5, 512, 17 * 10**6, 64, 1, 1), 10**6, 0.05)
    assert agree(value(edelman2022.gap, C=1, depth=5, **POINT), expected)
    assert not agree(value(edelman2022.gap, C=1, depth=4, **POINT), expected)


SETTINGS: list[dict[str, Any]] = [
    {"C": 1.0, "depth": 2, "seq_len": 512, "n_train": 10**6},
    {"C": 1.7, "depth": 12, "seq_len": 1000, "n_train": 10**9, "d": 128, "heads": 4},
    {"C": 1.0, "depth": 1, "seq_len": 16, "n_train": 10**12, "margin": 0.5, "delta": 0.01},
    {"C": 2.5, "depth": 5, "seq_len": 1, "n_train": 50, "d": 2},
]


def inputs(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the formula at a setting."""
    margin = Setting.of(**values).sample.margin
    named = {sym.ALIASES.get(name, name): number for name, number in values.items()}
    return {"d": 64, "heads": 1, "delta": 0.05, "gamma": margin, **named}


@pytest.mark.parametrize("values", SETTINGS)
def test_the_checked_numbers_are_the_formulas(values: Mapping[str, Any]) -> None:
    checked = evaluate(Setting.of(**values), "closed")
    assert agree(mpmath.exp(checked.certificate.log_value), value(edelman2022.gap, **inputs(values)), 1e-12)


@pytest.mark.parametrize("C", [0.2, 0.6, 0.95, 1.0, 3.0])
def test_small_budgets_shrink_the_activations_which_the_formula_ignores(C: float) -> None:
    values = {"C": C, "depth": 3, "seq_len": 100, "n_train": 10**7}
    checked = mpmath.exp(evaluate(Setting.of(**values), "closed").certificate.log_value)
    balls = value(edelman2022.gap, **inputs(values))
    assert balls >= checked * (1 - 1e-12)
    if C >= 1:
        assert agree(balls, checked)
