"""T3-T6: covers that serve every sample, and so do not depend on T."""

from __future__ import annotations

import math

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import (
    CoverLemma,
    Params,
    Power,
    Profile,
    Volume,
    inside,
    lattice,
    random_cover,
    steps,
)
from boundcalc.statements.covers.noise import LARGEST_SIDE, log_ball, log_spectral_ball
from boundcalc.statements.targets import Target


class Maurey(CoverLemma):
    """T3."""

    name = "T3"
    family = "rounded matrices"
    uniform = True
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.one_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return (y**2 / 2 + 1) * ns.log(ns.number(2 * target.size + 1))

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        half = y**2 / 2
        size = ns.number(target.size)
        lam = ns.number(params["lam"])
        once = ns.exp(-lam)
        more = 2 * once**2 + 2 * ns.exp(-8 * lam / 3) / (1 - once)
        sparse = lam * (half + 2) + size * ns.log1p(more)
        return ns.minimum(sparse, lattice(ns, size, ns.maximum(ns.number(1), ns.ceil(half))))

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "lam", 0.0, 200.0)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        weight = math.exp(min(2 * log_y, 80.0)) / 2 + 2
        return {"lam": max(0.05, 0.5 * math.log(1 + 4 * target.size / weight))}

    def profile(self, target: Target, n: int) -> Profile:
        return Power(0.3 * math.log(2 * target.size + 1))


class Volumetric(CoverLemma):
    """T4."""

    name = "T4"
    family = "the spectral ball"
    uniform = True
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.size) * ns.log1p(2 * y)

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 2.0, floor=True)


class RandomCover(Volumetric):
    """T4r."""

    name = "T4r"

    def drawn(self, ns: NumberSystem, y: Number, target: Target, t: Number) -> Number:
        """The cost of random centres, with t of eps for the net."""
        return random_cover(ns, ns.number(target.size), y, t, ns.number(0))

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return ns.minimum(self.drawn(ns, y, target, ns.number(params["t"])), self.closed(ns, y, target, n))

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "t", 0.0, 0.75)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / target.size)}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 1.0, floor=True)


class ColumnBody(RandomCover):
    """T4v."""

    name = "T4v"
    family = "bodies in spectral norm"
    _norm = "21"

    def applies(self, target: Target) -> Refusal | None:
        least = min(target.d, target.k)
        if isinstance(least, int) and least > LARGEST_SIDE:
            return Refusal(self.name, f"{target.d} x {target.k}", f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        scale, excess = _body(ns, self._norm, target.d, target.k)
        return ns.number(target.size) * ns.log1p(2 * y / scale) + excess

    def drawn(self, ns: NumberSystem, y: Number, target: Target, t: Number) -> Number:
        scale, excess = _body(ns, self._norm, target.d, target.k)
        return random_cover(ns, ns.number(target.size), y / scale, t, excess)

    def profile(self, target: Target, n: int) -> Profile:
        from boundcalc.base.numbers import FLOAT  # for the optimiser alone

        scale, excess = _body(FLOAT, self._norm, target.d, target.k)
        return Volume(target.size, 1 / float(scale), float(excess), floor=True)


class FrobeniusBody(ColumnBody):
    """T4f."""

    name = "T4f"
    _norm = "F"

    def norm(self, target: Target) -> Number:
        return target.norms.fro


def _body(ns: NumberSystem, norm: str, d: int, k: int) -> tuple[Number, Number]:
    """(lambda, R): |W|_norm <= lambda |W|_op, and log vol(lambda B_norm) - log vol(B_op)."""
    key = (ns.name, norm, d, k)
    if key not in _BODIES:
        size = ns.number(d * k)
        if norm == "F":
            log_scale = ns.log(ns.number(min(d, k))) / 2
            volume = log_ball(ns, size)
        else:
            log_scale = ns.log(ns.number(k * min(d, k))) / 2
            volume = k * (log_ball(ns, ns.number(d)) + ns.lgamma(ns.number(d + 1))) - ns.lgamma(size + 1)
        _BODIES[key] = ns.exp(log_scale), size * log_scale + volume - log_spectral_ball(ns, d, k)
    return _BODIES[key]


_BODIES: dict[tuple[str, str, int, int], tuple[Number, Number]] = {}


class LowRank(CoverLemma):
    """T5."""

    name = "T5"
    family = "ranks and spectra"
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

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        drawn = self.factors(ns, y, ns.number(target.norms.rank), target, params["theta"])
        return ns.minimum(drawn, self.closed(ns, y, target, n))

    @staticmethod
    def factors(ns: NumberSystem, y: Number, rank: Number, target: Target, theta: float) -> Number:
        """The cover of W/B = PQ at 1/y: P at theta/y, Q at what is left; random centres with t = 1/(2rd), 1/(2rk)."""
        if rank == 0:
            return ns.number(0)
        left, right = rank * target.d, rank * target.k
        t, u = 1 / (2 * left), 1 / (2 * right)
        first = y / ns.number(theta)
        second = (y + (1 - t) * ns.number(theta)) / (1 - ns.number(theta))
        return random_cover(ns, left, first, t, ns.number(0)) + random_cover(ns, right, second, u, ns.number(0))

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "theta", 0.0, 0.999)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"theta": min(0.999, target.d / (target.d + target.k))}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.norms.rank * (target.d + target.k), 2.0)


