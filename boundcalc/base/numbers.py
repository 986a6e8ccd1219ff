"""Number systems: what a formula may use, besides ordinary operators; and plain floats as one.

Every formula is written once, so that the number a sweep computes, the interval the checker trusts and the formula that
`closed_form` derives cannot drift apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

Number = Any
"""A float, `flint.arb` or SymPy expression: whatever its `NumberSystem` works in."""


class NumberSystem(Protocol):
    """The functions a formula may use besides + - * / ** and integer constants.

    `number`: a float or integer, exactly. `log1p` and `expm1`: log(1 + x) and exp(x) - 1, accurate near 0. `ceil`: an
    integer that is at least x, guarded upward where x carries rounding error. `lgamma_sum`: lgamma(x) + lgamma(x + 1)
    + ..., so many terms.
    """

    @property
    def name(self) -> str: ...
    @property
    def pi(self) -> Number: ...
    def number(self, x: float, /) -> Number: ...
    def log(self, x: Number, /) -> Number: ...
    def log1p(self, x: Number, /) -> Number: ...
    def exp(self, x: Number, /) -> Number: ...
    def expm1(self, x: Number, /) -> Number: ...
    def sqrt(self, x: Number, /) -> Number: ...
    def ceil(self, x: Number, /) -> Number: ...
    def lgamma(self, x: Number, /) -> Number: ...
    def lgamma_sum(self, x: Number, count: int, /) -> Number: ...
    def minimum(self, *xs: Number) -> Number: ...
    def maximum(self, *xs: Number) -> Number: ...


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
