"""Block 1 in K2: a kernel class up to a small remainder, and the subdivision that bounds its complexity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from operator import mul
from typing import Any

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.comparison.closed import hyperbolic

LARGEST_SCORE = 2.0
"""Score ranges up to which the series and dominant columns are used; beyond, K alone."""
MOST_ORDERS = 60
"""Orders of the series that may be written out; what is left is bounded."""
MOST_CELLS = 20_000
SMALLEST_CELL = 2.0**-24
"""Ends of cells are binary fractions of so many bits, and exact."""


@dataclass(frozen=True)
class Kernel:
    """A bound of the complexity of block 1, which a subdivision proves.

    Attributes:
        bound: the complexity is at most this.
        weights: one for each term of the series, above 0 (Cauchy's inequality).
    """

    bound: float
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """Block 1 as a series of tensors, for scores of Frobenius size F and range S (K2, section 2).

    Attributes:
        ns: number system.
        fro: F.
        curvature: be.
        orders: the last order that is written out.
        parts: al, em, de and c of the linearised 1/Z.
        remainder: factors of the terms of N and of Z that e(Z) leaves.
        tail: what the orders that are not written out add, over sqrt(1 - the squared mean length).
        powers: of F, from the zeroth.
        inverse: 1/n!, from the zeroth.
    """

    ns: NumberSystem
    fro: Number
    curvature: Number
    orders: int
    parts: tuple[Number, Number, Number, Number]
    remainder: tuple[Number, Number]
    tail: tuple[Number, Number]
    powers: Sequence[Number]
    inverse: Sequence[Number]


def series(ns: NumberSystem, fro: Number, most: Number, orders: int, curvature: float, split: float) -> Series:
    """The series of block 1: 1/Z is al - be (Z - 1) + e(Z), and e is small on the range of Z."""
    be, p = ns.number(curvature), ns.number(split)
    up = ns.exp(most)
    tanh = 2 * (1 - 2 / (up + 1))
    top = ns.exp(most**2 / 2)
    if most > 1 / ns.number(8):
        cosh, sinh = hyperbolic(ns, most)
        mean = 1 / most - cosh / sinh
        top = ns.minimum(top, ns.exp(-most * mean) * (cosh + mean * sinh))
    high = ns.maximum(ns.number(1), 1 / top + be * (top - 1))
    low = 2 * ns.sqrt(be) - be  # the minimum of the convex function over all Z
    al, small = (high + low) / 2, (high - low) / 2
    slope = tanh * ns.maximum(1 - be, be * top - 1 / top)
    first = (4 * fro) ** (orders + 1) / factorial(orders + 1) / (1 - 4 * fro / (orders + 2))
    single = (2 * fro) ** (orders + 1) / factorial(orders + 1) / (1 - 2 * fro / (orders + 2)) / 2
    of_n, of_z = small / ns.sqrt(p), slope / ns.sqrt(1 - p)
    tail = al * single + be * first / 8, of_n * single + of_z * single / 2
    powers = [ns.number(1)]
    for _ in range(orders):
        powers.append(powers[-1] * fro)
    inverse = [1 / ns.number(factorial(n)) for n in range(orders + 2)]
    return Series(ns, fro, be, orders, (al, small, slope, be / al), (of_n, of_z), tail, powers, inverse)


def bounds_of_terms(s: Series, low: Sequence[Number], high: Sequence[Number]) -> list[Number]:
    """Bounds of every term of the series for mean length in [low, high][0] and covariance in [low, high][1]."""
    ns, n_most = s.ns, s.orders
    al, _, _, ratio = s.parts
    spread = 1 - low[0] ** 2
    covariance = ns.minimum(high[1], spread)
    moments, out, back = [ns.number(0)] * 2, 1 + high[0], 1 - low[0]
    power_out, power_back = out, back
    for _ in range(2, n_most + 2):
        moments.append(spread * (power_out + power_back) / 2)
        power_out, power_back = power_out * out, power_back * back
    fourth = moments[4]
    third = ns.sqrt(covariance * ns.maximum(ns.number(0), fourth - low[1] ** 2))
    moments[2], moments[3] = covariance, ns.minimum(moments[3], third)
    bend = 9 * ratio**2 - 6 * ratio
    bounds = [high[0]]
    scaled = [moment * s.inverse[j] for j, moment in enumerate(moments)]
    shifted = [moment * s.inverse[j] for j, moment in enumerate(moments[1:])]  # m_(n+1)/n!
    for n, power in enumerate(s.powers[1:], start=1):
        if n == 3:
            bent = ns.maximum(bend * covariance**4, bend * low[1] ** 4)
            term = al / 6 * ns.sqrt(ns.maximum(ns.number(0), fourth * fourth + bent))
        else:
            products = sum(map(mul, shifted[1 : n - 1], scaled[n - 1 : 1 : -1]), start=ns.number(0))
            term = al * shifted[n] + s.curvature * products
        bounds.append(power * term)
    root = ns.sqrt(spread)
    bounds.append(root * s.tail[0])
    of_n, of_z = s.remainder
    for n, power in enumerate(s.powers[1:], start=1):
        bounds.append(of_n * power * shifted[n])
        if n > 1:
            bounds.append(of_z * power * scaled[n])
    bounds.append(root * s.tail[1])
    return bounds


def kernel_holds(s: Series, kernel: Kernel, certain: Callable[[Any, Any], bool]) -> bool:
    """Whether subdivision of mean lengths and covariances proves a claim; `certain`: whether a <= b surely."""
    ns = s.ns
    shares = [1 / ns.number(weight) for weight in kernel.weights]
    limit = ns.number(kernel.bound) ** 2 / sum(map(ns.number, kernel.weights), start=ns.number(0))
    cells, seen = [(0.0, 1.0, 0.0, 1.0)], 0
    while cells:
        a, b, c, d = cells.pop()
        if c > 1 - a * a:
            continue  # the covariance is at most 1 - the squared mean length
        seen += 1
        terms = bounds_of_terms(s, (ns.number(a), ns.number(c)), (ns.number(b), ns.number(d)))
        total = sum(map(mul, map(mul, terms, terms), shares), start=ns.number(0))
        if certain(total, limit):
            continue
        if seen > MOST_CELLS or max(b - a, d - c) < SMALLEST_CELL:
            return False
        if 2 * (b - a) >= d - c:
            cells += [(a, (a + b) / 2, c, d), ((a + b) / 2, b, c, d)]
        else:
            cells += [(a, b, c, (c + d) / 2), (a, b, (c + d) / 2, d)]
    return True
