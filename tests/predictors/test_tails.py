"""Tails against exact rational sums and Arb's beta function, limits against the root, and where floats fail."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from boundcalc.predictors.tails import binomial_mass, binomial_tail, float_limit, limit


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


def drawn(cases: int, most: float) -> Iterator[tuple[int, int, float]]:
    """Random (errors, n) and a random number in (0, 1)."""
    rng = np.random.default_rng(7)
    for _ in range(cases):
        n = int(10 ** rng.uniform(0, most))
        yield min(n - 1, int(n * rng.random() ** rng.choice([1, 3, 8]))), n, float(rng.random())


def test_a_binomial_tail_is_arbs_incomplete_beta_function() -> None:
    extreme = [(0, 10**9, 1e-9), (5, 10**9, 1e-7), (10**9 - 1, 10**9, 0.99), (100, 1200, 0.9), (3, 2000, 1e-300)]
    for errors, n, p in [*extreme, *drawn(1000, 3.5)]:
        ball = binomial_tail(errors, n, p)
        beta = (
            (1 - arb(p)).beta_lower(n - errors, errors + 1, 1)
            if p * n > errors
            else 1 - arb(p).beta_lower(errors + 1, n - errors, 1)
        )
        assert ball.overlaps(beta)
        assert bool(ball.rad() <= arb(1e-11) * ball.mid())


def test_a_limit_is_the_root_rounded_up() -> None:
    """Certainly enough, and not 1e-9 too much: at every failure probability, also where the limit lies below errors/n."""
    below = 0
    for errors, n, share in [(0, 5, 0.5), (39, 40, 1e-6), (12, 1000, 0.95), *drawn(300, 6)]:
        log_delta = math.log(share) * (1 + errors % 40)
        found = limit(errors, n, log_delta)
        assert bool(binomial_tail(errors, n, found) <= arb(log_delta).exp())
        if found < 1:
            below += 1
            assert bool(binomial_tail(errors, n, found - 1e-9 * min(found, 1 - found)) > arb(log_delta).exp())
    assert below > 250
    assert limit(7, 7, arb(0.05).log()) == 1.0


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
