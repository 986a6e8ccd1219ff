"""Means, quantiles and failure counts with 95% intervals, and rates fitted to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from boundcalc.base.confidence import clopper_pearson
from boundcalc.base.errors import InvalidSetting

_Array = NDArray[Any]
_CONFIDENCE = 0.95
_UPPER = (1 + _CONFIDENCE) / 2
"""Where the upper end of an interval stands."""


@dataclass(frozen=True)
class Interval:
    """A number between two ends."""

    value: float
    low: float
    high: float

    def __iter__(self) -> Iterator[float]:
        """The value, then its ends."""
        return iter((self.value, self.low, self.high))

    def to_json(self) -> list[float | None]:
        """[value, low, high]; an infinite end is null."""
        return [x if math.isfinite(x) else None for x in self]

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_interval(x: Any) -> Interval:
    """A mean with Student's interval."""
    values = np.asarray(x, dtype=float)
    mean = float(values.mean())
    half = float(stdtrit(len(values) - 1, _UPPER) * values.std(ddof=1) / math.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)


def quantile_interval(x: Any, level: float) -> Interval:
    """A quantile with the order statistics that enclose it (distribution-free); an end may be infinite."""
    values = np.sort(np.asarray(x, dtype=float))
    n = len(values)
    from scipy.stats import binom  # slow to load, and seldom needed

    low = int(binom.ppf(1 - _UPPER, n, level)) - 1
    high = int(binom.ppf(_UPPER, n, level))
    return Interval(
        float(np.quantile(values, level)),
        float(values[low]) if low >= 0 else -math.inf,
        float(values[high]) if high < n else math.inf,
    )


def share_interval(failures: int, n: int) -> Interval:
    """A share with Clopper and Pearson's exact interval."""
    return Interval(failures / n, *clopper_pearson(failures, n, _CONFIDENCE))


def fit_slope(
    x: Sequence[float] | _Array, y: Sequence[float] | _Array, errors: Sequence[float] | _Array | None = None
) -> Interval:
    """Slope of a straight line by (weighted) least squares, with its interval.

    Given standard errors, the interval is widened where the points scatter by more than they allow.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(a) < 3 or len(set(a.tolist())) < 2:
        raise InvalidSetting(f"a slope with an interval needs at least three points, got {len(a)}")
    weights = np.ones(len(a)) if errors is None else 1 / np.maximum(np.asarray(errors, dtype=float), 1e-300) ** 2
    centre = float((weights * a).sum() / weights.sum())
    scatter = float((weights * (a - centre) ** 2).sum())
    slope = float((weights * (a - centre) * b).sum()) / scatter
    residual = b - float((weights * b).sum() / weights.sum()) - slope * (a - centre)
    chi = float((weights * residual**2).sum()) / (len(a) - 2)
    variance = (chi if errors is None else max(1.0, chi)) / scatter
    half = float(stdtrit(len(a) - 2, _UPPER)) * math.sqrt(variance)
    return Interval(slope, slope - half, slope + half)


def fit_rate(lengths: Sequence[float], means: Sequence[Interval]) -> Interval:
    """The power r of error ~ L^r, from means with intervals."""
    errors = [(m.high - m.low) / 2 / 1.96 / m.value for m in means]
    return fit_slope(np.log(lengths), np.log([m.value for m in means]), errors)
