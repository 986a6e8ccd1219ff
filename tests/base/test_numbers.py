"""Floats against intervals where terms add up."""

from __future__ import annotations

import math
import random

from flint import arb

from boundcalc.base.intervals import INTERVAL, lower_float, upper_float
from boundcalc.base.numbers import FLOAT


def test_sums_of_gamma_functions() -> None:
    """Of few and of many terms, from near 0 to 10^9."""
    rng = random.Random(5)
    for _ in range(300):
        x, count = 10 ** rng.uniform(-2, 9), int(10 ** rng.uniform(0, 3.3))
        exact = INTERVAL.lgamma_sum(x, count)
        assert abs(float(exact - FLOAT.lgamma_sum(x, count))) <= 2e-14 * max(1.0, abs(float(exact)))


def test_an_enclosure_of_nothing_known_is_everything() -> None:
    assert upper_float(arb("nan")) == math.inf
    assert lower_float(arb("nan")) == -math.inf
