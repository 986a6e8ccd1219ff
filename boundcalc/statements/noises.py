"""V: noise on one linear map instead of a cover of it; `NOISES` is the registry.

G11 adds independent Gaussian noise of size sigma to every entry of a map. What one row of one example sees of it is
sigma b times the `spread`, but for a chance of e^(-t^2/2) per event; what it costs is its divergence from a law that
was fixed in advance. Costs are functions of z = norm/sigma. No covering strategy takes a noise.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params
from boundcalc.statements.covers.centres import log_tails
from boundcalc.statements.covers.noise import LARGEST_SIDE, levels, problem_of
from boundcalc.statements.targets import Target

_NEWTON_STEPS = 2


def spread(ns: NumberSystem, target: Target, t: Number) -> Number:
    """How far unit noise moves a point of norm 1, but for a chance of e^(-t^2/2) per event.

    A score, or one coordinate of a gain, is one Gaussian g: P(|g| > t) <= e^(-t^2/2), as of two. A row of k has
    P(|g|^2 > ka) <= e^(-k(a-1-log a)/2), a > 1 (Chernoff); the a with a-1-log a = t^2/k is found by Newton's method
    from 1 + u + u^2/2 with u^2 = 2t^2/k, above it, and by convexity every step stays above it.
    """
    if target.extra is not None:
        return t + target.extra
    if target.kind in ("score", "gain", "numbers") or target.k <= 2:
        return t
    k = ns.number(target.k)
    half = t**2 / k
    a = 1 + ns.sqrt(2 * half) + half
    for _ in range(_NEWTON_STEPS):
        a = a - (a - 1 - ns.log(a) - half) * a / (a - 1)
    return ns.sqrt(k * a)


def events(target: Target) -> int:
    """Number of Gaussian tail events in the union bound for one example; a gain's coordinates serve every row."""
    if target.kind == "summed":
        return 2 * max(1, target.points.count(1))  # to both sides
    return target.size if target.kind in ("gain", "numbers") else max(1, target.points.count(1))


class Noise(CoverLemma):
    """Gaussian noise, and the law it is compared with.

    Attributes:
        names: its parameters.
    """

    uniform = True
    quadratic = False
    names: ClassVar[tuple[str, ...]] = ()

    def sides(self, target: Target) -> tuple[int, int]:
        """Length and number of the columns, as this law takes them."""
        return target.d, target.k

    @abstractmethod
    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        """The divergence at sigma = 1, for a budget of y."""

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        raise NotImplementedError(f"{self.name} has no closed form: it is for G11 alone")

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        if target.most is not None:  # smaller noise than eps would allow is noise too
            y = ns.maximum(y, self.norm(target) * target.radius / target.most)
        return self.missed(ns, y, *self.sides(target), params)

    def check_params(self, params: Params) -> str | None:
        return problem_of(self.name, self.names, params)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        if not self.names:
            return {}
        from boundcalc.statements.covers.tuning import tuned  # a checker has no use for it

        return tuned(self, *self.sides(target), log_y)


class GaussianNoise(Noise):
    """V1."""

    name = "V1"
    kinds = frozenset({"map", "score", "vector", "gain", "table", "numbers", "pooled", "summed"})

    def norm(self, target: Target) -> Number:
        return target.norms.op if target.kind in ("vector", "gain", "table") else target.norms.fro

    def sides(self, target: Target) -> tuple[int, int]:
        """Entries of a part whose norm has the budget, and how many such parts there are."""
        parts = {"gain": target.k, "table": target.d}.get(target.kind, 1)
        return target.size // parts, parts

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        return ns.number(d * k) / 2 * ns.log1p(y**2 / ns.number(d))


class StudentNoise(Noise):
    """V2."""

    name = "V2"
    kinds = frozenset({"map", "score", "summed"})
    names = ("s", "r")

    def applies(self, target: Target) -> Refusal | None:
        if target.kind in self.kinds and target.k == 1:
            return Refusal(self.name, "one column", "several (V1 is for one)")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        rows, columns, one = ns.number(d), ns.number(k), ns.number(1)
        s, r = ns.number(params["s"]), ns.number(params["r"])
        power = rows / 2 + s
        size = ns.log1p(one / r) + levels(ns, y / (columns * ns.sqrt(rows * (1 + r))))
        column = ns.lgamma(s) - ns.lgamma(power) + rows / 2 * ns.log(ns.pi * r * rows) + power * size
        return columns * column - rows * columns / 2 * (1 + ns.log(2 * ns.pi))


class MatrixStudentNoise(Noise):
    """V3."""

    name = "V3"
    kinds = frozenset({"map", "score", "numbers", "pooled", "summed"})
    names = ("s", "r")

    def applies(self, target: Target) -> Refusal | None:
        if target.kind in self.kinds and min(target.d, target.k) > LARGEST_SIDE:
            return Refusal(self.name, f"{target.d} x {target.k}", f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.nuclear

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        low, high = min(d, k), max(d, k)
        n, tall, one = ns.number(d * k), ns.number(high), ns.number(1)
        s, r = ns.number(params["s"]), ns.number(params["r"])
        power = ns.number(low + high - 1) / 2 + s
        size = ns.log1p(one / r) + levels(ns, y / (low * ns.sqrt(tall * (1 + r))))
        mass = n / 2 * ns.log(ns.pi * r * tall) + log_tails(ns, params["s"], low, high)
        return mass + power * low * size - n / 2 * (1 + ns.log(2 * ns.pi))


V1, V2, V3 = GaussianNoise(), StudentNoise(), MatrixStudentNoise()

NOISES: dict[str, Noise] = {noise.name: noise for noise in (V1, V2, V3)}
"""Every law that noise is compared with, by name."""
