"""Plain floats as a number system; sums of logarithms; minima by golden section."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from boundcalc.base.system import Number as Number
from boundcalc.base.system import NumberSystem as NumberSystem

_CEIL_GUARD = 1 + 1e-12
"""Rounding may have pushed a quotient just below an integer; counting one more is safe, one less is not."""


class _FloatSystem:
    """Plain floats. Overflow raises `OverflowError`; the caller then uses intervals."""

    name = "float"
    pi = math.pi
    log = staticmethod(math.log)
    log1p = staticmethod(math.log1p)
    exp = staticmethod(math.exp)
    expm1 = staticmethod(math.expm1)
    sqrt = staticmethod(math.sqrt)
    lgamma = staticmethod(math.lgamma)
    minimum: Callable[..., Any] = staticmethod(min)
    maximum: Callable[..., Any] = staticmethod(max)
    number = staticmethod(float)

    @staticmethod
    def ceil(x: float) -> float:
        return math.ceil(x * _CEIL_GUARD)

    @staticmethod
    def lgamma_sum(x: float, count: int) -> float:
        return math.fsum([math.lgamma(x + i) for i in range(count)])


FLOAT = _FloatSystem()


def log_add(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


def log_sum(xs: list[float]) -> float:
    """Log of the sum of e^x."""
    top = max(xs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum([math.exp(x - top) for x in xs]))


_RATIO = (math.sqrt(5) - 1) / 2


def golden(cost: Callable[[float], Any], low: float, high: float, steps: int) -> float:
    """Where a cost that falls and then rises is nearly least between two ends: one look a step."""
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
