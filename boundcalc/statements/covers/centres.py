"""T12-T14: covers by random centres of a chosen law, seen through noise on the spectral ball.

A centre V of density p is within eps' of W with probability at least e^-I, I = E -log p(W + eps' u) - n log eps' -
(entropy of u), for noise u on the spectral ball (Jensen); log(1 + L e^I) centres serve a net of size e^L. Everything is
scaled so that the norm's budget is 1; then eps' = (1-t)/y and the noise is `energy` large.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import CoverLemma, Params, Profile
from boundcalc.statements.covers.noise import (
    KEPT,
    LARGEST_SIDE,
    ROUGH_SHARE,
    drawn_cover,
    gammas,
    levels,
    noise,
    problem_of,
)
from boundcalc.statements.targets import Target

if TYPE_CHECKING:
    from boundcalc.statements.covers.tuning import Tuning


@cache
def _tuner() -> Callable[..., Tuning]:
    """What makes them; a checker has no use for it."""
    from boundcalc.statements.covers.tuning import tuning

    return tuning


class Centres(CoverLemma):
    """What T12-T14 share: the net, the noise and the search for parameters."""

    uniform = True
    quadratic = False  # it seems to hold, but is not proved
    kinds = frozenset({"map", "query"})
    names: ClassVar[tuple[str, ...]] = ("a", "t")

    def applies(self, target: Target) -> Refusal | None:
        sides = self.sides(target)
        if not all(isinstance(side, int) for side in sides) or min(sides) > LARGEST_SIDE:
            what = f"{target.d} x {target.k}"
            return super().applies(target) or Refusal(self.name, what, f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def sides(self, target: Target) -> tuple[int, int]:
        """Rows and columns of the matrix that one cover is of."""
        return target.d, target.k

    def copies(self, target: Target) -> int:
        """How many such matrices the target is made of."""
        del target
        return 1

    @abstractmethod
    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        """I at eps' = 1/y: a centre is right with probability at least e^-I."""

    @abstractmethod
    def default(self, d: int, k: int) -> Params:
        """Parameters of the closed form, which looks at the sides alone."""

    def count(self, ns: NumberSystem, y: Number, target: Target, params: Params) -> Number:
        """log(1 + L e^I), for every matrix of the target."""
        d, k = self.sides(target)
        t = ns.number(params["t"])
        missed = self.missed(ns, y / (1 - t), d, k, params)
        return self.copies(target) * drawn_cover(ns, ns.number(d * k), y, t, missed)

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return self.count(ns, y, target, self.default(*self.sides(target)))

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return self.count(ns, y, target, params)

    def check_params(self, params: Params) -> str | None:
        return problem_of(self.name, self.names, params)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return self.tuned(target).params(log_y)

    def profile(self, target: Target, n: int) -> Profile:
        return self.tuned(target)

    def tuned(self, target: Target) -> Tuning:
        """Parameters and costs over all y, found as they are asked for: for the optimiser alone."""
        return _tuner()(self, *self.sides(target), self.copies(target))


class Gaussian(Centres):
    """T12."""

    name = "T12"
    family = "Gaussian centres"
    kinds = frozenset({"map", "query", "vector", "table"})

    def promising(self, target: Target) -> bool:
        return target.kind in ("vector", "table") or target.k == 1 or target.norms.fro < target.norms.two_one

    def sides(self, target: Target) -> tuple[int, int]:
        return (1, target.k) if target.kind in ("vector", "table") else (target.d, target.k)

    def copies(self, target: Target) -> int:
        return target.d if target.kind == "table" else 1

    def norm(self, target: Target) -> Number:
        return target.norms.op if target.kind in ("vector", "table") else target.norms.fro

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        n = ns.number(d * k)
        kind = noise(ns, d, k, params["a"])
        total = kind.energy * min(d, k) / y**2
        return n / 2 * (ns.log(2 * ns.pi / n) + 1 + ns.log1p(total)) + n * ns.log(y) - kind.entropy

    def default(self, d: int, k: int) -> Params:
        return {"a": 0.0, "t": ROUGH_SHARE}


class StudentColumns(Centres):
    """T13."""

    name = "T13"
    family = "Student centres"
    names = ("a", "s", "r", "t")

    def promising(self, target: Target) -> bool:
        return target.k > 1

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

    def default(self, d: int, k: int) -> Params:
        return {"a": float(d), "s": d / 8, "r": 0.125, "t": ROUGH_SHARE}


class MatrixStudent(Centres):
    """T14."""

    name = "T14"
    family = "matrix-t centres"
    names = ("a", "s", "r", "t")

    def promising(self, target: Target) -> bool:
        return target.norms.nuclear < target.norms.two_one

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

    def default(self, d: int, k: int) -> Params:
        return {"a": float(max(d, k)), "s": max(d, k) / 8, "r": 0.125, "t": ROUGH_SHARE}


_TAILS: dict[tuple[str, int, int, float], Number] = {}


def log_tails(ns: NumberSystem, s: float, low: int, high: int) -> Number:
    """Logarithm of Gamma_l(beta - h/2) over Gamma_l(beta), beta = (l+h-1)/2 + s: gamma functions from s and from s + h/2 on."""
    key = (ns.name, low, high, s)
    if key in _TAILS:
        return _TAILS[key]
    start = ns.number(s)
    found = gammas(ns, start, low) - gammas(ns, start + ns.number(high) / 2, low)
    if ns.name in KEPT:
        _TAILS[key] = found
    return found
