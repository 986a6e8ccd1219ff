"""T1 to T10 and PUB: covers that count points, and so depend on T through a logarithm, and covers for every sample."""

from __future__ import annotations

from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.facts import Target
from boundcalc.statements.covers.base import ABOVE_0, CoverLemma, Params, random_cover

_MAPS = frozenset({"map", "query"})


class Perceptron(CoverLemma):
    """T1."""

    name = "T1"
    uniform = False
    kinds = frozenset({"score", "map"})

    def applies(self, target: Target) -> Refusal | None:
        if target.kind == "map" and target.k != 1:
            return Refusal(self.name, f"a map to R^{target.k}", "a scalar function")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.fro

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return y**2 * ns.log(2 * n + 1)


class MatrixPerceptron(CoverLemma):
    """T2."""

    name = "T2"
    uniform = False
    kinds = frozenset({"map", "query", "key"})

    def norm(self, target: Target) -> Number:
        return target.norms.two_one_t if target.kind == "key" else target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        """y^2 Lambda(k, N), at rho = 1 + 1/log(2Nk+1), near its minimum."""
        wide = 2 * n * target.k + 1
        rho = 1 + 1 / ns.log(wide)
        return y**2 * rho * ns.log(wide * rho**2 / (rho - 1))


class PublishedPerceptron(CoverLemma):
    """PUB in place of T1 and T2."""

    name = "Tpub"
    uniform = False
    published = True
    kinds = frozenset({"map", "score", "query", "key"})

    def norm(self, target: Target) -> Number:
        if target.kind == "key":
            return target.norms.two_one_t
        return target.norms.fro if target.kind == "score" or target.k == 1 else target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        columns = 1 if target.kind == "score" else target.k
        return 36 * y**2 * ns.log(2 * (4 * y + 3) * n * columns + 1)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        columns = 1 if target.kind == "score" else target.k
        return 36 * y**2 * ns.log(2 * ns.ceil(4 * y + 2) * n * columns + 1)


class Maurey(CoverLemma):
    """T3."""

    name = "T3"
    uniform = True
    kinds = _MAPS

    def norm(self, target: Target) -> Number:
        return target.norms.one_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return (y**2 / 2 + 1) * ns.log(ns.number(2 * target.size + 1))


class _Spectral(CoverLemma):
    """A cover of matrices within a spectral norm."""

    uniform = True

    def norm(self, target: Target) -> Number:
        return target.norms.op


class Volumetric(_Spectral):
    """T4."""

    name = "T4"
    ranges: ClassVar = {"t": (ABOVE_0, 0.75)}
    kinds = _MAPS

    def balls(self, target: Target) -> tuple[int, int]:
        """How many balls are covered, each by itself, and the dimension of one."""
        return 1, target.size

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.size) * ns.log1p(2 * y)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        count, size = self.balls(target)
        drawn = random_cover(ns, ns.number(size), y, ns.number(params["t"]))
        return ns.minimum(count * drawn, self.closed(ns, y, target, n))

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / self.balls(target)[1])}


class LowRank(_Spectral):
    """T5."""

    name = "T5"
    kinds = _MAPS

    def applies(self, target: Target) -> Refusal | None:
        if not target.norms.rank * (target.d + target.k) < target.size:
            need = "a rank below dk/(d+k)"
            return super().applies(target) or Refusal(self.name, f"rank {target.norms.rank}", need)
        return super().applies(target)

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.norms.rank * (target.d + target.k)) * ns.log1p(4 * y)


class Offset(Volumetric):
    """T8 and T9b."""

    name = "T8"
    kinds = frozenset({"vector"})


class Gain(_Spectral):
    """T9."""

    name = "T9"
    kinds = frozenset({"gain"})

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.k) * ns.log1p(y)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return ns.number(target.k) * ns.log(ns.ceil(y))


class Table(Volumetric):
    """T10: each row by itself."""

    name = "T10"
    kinds = frozenset({"table"})

    def balls(self, target: Target) -> tuple[int, int]:
        return target.d, target.k
