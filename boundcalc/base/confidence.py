"""Intervals of measured errors that hold at any sample size."""

from __future__ import annotations

import math


def clopper_pearson(wrong: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of a binomial share."""
    from scipy.special import betaincinv  # scipy.stats would take two seconds to load

    tail = (1 - level) / 2
    low = 0.0 if wrong == 0 else float(betaincinv(wrong, n - wrong + 1, tail))
    high = 1.0 if wrong == n else float(betaincinv(wrong + 1, n - wrong, 1 - tail))
    return low, high


def hoeffding(mean: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """An interval of the mean of values in [0, 1]."""
    half = math.sqrt(math.log(2 / (1 - level)) / (2 * n))
    return max(0.0, mean - half), min(1.0, mean + half)
