"""Inequalities that steps of derivations are based on, at random points in ball arithmetic.

Each is also tried with 99% or half of its right side, which must be noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest
import sympy
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.lab.latent.bounds import self_normalised_error
from boundcalc.setting import Setting
from boundcalc.statements.comparison.closed import closed, expected_gap
from boundcalc.statements.comparison.network import network_of
from boundcalc.theorems import THEOREMS, symbols
from boundcalc.theorems._algebra import Expr
from boundcalc.theorems._code import at
from boundcalc.theorems._formula import Formula

Trial = Callable[[Random], tuple[arb, arb]]
_SLACK = arb("1e-25")


def holds(less: arb, more: arb) -> bool:
    return bool(less <= more + _SLACK * abs(more))


def random_point(formula: Formula, random: Random) -> dict[str, arb]:
    """A random admissible value of every input."""
    point: dict[str, arb] = {}
    for symbol in formula.inputs:
        low, high = symbols.BY_NAME[symbol.name].typical
        value = low * (high / low) ** random.random() if low > 0 else random.uniform(low, high)
        point[symbol.name] = INTERVAL.number(round(value) if symbol.is_integer else value)
    return point


def value_at(formula: Formula, point: dict[str, arb]) -> arb:
    """A formula at enclosures."""
    return at(formula, {symbol: point[symbol.name] for symbol in formula.inputs})


def _best_error(random: Random) -> tuple[arb, arb]:
    """X3 at the best of some regularisations is at most its form for the best one, which the grid hardly misses."""
    best, plain = THEOREMS["X3"].formula("best_error"), THEOREMS["X3"].formula("error")
    point = random_point(best, random)
    grid = [value_at(plain, {**point, "rho": arb(10) ** (arb(i) / 8)}) for i in range(-64, 17)]
    return INTERVAL.minimum(*grid), value_at(best, point) * arb("1.05")


def _sharp_is_no_larger(random: Random) -> tuple[arb, arb]:
    """X4 with Bennett's psi, at the same tilt, is at most the formula."""
    formula = THEOREMS["X4"].formula("error")
    point = random_point(formula, random)
    r, ell = (2 / point["temperature"]).exp(), (2 / point["delta"]).log()
    second, spread = (1 + r) ** 2 / (4 * r), r**2 / (2 * r - 1)
    tilt = (2 * ell / (point["L"] * spread)).sqrt()
    sharp = point["M"] * self_normalised_error(INTERVAL, point["L"], second, spread, r, ell, tilt)
    value = value_at(formula, point)
    return (INTERVAL.minimum(sharp, 2 * point["M"]) if sharp.is_finite() else arb(0)), value


def comparison_written_out(random: Random) -> tuple[arb, arb]:
    """K1 of the calculus against its formula, both ways at once, at a random depth."""
    depth, heads = random.randint(1, 4), random.choice((1, 2))
    C, gamma, m = random.uniform(0.05, 1 / heads), random.uniform(0.05, 1), random.randint(10, 10**6)
    setting = Setting.of(depth=depth, heads=heads, C=C, margin=gamma, n_train=m, d=8)
    network = network_of(INTERVAL, setting)
    mean = expected_gap(INTERVAL, closed(INTERVAL, network), 1 / INTERVAL.number(gamma), arb(m))
    left = mean + ((1 / arb("0.05")).log() / (2 * m)).sqrt()
    formula = THEOREMS["K1"].formula("gap", depth=depth)
    right = formula.ball(C=C, heads=heads, m=m, gamma=gamma, delta=sympy.Rational(1, 20))
    return left, right * (1 + arb("1e-14"))


def carried_over(random: Random) -> tuple[arb, arb]:
    """X6 of the calculus against its formula, both ways at once."""
    formula = THEOREMS["X6"].formula("any_head_error")
    point = random_point(formula, random)
    error = (point["head"] * point["e_pre"].sqrt() + point["missed"] * point["spread"]) ** 2
    return error, value_at(formula, point) * (1 + arb("1e-12"))


def _root_of_the_quadratic(random: Random) -> tuple[arb, arb]:
    """X4's t_0 solves q_2 t^2 - 2 q_1 t + q_0 = 0."""
    formula = THEOREMS["X4"].formula("error")
    point = random_point(formula, random) | {"L": arb(10**6)}
    values: dict[Expr, arb] = {symbol: point[symbol.name] for symbol in formula.inputs}
    at(formula, values)
    part = {str(symbol): value for symbol, value in values.items()}
    t = part["tau_0"]
    return part["q_2"] * t**2 + part["q_0"], 2 * part["q_1"] * t


def _plain_error(random: Random) -> tuple[arb, arb]:
    """X4's plain form is its numerator over the least denominator."""
    formula = THEOREMS["X4"].formula("plain_error")
    point = random_point(formula, random)
    weight = (1 / point["temperature"]).exp()
    numerator = 2 * point["M"] * weight * (2 * (2 / point["delta"]).log() / point["L"]).sqrt()
    return numerator / (1 / weight), value_at(formula, point)


TRIALS: Mapping[str, tuple[Trial, int, float]] = {
    "X3 best error": (_best_error, 20, 0.5),
    "X4 error": (_sharp_is_no_larger, 60, 0.5),
    "X4 root": (_root_of_the_quadratic, 20, 0.99),
    "X4 plain error": (_plain_error, 20, 0.99),
    "X6 any head": (carried_over, 20, 0.99),
    "K1": (comparison_written_out, 20, 0.99),
}


@pytest.mark.parametrize("name", TRIALS)
def test_an_inequality_holds_at_random_points_and_less_would_not(name: str) -> None:
    trial, points, less = TRIALS[name]
    random = Random(0)
    found = [tuple(map(arb, trial(random))) for _ in range(points)]
    assert all(left.is_finite() and right.is_finite() for left, right in found)
    assert all(holds(left, right) for left, right in found)
    assert any(not holds(left, right * less) for left, right in found), "this would not notice a smaller right side"
