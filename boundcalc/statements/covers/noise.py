"""Noise on the spectral ball, and covers by random centres whose density is known (T13, T14).

The noise u of R^(d x k) has the density det(I - u'u)^a / Z_a on |u|_op <= 1, a >= 0: uniform at a = 0, nearly
Gaussian for large a. Z_a is a product of gamma functions; all else follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from boundcalc.base.system import Number, NumberSystem
from boundcalc.base.validate import shown

LARGEST_SIDE = 10**5
"""The volume of a spectral ball is a product of as many factors as its smaller side."""

RANGES = {"a": (0.0, 1e9), "s": (1e-9, 1e9), "r": (1e-12, 1e12), "t": (1e-15, 0.75)}
"""What a certificate may say of the law of centres or of noise."""


class Noise(NamedTuple):
    """The noise with exponent a.

    Attributes:
        entropy: at most the differential entropy.
        energy: mean of |u|_F^2 over the larger side, which is that of a row or column of that length.
    """

    entropy: Number
    energy: Number


@lru_cache(maxsize=1 << 16)
def noise(ns: NumberSystem, d: int, k: int, a: float) -> Noise:
    """Entropy (from below) and energy of the noise on d x k matrices; only the sides matter, not which is which."""
    low, high = min(d, k), max(d, k)
    exponent = ns.number(a)
    entropy = log_mass(ns, low, high, exponent)
    if a != 0:
        entropy = entropy - exponent * _slope(ns, low, high, exponent)
    return Noise(entropy, high / (low + high + 1 + 2 * exponent))


def log_mass(ns: NumberSystem, low: int, high: int, a: Number) -> Number:
    """Logarithm of Z_a, the integral of det(I - u'u)^a over the unit spectral ball; its volume at a = 0."""
    sizes = ns.number(low * high) / 2 * ns.log(ns.pi)
    return sizes + gammas(ns, a + 1, low) - gammas(ns, a + ns.number(high + 2) / 2, low)


def gammas(ns: NumberSystem, start: Number, count: int) -> Number:
    """Sum of lgamma(start + i/2) over i < count: a multivariate gamma function without its power of pi."""
    whole = ns.lgamma_sum(start, (count + 1) // 2)
    return whole if count < 2 else whole + ns.lgamma_sum(start + ns.number(1) / 2, count // 2)


def _slope(ns: NumberSystem, low: int, high: int, a: Number) -> Number:
    """At least (log Z)'(a): three times a step of 1/2 less the step after it; each needs four gamma functions."""

    def step(at: Number) -> Number:
        ends = ns.lgamma(at + ns.number(low + 2) / 2) - ns.lgamma(at + 1)
        return ends - ns.lgamma(at + ns.number(low + high + 2) / 2) + ns.lgamma(at + ns.number(high + 2) / 2)

    return 3 * step(a) - step(a + ns.number(1) / 2)


LINE, BEND = 0.804743, 1.9803
"""log(1+y^2) <= LINE y for all y; BEND lies a little above the y where this is nearly equal (1.98029...)."""


def levels(ns: NumberSystem, y: Number) -> Number:
    """At least the concave majorant of log(1+y^2) on y >= 0: LINE y up to BEND, the function itself from there."""
    return ns.minimum(ns.number(LINE) * y, ns.log1p(ns.maximum(y, ns.number(BEND)) ** 2))


def drawn_cover(ns: NumberSystem, n: Number, y: Number, t: Number, missed: Number) -> Number:
    """log(1 + L e^I), L = n log(1+2y/t): so many centres, each right with probability e^-I, serve a net of t eps.

    Taken as I + log L + e^-I / L, which is larger and never overflows.
    """
    net = n * ns.log1p(2 * y / t)
    return missed + ns.log(net) + ns.exp(-missed) / net


def is_number(value: object, low: float, high: float) -> bool:
    """Whether a parameter from a certificate is a finite float in [low, high]."""
    return isinstance(value, float) and math.isfinite(value) and low <= value <= high


def problem_of(lemma: str, names: Sequence[str], params: Mapping[str, float]) -> str | None:
    """What is wrong with the parameters of a law from a certificate, or None."""
    if set(params) != set(names):
        return f"{lemma} takes the parameters {', '.join(names) or 'none'}, got {shown(sorted(params))}"
    for name in names:
        low, high = RANGES[name]
        if not is_number(params[name], low, high):
            return f"{lemma} needs {low:g} <= {name} <= {high:g}, got {params[name]!r}"
    return None
