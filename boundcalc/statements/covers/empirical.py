"""T1, T2: perceptron covers, which count points and so depend on T through a logarithm; and their published form."""

from __future__ import annotations

from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params
from boundcalc.statements.targets import Target


class Counting(CoverLemma):
    """A cover whose cost grows like y^2 log(2N + 1), N the points times the coordinates of each that a step may choose.

    Attributes:
        plain: whether the factor of y^2 is log(2N + 1) itself; else it is at least that.
    """

    uniform = False
    plain: ClassVar[bool] = False

    def coordinates(self, target: Target) -> Number:
        """How many coordinates of each point a step may choose."""
        return target.k


class Perceptron(Counting):
    """T1."""

    name = "T1"
    kinds = frozenset({"score", "map"})
    plain = True

    def coordinates(self, target: Target) -> Number:
        return 1

    def applies(self, target: Target) -> Refusal | None:
        if target.kind == "map" and target.k != 1:
            return Refusal(self.name, f"a map to R^{target.k}", "a scalar function")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.fro

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return y**2 * ns.log(2 * n + 1)


class MatrixPerceptron(Counting):
    """T2."""

    name = "T2"
    kinds = frozenset({"map", "query", "key"})

    def norm(self, target: Target) -> Number:
        return target.norms.two_one_t if target.kind == "key" else target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return y**2 * self.constant(ns, target.k, n)

    @staticmethod
    def constant(ns: NumberSystem, k: Number, n: Number, rho: Number = None) -> Number:
        """Lambda(k, N), at rho = 1 + 1/log(2Nk+1), near its minimum, unless it is given."""
        wide = 2 * n * k + 1
        rho = 1 + 1 / ns.log(wide) if rho is None else rho
        return rho * ns.log(wide * rho**2 / (rho - 1))


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
