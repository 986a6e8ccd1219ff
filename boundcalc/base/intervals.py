"""Interval arithmetic with outward rounding (Arb balls), the number system of the checker."""

from __future__ import annotations

import math

import flint
from flint import arb, fmpz

_PRECISION = 128
"""Bits of the midpoint; far more than needed, so that a verdict never hangs on rounding."""

flint.ctx.prec = _PRECISION


class IntervalSystem:
    """Arb balls: every operation returns an enclosure of the exact result."""

    name = "interval"

    @property
    def pi(self) -> arb:
        return arb.pi()

    @staticmethod
    def number(x: float) -> arb:
        if isinstance(x, float) and x == int(x):
            return arb(fmpz(int(x)))
        return arb(x)

    @staticmethod
    def log(x: arb | float) -> arb:
        return arb(x).log()

    @staticmethod
    def log1p(x: arb | float) -> arb:
        return arb(x).log1p()

    @staticmethod
    def exp(x: arb | float) -> arb:
        return arb(x).exp()

    @staticmethod
    def expm1(x: arb | float) -> arb:
        return arb(x).expm1()

    @staticmethod
    def sqrt(x: arb | float) -> arb:
        return arb(x).sqrt()

    @staticmethod
    def ceil(x: arb | float) -> arb:
        return arb(x).ceil()

    @staticmethod
    def lgamma(x: arb | float) -> arb:
        return arb(x).lgamma()

    @staticmethod
    def lgamma_sum(x: arb | float, count: int) -> arb:
        """By gamma(x + i) = gamma(x) x (x+1) ... (x+i-1): one logarithm of a product of products."""
        start = arb(x)
        rising, product = arb(1), arb(1)
        for i in range(count - 1):
            rising *= start + i
            product *= rising
        return count * start.lgamma() + product.log()

    @staticmethod
    def minimum(*xs: arb | float) -> arb:
        least = arb(xs[0])
        for x in xs[1:]:
            least = least.min(arb(x))
        return least

    @staticmethod
    def maximum(*xs: arb | float) -> arb:
        most = arb(xs[0])
        for x in xs[1:]:
            most = most.max(arb(x))
        return most


INTERVAL = IntervalSystem()


def certainly_le(a: arb | float, b: arb | float) -> bool:
    """Whether a <= b for every pair of values in the two enclosures."""
    return bool(arb(a) <= arb(b))


def upper_log(x: arb) -> float:
    """A float that is at least log(x) for every x in the enclosure (-inf when x is certainly 0)."""
    if bool(x == 0):
        return float("-inf")
    return upper_float(arb(x.upper()).log())


def upper_float(x: arb) -> float:
    """A float that is at least every value in the enclosure (inf when nothing is known of it)."""
    if x.is_nan():
        return math.inf
    top = x.upper()
    value = float(top)
    while not certainly_le(top, arb(value)):
        value = math.nextafter(value, math.inf)
    return value


def lower_float(x: arb) -> float:
    """A float that is at most every value in the enclosure."""
    return -upper_float(-x)
