"""T13, T14: covers by random centres of a chosen law; the laws and their parameters serve noise (V1 to V3) too.

A centre V of density p is within eps' of W with probability at least e^-I, I = E -log p(W + eps' u) - n log eps' -
(entropy of u), for noise u on the spectral ball (Jensen); log(1 + L e^I) centres serve a net of size e^L. Everything is
scaled so that the norm's budget is 1; then eps' = (1-t)/y and the noise is `energy` large. The noise u of R^(d x k) has
the density det(I - u'u)^a / Z_a on |u|_op <= 1, a >= 0: uniform at a = 0, nearly Gaussian for large a.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import NamedTuple

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.facts import Target
from boundcalc.statements.covers.base import CoverLemma, Params

LARGEST_SIDE = 10**5
"""The volume of a spectral ball is a product of as many factors as its smaller side."""

RANGES = {"a": (0.0, 1e9), "s": (1e-9, 1e9), "r": (1e-12, 1e12), "t": (1e-15, 0.75)}
"""What a certificate may say of the law of centres or of noise."""


class Law(CoverLemma):
    """A cover by a law whose parameters a search chooses."""

    uniform = True
    quadratic = False  # it seems to hold, but is not proved

    def sides(self, target: Target) -> tuple[int, int]:
        """Length and number of the columns, as this law takes them."""
        return target.d, target.k

    @abstractmethod
    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        """The divergence of noise of size 1 around a matrix of norm y from the law; for centres, eps' = 1/y."""

    def params(self, log_y: float, target: Target, n: int) -> Params:
        if not self.ranges:
            return {}
        from boundcalc.statements.covers.tuning import tuned  # a checker has no use for it

        return tuned(self, *self.sides(target), log_y)


def student_columns(ns: NumberSystem, d: int, k: int, y: Number, params: Params, energy: Number) -> Number:
    """Mean of -log p for independent Student columns p, at matrices of (2,1) norm y with noise of this mean square.

    The mean is over the noise, and `energy` of one column; rho = r energy (T13, V2).
    """
    rows, columns, one = ns.number(d), ns.number(k), ns.number(1)
    s, r = ns.number(params["s"]), ns.number(params["r"])
    power = rows / 2 + s
    spread = ns.log1p(one / r) + levels(ns, y / (columns * ns.sqrt(energy * (1 + r))))
    column = ns.lgamma(s) - ns.lgamma(power) + rows / 2 * ns.log(ns.pi * r * energy) + power * spread
    return columns * column


def matrix_student(ns: NumberSystem, d: int, k: int, y: Number, params: Params, energy: Number) -> Number:
    """The same for the matrix-t law p and nuclear norms y; `energy` is that of the longer side (T14, V3)."""
    low, high = min(d, k), max(d, k)
    n, one = ns.number(d * k), ns.number(1)
    s, r = ns.number(params["s"]), ns.number(params["r"])
    power = ns.number(low + high - 1) / 2 + s
    spread = ns.log1p(one / r) + levels(ns, y / (low * ns.sqrt(energy * (1 + r))))
    mass = n / 2 * ns.log(ns.pi * r * energy) + _log_tails(ns, params["s"], low, high)
    return mass + power * low * spread


@lru_cache(maxsize=1 << 16)
def _log_tails(ns: NumberSystem, s: float, low: int, high: int) -> Number:
    """Log of Gamma_l(beta - h/2) over Gamma_l(beta), beta = (l+h-1)/2 + s: from s and from s + h/2 on."""
    start = ns.number(s)
    return _gammas(ns, start, low) - _gammas(ns, start + ns.number(high) / 2, low)


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
    return sizes + _gammas(ns, a + 1, low) - _gammas(ns, a + ns.number(high + 2) / 2, low)


def _gammas(ns: NumberSystem, start: Number, count: int) -> Number:
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


class Centres(Law):
    """What T13 and T14 share: the net and the noise."""

    kinds = frozenset({"map", "query"})
    ranges = RANGES

    def applies(self, target: Target) -> Refusal | None:
        least = min(target.d, target.k)
        if not isinstance(least, int) or least > LARGEST_SIDE:
            what = f"{target.d} x {target.k}"
            return super().applies(target) or Refusal(self.name, what, f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        side = max(target.d, target.k)
        return self.sharp(ns, y, target, n, {"a": float(side), "s": side / 8, "r": 0.125, "t": 0.5})

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        """log(1 + L e^I), L = n log(1+2y/t), as I + log L + e^-I/L, which is larger and never overflows."""
        t = ns.number(params["t"])
        missed = self.missed(ns, y / (1 - t), target.d, target.k, params)
        net = ns.number(target.size) * ns.log1p(2 * y / t)
        return missed + ns.log(net) + ns.exp(-missed) / net


class StudentColumns(Centres):
    """T13."""

    name = "T13"

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        kind = noise(ns, d, k, params["a"])
        energy = kind.energy * ns.number(d) / max(d, k)
        return student_columns(ns, d, k, y, params, energy) - kind.entropy


class MatrixStudent(Centres):
    """T14."""

    name = "T14"

    def norm(self, target: Target) -> Number:
        return target.norms.nuclear

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        kind = noise(ns, d, k, params["a"])
        return matrix_student(ns, d, k, y, params, kind.energy) - kind.entropy
