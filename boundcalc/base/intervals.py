"""Interval arithmetic with outward rounding (Arb balls), the number system of the checker."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import flint
from flint import arb

_PRECISION = 128
"""Bits of the midpoint; far more than needed, so that a verdict never hangs on rounding."""

flint.ctx.prec = _PRECISION


def _of_arb(method: Callable[[arb], arb]) -> staticmethod[[arb | float], arb]:
    """A function of balls, of plain numbers too."""
    return staticmethod(lambda x: method(x if type(x) is arb else arb(x)))


class _IntervalSystem:
    """Arb balls: every operation returns an enclosure of the exact result."""

    name = "interval"
    number = staticmethod(arb)
    log, log1p, exp, expm1 = _of_arb(arb.log), _of_arb(arb.log1p), _of_arb(arb.exp), _of_arb(arb.expm1)
    sqrt, ceil, lgamma = _of_arb(arb.sqrt), _of_arb(arb.ceil), _of_arb(arb.lgamma)

    @property
    def pi(self) -> arb:
        return arb.pi()

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
        return reduce(arb.min, map(arb, xs))

    @staticmethod
    def maximum(*xs: arb | float) -> arb:
        return reduce(arb.max, map(arb, xs))


INTERVAL = _IntervalSystem()


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
