"""Which answers are right: the one place that compares scores with a margin; intervals of the share of errors."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.base.errors import InvalidSetting


def wrong(scores: Any, gamma: float = 0.0) -> Any:
    """Which answers do not score above gamma, elementwise (NumPy or torch). NaN is above nothing."""
    return ~(scores > gamma)


def count_wrong(scores: Any, n: int, gamma: float = 0.0) -> int:
    """How many of n answers do not score above gamma; refuses scores that are not one number per example."""
    if tuple(scores.shape) != (n,):
        raise InvalidSetting(f"scores must be one number per example: need {(n,)}, got {tuple(scores.shape)}")
    return int(wrong(scores, gamma).sum())


def clopper_pearson(errors: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of a binomial share."""
    from scipy.special import betaincinv  # scipy.stats would take two seconds to load

    tail = (1 - level) / 2
    low = 0.0 if errors == 0 else float(betaincinv(errors, n - errors + 1, tail))
    high = 1.0 if errors == n else float(betaincinv(errors + 1, n - errors, 1 - tail))
    return low, high


def hoeffding(mean: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """An interval of the mean of values in [0, 1]."""
    half = math.sqrt(math.log(2 / (1 - level)) / (2 * n))
    return max(0.0, mean - half), min(1.0, mean + half)
