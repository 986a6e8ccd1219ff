"""T8-T10: covers of offsets, gains and tables."""

from __future__ import annotations

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params, Profile, Volume, random_cover
from boundcalc.statements.covers.uniform import RandomCover
from boundcalc.statements.targets import Target


class Offset(RandomCover):
    """T8 and T9b."""

    name = "T8"
    family = "offsets, gains and tables"
    kinds = frozenset({"vector"})


class Gain(CoverLemma):
    """T9."""

    name = "T9"
    family = "offsets, gains and tables"
    uniform = True
    kinds = frozenset({"gain"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.k) * ns.log1p(y)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return ns.number(target.k) * ns.log(ns.ceil(y))

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.k, 1.0)


class Table(RandomCover):
    """T10: each row by itself."""

    name = "T10"
    family = "offsets, gains and tables"
    kinds = frozenset({"table"})

    def drawn(self, ns: NumberSystem, y: Number, target: Target, t: Number) -> Number:
        return target.d * random_cover(ns, ns.number(target.k), y, t, ns.number(0))

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / target.k)}
