"""Rounding up: upper ends for sums of floats, by the classical a-priori bound.

A sum (or dot product) in which every term passes at most k roundings is off by at most gamma_k = k u / (1 - k u)
times the sum of absolute terms, in whatever order and with or without fused operations (Higham, 2002, ch. 3-4).
Numbers are scaled to about 1 beforehand where their squares could overflow or vanish, so underflow is below
every margin used here.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53


def gamma(k: int) -> float:
    """gamma_k, itself rounded up."""
    x = (k + 1) * UNIT
    return x / (1 - x) * (1 + 2.0**-50)


def up(value: float, k: int) -> float:
    """An upper bound of a sum of at least 0 whose terms passed at most k roundings, and were computed as `value`."""
    if value == 0:
        return 0.0
    return math.nextafter(value * (1 + gamma(k + 2)), math.inf)


def ups(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """`up`, elementwise."""
    return np.nextafter(values * (1 + gamma(k + 2)), math.inf, where=values != 0, out=np.zeros_like(values))


def root(value: float) -> float:
    """An upper bound of a square root."""
    return math.nextafter(math.sqrt(value), math.inf) if value > 0 else 0.0


def roots(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`root`, elementwise."""
    return ups(np.sqrt(values), 0)


def scale_for(largest: float) -> float:
    """A power of two that brings the largest entry near 1 (as near as powers of two in range can)."""
    return math.ldexp(1.0, max(-1000, min(1000, -math.frexp(largest)[1])))


def unscaled(value: float, shift: int) -> float:
    """At least value * 2^shift: exact but near the ends of the floats."""
    try:
        scaled = math.ldexp(value, shift)
    except OverflowError:
        return math.inf
    return scaled if value == 0 or scaled >= sys.float_info.min else math.nextafter(scaled, math.inf)


def total(values: NDArray[np.float64]) -> float:
    """An upper bound of a sum of numbers of at least 0: `fsum` rounds once."""
    try:
        return up(math.fsum(values.ravel().tolist()), 0)
    except OverflowError:
        return math.inf
