"""Tails against exact rational sums, and where floats fail."""

import math
from fractions import Fraction

import pytest
from flint import arb

from boundcalc.predictors.tails import (
    binomial_mass,
    binomial_tail,
    float_limit,
    float_log_tail,
    limit,
)


def exact_tail(errors: int, n: int, p: Fraction) -> Fraction:
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(errors + 1)), Fraction(0))


def holds(ball: arb, exact: Fraction) -> bool:
    return ball.overlaps(arb(exact.numerator) / arb(exact.denominator)) and float(ball.rad()) <= 1e-9 * float(
        ball.mid()
    )


@pytest.mark.parametrize("n", [1, 2, 7, 40, 130])
def test_a_binomial_tail_encloses_the_exact_sum(n: int) -> None:
    for p in (Fraction(1, 1024), Fraction(1, 8), Fraction(1, 2), Fraction(15, 16), Fraction(1023, 1024)):
        for errors in range(0, n, max(1, n // 9)):
            assert holds(binomial_tail(errors, n, float(p)), exact_tail(errors, n, p))
            mass = exact_tail(errors, n, p) - (exact_tail(errors - 1, n, p) if errors else 0)
            assert holds(binomial_mass(errors, n, float(p)), mass)


@pytest.mark.parametrize(("errors", "n"), [(0, 5), (3, 40), (39, 40), (12, 1000), (70, 100)])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_a_limit_is_the_least_that_is_proved(errors: int, n: int, delta: float) -> None:
    found = limit(errors, n, arb(delta).log())
    assert exact_tail(errors, n, Fraction(found)) <= Fraction(delta)
    assert exact_tail(errors, n, Fraction(found * (1 - 1e-9))) > Fraction(delta)


def test_all_wrong_gives_one() -> None:
    assert limit(7, 7, arb(0.05).log()) == 1.0


def test_the_float_twin_agrees() -> None:
    for errors, n, p in ((0, 10, 0.3), (5, 100, 0.2), (80, 100, 0.2), (400, 1000, 0.5)):
        assert float_log_tail(errors, n, p) == pytest.approx(float(binomial_tail(errors, n, p).log()), rel=1e-9)


def test_tails_far_below_every_float_are_numbers() -> None:
    """At 3,000 bits the logarithm of a cumulative float is -inf, and a limit made from it is too small: it saturates."""
    scipy_stats = pytest.importorskip("scipy.stats")
    errors, n, log_delta = 100, 1200, math.log(0.05) - 3383 * math.log(2)
    saturated = 0.5
    while math.isfinite(scipy_stats.binom.logcdf(errors, n, saturated)):
        saturated += 0.005
    found = limit(errors, n, log_delta)
    assert saturated < 0.7 < 0.9 < found < 1  # what inverting logcdf would have certified, and what is true
    assert float(binomial_tail(errors, n, found).log()) <= log_delta
    assert float_limit(errors, n, log_delta) == pytest.approx(found, rel=1e-9)
