"""The least of a function of one number that falls and then rises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_RATIO = (math.sqrt(5) - 1) / 2


def golden(cost: Callable[[float], Any], low: float, high: float, steps: int) -> float:
    """Where a cost is nearly least between two ends, by golden section: one look a step."""
    a, b = high - _RATIO * (high - low), low + _RATIO * (high - low)
    left, right = cost(a), cost(b)
    for _ in range(steps):
        if left < right:
            high, b, right = b, a, left
            a = high - _RATIO * (high - low)
            left = cost(a)
        else:
            low, a, left = a, b, right
            b = low + _RATIO * (high - low)
            right = cost(b)
    return (low + high) / 2
