"""T3-T10: covers that serve every sample, and so do not depend on T."""

from __future__ import annotations

from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import ABOVE_0, CoverLemma, Params, random_cover
from boundcalc.statements.targets import Target


class Maurey(CoverLemma):
    """T3."""

    name = "T3"
    uniform = True
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.one_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return (y**2 / 2 + 1) * ns.log(ns.number(2 * target.size + 1))


class Volumetric(CoverLemma):
    """T4."""

    name = "T4"
    uniform = True
    ranges: ClassVar = {"t": (ABOVE_0, 0.75)}
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

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


class LowRank(CoverLemma):
    """T5."""

    name = "T5"
    uniform = True
    kinds = frozenset({"map", "query"})

    def applies(self, target: Target) -> Refusal | None:
        if not target.norms.rank * (target.d + target.k) < target.size:
            need = "a rank below dk/(d+k)"
            return super().applies(target) or Refusal(self.name, f"rank {target.norms.rank}", need)
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.norms.rank * (target.d + target.k)) * ns.log1p(4 * y)


class Offset(Volumetric):
    """T8 and T9b."""

    name = "T8"
    kinds = frozenset({"vector"})


class Gain(CoverLemma):
    """T9."""

    name = "T9"
    uniform = True
    kinds = frozenset({"gain"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

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
