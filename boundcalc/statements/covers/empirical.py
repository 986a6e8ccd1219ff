"""T1, T2: perceptron covers, which count points and so depend on T through a logarithm; and their published form."""

from __future__ import annotations

import math
from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params, Power, Profile, inside, lattice, steps
from boundcalc.statements.targets import Target

_WHOLE_STEPS = 4.6
"""Below e^4.6 = 100 steps it matters that they are whole."""


class Counting(CoverLemma):
    """A cover whose cost grows like y^2 log(2N + 1), N the points times the coordinates of each that a step may choose.

    Attributes:
        plain: whether the factor of y^2 is log(2N + 1) itself; else it is at least that.
    """

    uniform = False
    family = "covers that count points"
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

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return lattice(ns, n, steps(ns, y**2))

    def profile(self, target: Target, n: int) -> Profile:
        return Power(math.log(2 * n + 1))


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

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        rho = ns.number(params["rho"])
        a = y**2
        taken = steps(ns, rho * a)
        if taken == 0:
            return ns.number(0)
        active = ns.minimum(ns.number(target.k), taken)
        coded = ns.log(rho / (rho - 1)) + ns.log(rho**2 * a / active)
        listed = ns.log(ns.ceil(2 + ns.log(a) / ns.log(rho)))
        return lattice(ns, n * target.k, taken) + active * ns.minimum(coded, listed)

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "rho", 1.0, 10.0)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        log_a = 2 * max(log_y, 0.0)
        step = max(1.0, math.log(2 * n * target.k + 1) - log_a + 1)  # what one more step costs
        crowded = step * math.exp(
            min(log_a - math.log(target.k), 18.0)
        )  # more steps than columns: levels are paid once
        rho = 1 + 1 / max(step + math.log(1 + step), crowded)
        if log_a < _WHOLE_STEPS:
            rho = (
                math.ceil(rho * math.exp(log_a)) * (1 - 4e-12) / math.exp(log_a)
            )  # steps are whole: use the last one up
        return {"rho": rho}

    def profile(self, target: Target, n: int) -> Profile:
        size = math.log(2 * n * target.k + 1)
        return Power(size + 1 + math.log(size + 1))


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

    def profile(self, target: Target, n: int) -> Profile:
        columns = 1 if target.kind == "score" else target.k
        return Power(36 * math.log(20 * n * columns + 1))
