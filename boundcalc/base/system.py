"""What a formula may use: every one is written once, and evaluated as a float, a logarithm, an interval or a symbol.

With ordinary operators and the few functions a number system offers, so that the number a sweep computes, the interval
the checker trusts and the expression a paper prints cannot drift apart.
"""

from __future__ import annotations

from typing import Any, Protocol

Number = Any
"""A float, `LogFloat`, `flint.arb` or sympy expression: whatever its `NumberSystem` works in."""


class NumberSystem(Protocol):
    """The functions a formula may use besides + - * / ** and integer constants."""

    @property
    def name(self) -> str:
        """Which system this is."""
        ...

    @property
    def pi(self) -> Number:
        """The circle constant."""
        ...

    def number(self, x: float, /) -> Number:
        """A constant of this system, exactly the given float or integer."""
        ...

    def log(self, x: Number, /) -> Number:
        """The natural logarithm."""
        ...

    def log1p(self, x: Number, /) -> Number:
        """log(1 + x), accurate near 0."""
        ...

    def exp(self, x: Number, /) -> Number:
        """The exponential."""
        ...

    def expm1(self, x: Number, /) -> Number:
        """exp(x) - 1, accurate near 0."""
        ...

    def sqrt(self, x: Number, /) -> Number:
        """The square root."""
        ...

    def ceil(self, x: Number, /) -> Number:
        """An integer that is at least x (guarded upward where x carries rounding error)."""
        ...

    def lgamma(self, x: Number, /) -> Number:
        """Logarithm of the gamma function."""
        ...

    def lgamma_sum(self, x: Number, count: int, /) -> Number:
        """lgamma(x) + lgamma(x + 1) + ..., so many terms."""
        ...

    def minimum(self, *xs: Number) -> Number:
        """The least of two or more arguments."""
        ...

    def maximum(self, *xs: Number) -> Number:
        """The greatest of two or more arguments."""
        ...
