"""The least of a function of one number that falls and then rises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_RATIO = (math.sqrt(5) - 1) / 2


def golden(cost: Callable[[float], Any], low: float, high: float, steps: int) -> float:
    """Where a cost is nearly least between two ends, by golden section."""
    for _ in range(steps):
        a, b = high - _RATIO * (high - low), low + _RATIO * (high - low)
        low, high = (low, b) if cost(a) < cost(b) else (a, high)
    return (low + high) / 2
