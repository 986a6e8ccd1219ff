"""Means with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

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
