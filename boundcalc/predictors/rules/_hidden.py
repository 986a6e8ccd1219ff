"""The activation, and B2: lower bounds of a hidden unit's effect less a line, on an interval, in balls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
from flint import arb

from boundcalc.predictors.data import Array

_BENDS = (-1.4142136, -1.4142135, 1.4142135, 1.4142136)
"""Floats around the roots of 2, where the second derivative of GELU, (2 - z^2) times the normal density, changes its
sign."""
_HALVINGS = 40


def phi(name: str, z: arb) -> arb:
    """The activation of a ball: GELU is z times the normal distribution function, exactly; or ReLU."""
    if name == "relu":
        return arb.max(z, arb(0))
    return z * (1 + (z / arb(2).sqrt()).erf()) / 2


def _phi_slope(z: arb) -> arb:
    """The derivative of GELU."""
    root = arb(2).sqrt()
    return (1 + (z / root).erf()) / 2 + z * (-z * z / 2).exp() / (root * arb.const_sqrt_pi())


def float_phi(name: str, z: Array) -> Array:
    """The activation in floats."""
    if name == "relu":
        return np.maximum(z, 0)
    from scipy.special import ndtr

    return z * ndtr(z)


def offset(name: str, g: arb, a: float, low: float, high: float) -> arb:
    """Beta <= the least g phi(z) - a z over low <= z <= high; -inf where these are no numbers or no interval.

    ReLU is linear on both sides of 0. For GELU, piece by piece: at the ends where g phi is concave, by a tangent where
    it is convex, of a ball around a bend.
    """
    if not (math.isfinite(a) and math.isfinite(low) and math.isfinite(high) and low <= high):
        return arb.neg_inf()
    slope = arb(a)

    def above(z: arb) -> arb:
        return g * phi(name, z) - slope * z

    if name == "relu":
        return least([above(arb(z)) for z in (low, high, min(max(low, 0.0), high))])
    if not (bool(g > 0) or bool(g < 0) or bool(g == 0)):
        return arb.neg_inf()
    values: list[arb] = []
    for left, right in pairwise([low, *(bend for bend in _BENDS if low < bend < high), high]):
        middle = abs(left / 2 + right / 2)
        if _BENDS[2] <= middle <= _BENDS[3]:
            values.append(above(arb(left).union(arb(right))))
        elif bool(g > 0) == (middle < _BENDS[2]):
            touch = arb(_lowest(float(g.mid()), a, left, right))
            rise = g * _phi_slope(touch) - slope
            values.append(above(touch) + least([rise * (arb(z) - touch) for z in (left, right)]))
        else:
            values += [above(arb(z)) for z in (left, right)]
    return least(values)


def _lowest(g: float, a: float, left: float, right: float) -> float:
    """About where g phi(z) - a z, convex from left to right, is least: where its slope changes its sign.

    Any place between is valid.
    """
    for _ in range(_HALVINGS):
        z = (left + right) / 2
        slope = (1 + math.erf(z / math.sqrt(2))) / 2 + z * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        left, right = (z, right) if g * slope < a else (left, z)
    return left


def least(balls: Sequence[arb]) -> arb:
    """The least of some balls."""
    return reduce(arb.min, balls)
