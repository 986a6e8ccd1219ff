"""T13, T14: covers by random centres of a chosen law, seen through noise on the spectral ball.

A centre V of density p is within eps' of W with probability at least e^-I, I = E -log p(W + eps' u) - n log eps' -
(entropy of u), for noise u on the spectral ball (Jensen); log(1 + L e^I) centres serve a net of size e^L. Everything is
scaled so that the norm's budget is 1; then eps' = (1-t)/y and the noise is `energy` large.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params
from boundcalc.statements.covers.noise import LARGEST_SIDE, drawn_cover, gammas, levels, noise, problem_of
from boundcalc.statements.targets import Target


class Centres(CoverLemma):
    """What T13 and T14 share: the net, the noise and the search for parameters."""

    uniform = True
    quadratic = False  # it seems to hold, but is not proved
    kinds = frozenset({"map", "query"})
    names: ClassVar[tuple[str, ...]] = ("a", "s", "r", "t")

    def applies(self, target: Target) -> Refusal | None:
        least = min(target.d, target.k)
        if not isinstance(least, int) or least > LARGEST_SIDE:
            what = f"{target.d} x {target.k}"
            return super().applies(target) or Refusal(self.name, what, f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    @abstractmethod
    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        """I at eps' = 1/y: a centre is right with probability at least e^-I."""

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        side = max(target.d, target.k)
        return self.sharp(ns, y, target, n, {"a": float(side), "s": side / 8, "r": 0.125, "t": 0.5})

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        """log(1 + L e^I)."""
        t = ns.number(params["t"])
        missed = self.missed(ns, y / (1 - t), target.d, target.k, params)
        return drawn_cover(ns, ns.number(target.size), y, t, missed)

    def check_params(self, params: Params) -> str | None:
        return problem_of(self.name, self.names, params)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        from boundcalc.statements.covers.tuning import tuned  # a checker has no use for it

        return tuned(self, target.d, target.k, log_y)


class StudentColumns(Centres):
    """T13."""

    name = "T13"

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        rows, columns, one = ns.number(d), ns.number(k), ns.number(1)
        s, r = ns.number(params["s"]), ns.number(params["r"])
        kind = noise(ns, d, k, params["a"])
        energy = kind.energy * rows / max(d, k)
        power = rows / 2 + s
        spread = ns.log1p(one / r) + levels(ns, y / (columns * ns.sqrt(energy * (1 + r))))
        column = ns.lgamma(s) - ns.lgamma(power) + rows / 2 * ns.log(ns.pi * r * energy) + power * spread
        return columns * column - kind.entropy


class MatrixStudent(Centres):
    """T14."""

    name = "T14"

    def norm(self, target: Target) -> Number:
        return target.norms.nuclear

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        low, high = min(d, k), max(d, k)
        n, one = ns.number(d * k), ns.number(1)
        s, r = ns.number(params["s"]), ns.number(params["r"])
        kind = noise(ns, d, k, params["a"])
        power = ns.number(low + high - 1) / 2 + s
        spread = ns.log1p(one / r) + levels(ns, y / (low * ns.sqrt(kind.energy * (1 + r))))
        mass = n / 2 * ns.log(ns.pi * r * kind.energy) + log_tails(ns, params["s"], low, high)
        return mass + power * low * spread - kind.entropy


@lru_cache(maxsize=1 << 16)
def log_tails(ns: NumberSystem, s: float, low: int, high: int) -> Number:
    """Log of Gamma_l(beta - h/2) over Gamma_l(beta), beta = (l+h-1)/2 + s: from s and from s + h/2 on."""
    start = ns.number(s)
    return gammas(ns, start, low) - gammas(ns, start + ns.number(high) / 2, low)