class Schatten(CoverLemma):
    """T6."""

    name = "T6"
    family = "ranks and spectra"
    uniform = True
    quadratic = False  # the rank kept grows with y, and with it the logarithm's factor
    kinds = frozenset({"map", "query"})

    def applies(self, target: Target) -> Refusal | None:
        if target.norms.schatten is None:
            return super().applies(target) or Refusal(self.name, "no Schatten budget", 'a budget "Sp": [p, R]')
        return super().applies(target)

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        half = ns.number(1) / 2
        return self._rank(ns, y, target, half) * (target.d + target.k) * ns.log1p(4 * (2 * y - 1))

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        t = ns.number(params["t"])
        rest = (y - t) / (1 - t)
        drawn = LowRank.factors(ns, rest, self._rank(ns, y, target, t), target, target.d / (target.d + target.k))
        return ns.minimum(drawn, self.closed(ns, y, target, n))

    @staticmethod
    def _rank(ns: NumberSystem, y: Number, target: Target, t: Number) -> Number:
        schatten = target.norms.schatten
        if schatten is None:
            raise TypeError("T6 was asked for a target without a Schatten budget")
        power, relative = schatten  # the budget over op^p, so that b/eps = y/op drops out
        kept = steps(ns, ns.number(relative) * (y / t) ** ns.number(power))
        return ns.minimum(ns.number(target.norms.rank), kept)

    def check_params(self, params: Params) -> str | None:
        return inside(self.name, params, "t", 0.0, 0.999)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        if target.norms.schatten is None:
            raise TypeError("T6 was asked for a target without a Schatten budget")
        power, relative = (float(x) for x in target.norms.schatten)
        log_kept = math.log(relative) + power * log_y if relative > 0 else -math.inf  # rank kept as t -> 1
        shape = target.d + target.k

        def cost(t: float) -> float:
            kept = min(target.norms.rank, math.ceil(math.exp(min(log_kept - power * math.log(t), 60.0))) - 1)
            return kept * shape * (log_y + math.log1p(2 * (1 - t * math.exp(-log_y)) / (1 - t)))

        def whole(t: float) -> float:
            """The least t that keeps no more singular values."""
            most = math.ceil(math.exp(min(log_kept - power * math.log(t), 60.0)))
            return min(t, math.exp((log_kept - math.log(most)) / power) * (1 + 4e-12)) if most < 10**9 else t

        return {"t": min((whole(i / 20) for i in range(2, 20)), key=cost)}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.norms.rank * (target.d + target.k), 2.0)
