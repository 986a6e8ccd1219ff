"""V: noise on one linear map instead of a cover of it; `NOISES` is the registry.

G11 adds independent Gaussian noise of size sigma to every entry of a map. What one row of one example sees of it is
sigma b times the `spread`, but for a chance of e^(-t^2/2) per event; what it costs is its divergence from a law that
was fixed in advance. Costs are functions of z = norm/sigma. No covering strategy takes a noise.
"""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.facts import Target
from boundcalc.statements.covers.base import Params
from boundcalc.statements.covers.laws import LARGEST_SIDE, RANGES, Law, matrix_student, student_columns

_NEWTON_STEPS = 2
_TAILS = {name: RANGES[name] for name in ("s", "r")}


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


class Noise(Law):
    """Gaussian noise, and the law it is compared with; the divergence is that at sigma = 1."""

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        raise NotImplementedError(f"{self.name} has no closed form: it is for G11 alone")

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        if target.most is not None:  # smaller noise than eps would allow is noise too
            y = ns.maximum(y, self.norm(target) * target.radius / target.most)
        return self.missed(ns, y, *self.sides(target), params)


def _entropy(ns: NumberSystem, n: int) -> Number:
    """Of n standard Gaussians."""
    return ns.number(n) / 2 * (1 + ns.log(2 * ns.pi))


class _GaussianNoise(Noise):
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


class _StudentNoise(Noise):
    """V2."""

    name = "V2"
    kinds = frozenset({"map", "score", "summed"})
    ranges = _TAILS

    def applies(self, target: Target) -> Refusal | None:
        if target.kind in self.kinds and target.k == 1:
            return Refusal(self.name, "one column", "several (V1 is for one)")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        return student_columns(ns, d, k, y, params, ns.number(d)) - _entropy(ns, d * k)


class _MatrixStudentNoise(Noise):
    """V3."""

    name = "V3"
    kinds = frozenset({"map", "score", "numbers", "pooled", "summed"})
    ranges = _TAILS

    def applies(self, target: Target) -> Refusal | None:
        if target.kind in self.kinds and min(target.d, target.k) > LARGEST_SIDE:
            return Refusal(self.name, f"{target.d} x {target.k}", f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.nuclear

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        return matrix_student(ns, d, k, y, params, ns.number(max(d, k))) - _entropy(ns, d * k)


NOISES: dict[str, Noise] = {noise.name: noise for noise in (_GaussianNoise(), _StudentNoise(), _MatrixStudentNoise())}
"""Every law that noise is compared with, by name."""
