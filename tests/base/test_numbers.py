"""Floats against intervals where floats take a short way."""

from __future__ import annotations

import random

import pytest

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT


def test_sums_of_gamma_functions() -> None:
    """Of few and of many terms, from near 0 to 10^9."""
    rng = random.Random(5)
    for _ in range(300):
        x, count = 10 ** rng.uniform(-2, 9), int(10 ** rng.uniform(0, 3.3))
        exact = INTERVAL.lgamma_sum(x, count)
        assert abs(float(exact - FLOAT.lgamma_sum(x, count))) <= 2e-14 * max(1.0, abs(float(exact)))


@pytest.mark.parametrize("count", [0, 1, 23, 24, 25, 26, 60])
@pytest.mark.parametrize("x", [0.5, 1.0, 16.0, 16.5, 17.0, 40.0])
def test_where_the_short_way_begins(x: float, count: int) -> None:
    term_by_term = sum(FLOAT.lgamma(x + i) for i in range(count))
    assert FLOAT.lgamma_sum(x, count) == pytest.approx(term_by_term, rel=1e-14, abs=1e-14)
