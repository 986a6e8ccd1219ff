"""T8-T10: covers of offsets, gains and tables."""

from __future__ import annotations

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.statement import Statement
from boundcalc.statements.covers.base import CoverLemma, Params, Profile, Volume, inside, random_cover
from boundcalc.statements.covers.uniform import RandomCover
from boundcalc.statements.targets import Target


class Offset(RandomCover):
    """T8 and T9b."""

    statement = Statement(
        "T8",
        "cover of an offset",
        r"\log N(\varepsilon) \le k\log(1+2|c|_2/\varepsilon)",
        "{c in R^k : |c|_2 <= B}, added to every row (a bias, T8, or a LayerNorm offset, T9b). Uniform and "
        "independent of T.",
        "One distinct point of radius 1: T4 and T4r for the l2 ball of R^k.",
    )
    kinds = frozenset({"vector"})


class Gain(CoverLemma):
    """T9."""

    statement = Statement(
        "T9",
        "cover of a diagonal gain",
        r"\log N(\varepsilon) \le d\log\lceil bG/\varepsilon\rceil",
        "{x -> x * g : |g - g_0|_inf <= G} on rows of norm at most b. Uniform and independent of T.",
        "|x * (g - h)|_2 <= b |g - h|_inf; cut every [-G, G] into ceil(bG/eps) intervals of half-width at most eps/b.",
    )
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


class Table(CoverLemma):
    """T10."""

    statement = Statement(
        "T10",
        "cover of a table row by row",
        r"\log N(\varepsilon) \le V \log N_{\mathrm{row}}(\varepsilon)",
        "A table of V rows of norm at most B, looked up by index (tokens or positions); rows covered as in "
        "T4r. Uniform; learned positions have V = T rows, and then nothing is independent of T.",
        "The metric is the largest l2 distance of a row, so the rows are covered one by one. (T2 applies too:"
        " a table is linear on one-hot points, b = 1, N = min(mT, V).)",
    )
    uniform = True
    kinds = frozenset({"table"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.size) * ns.log1p(2 * y)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        drawn = target.d * random_cover(ns, ns.number(target.k), y, ns.number(params["t"]), ns.number(0))
        return ns.minimum(drawn, self.closed(ns, y, target, n))

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "t", 0.0, 0.75)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / target.k)}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 1.0, floor=True)
