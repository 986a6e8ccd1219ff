"""T11-T14: covers by random centres of a chosen law, seen through noise on the spectral ball.

A centre V of density p is within eps' of W with probability at least e^-I, I = E -log p(W + eps' u) - n log eps' -
(entropy of u), for noise u on the spectral ball (Jensen); log(1 + L e^I) centres serve a net of size e^L. Everything is
scaled so that the norm's budget is 1; then eps' = (1-t)/y and the noise is `energy` large.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.statement import Statement
from boundcalc.setting.validate import shown
from boundcalc.statements.covers.base import CoverLemma, Params, Profile
from boundcalc.statements.covers.noise import (
    KEPT,
    LARGEST_SIDE,
    RANGES,
    ROUGH_SHARE,
    drawn_cover,
    gammas,
    is_number,
    levels,
    noise,
)
from boundcalc.statements.covers.tuning import Tuning, tuning
from boundcalc.statements.targets import Target


def log_ball(ns: NumberSystem, n: Number) -> Number:
    """Log volume of the unit ball of R^n."""
    return n / 2 * ns.log(ns.pi) - ns.lgamma(n / 2 + 1)


class Centres(CoverLemma):
    """What T11-T14 share: the net, the noise and the search for parameters."""

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
        if set(params) != set(self.names):
            return f"{self.name} takes the parameters {', '.join(self.names)}, got {shown(sorted(params))}"
        for name in self.names:
            low, high = RANGES[name]
            if not is_number(params[name], low, high):
                return f"{self.name} needs {low:g} <= {name} <= {high:g}, got {params[name]!r}"
        return None

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return self.tuned(target).params(log_y)

    def profile(self, target: Target, n: int) -> Profile:
        return self.tuned(target)

    def tuned(self, target: Target) -> Tuning:
        """Parameters and costs over all y, found as they are asked for."""
        return tuning(self, *self.sides(target), self.copies(target))


class Exponential(Centres):
    """T11."""

    statement = Statement(
        "T11",
        "exponential centres for a matrix with a (2,1) budget",
        r"\log N(\varepsilon)\le\log(1+Le^I),\quad I=k\log(v_dd!)+n\log\frac{eM}n-n\log\varepsilon'-h_a,\quad "
        r"M=\sqrt{K^2+c^2}+(k-1)c",
        "{x -> xW : |W|_{2,1} <= K}, n = dk, any a >= 0, 0 < t < 1; eps' = (1-t) eps/b, L = n log(1+2bK/(t eps)), "
        "c^2 = eps'^2 d/(d+k+1+2a), h_a the entropy of the noise. Uniform and independent of T.",
        "Centres of density proportional to exp(-s|V|_{2,1}), whose integral is (v_d d!/s^d)^k. By the symmetry of the "
        "noise |w+u| may be replaced by sqrt(|w|^2+|u|^2), on average at most sqrt(q^2+c^2) at |w| = q; the sum over "
        "columns is convex in their norms, so largest, M, when one column has all of K. Take s = n/M.",
    )

    def promising(self, target: Target) -> bool:
        return False  # T13, and T12 for one column, are as good or better; for tiny errors T4v

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        n, rows, columns = ns.number(d * k), ns.number(d), ns.number(k)
        kind = noise(ns, d, k, params["a"])
        c = ns.sqrt(kind.energy * rows / max(d, k)) / y
        largest = ns.sqrt(1 + c**2) + (columns - 1) * c
        mass = columns * (log_ball(ns, rows) + ns.lgamma(rows + 1))
        return mass + n * (1 + ns.log(largest / n) + ns.log(y)) - kind.entropy

    def default(self, d: int, k: int) -> Params:
        return {"a": 0.0, "t": ROUGH_SHARE}


class Gaussian(Centres):
    """T12."""

    statement = Statement(
        "T12",
        "Gaussian centres for a matrix with a Frobenius budget",
        r"\log N(\varepsilon)\le\log(1+Le^I),\quad I=\frac n2\log\Big(\frac{2\pi e}n(B^2+kc^2)\Big)"
        r"-n\log\varepsilon'-h_a",
        "{x -> xW : |W|_F <= B}, n = dk, any a >= 0, 0 < t < 1; L, eps', c as in T11 with B for K. Vectors (k = 1) "
        "are offsets and read-outs; of a table every row is one. Uniform and independent of T.",
        "Gaussian centres; E|W+eps'u|_F^2 <= B^2+kc^2 as cross terms vanish by symmetry, and (B^2+kc^2)/n is the best "
        "variance of an entry.",
    )
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

    statement = Statement(
        "T13",
        "Student columns for a matrix with a (2,1) budget",
        r"\log N(\varepsilon)\le\log(1+Le^I),\quad I=k\log\frac{\Gamma(s)(\pi\rho)^{d/2}}{\Gamma(\frac d2+s)}"
        r"+k\Big(\frac d2+s\Big)\Big(\log\Big(1+\frac{c^2}\rho\Big)+\hat f(y)\Big)-n\log\varepsilon'-h_a,\quad "
        r"y=\frac K{k\sqrt{\rho+c^2}}",
        "{x -> xW : |W|_{2,1} <= K}, n = dk, any a >= 0, s > 0, rho = r c^2 > 0, 0 < t < 1; L, eps', c as in T11. "
        "f-hat(y) = log(1+y^2) from y = 1.9803 on, 0.804743 y below. Uniform and independent of T.",
        "Columns of density proportional to (1+|v|^2/rho)^-(d/2+s), for any sizes of columns at once. -log p is "
        "concave in |v|^2, so E|w+eps'u|^2 = |w|^2+c^2 may be put in; f-hat is the least concave function above "
        "log(1+y^2), and columns of equal norm K/k are the worst for it.",
    )
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

    statement = Statement(
        "T14",
        "matrix-t centres for a nuclear or Schatten budget",
        r"\log N(\varepsilon)\le\log(1+Le^I),\quad I=\log\frac{(\pi\rho)^{n/2}\Gamma_l(\beta-\frac h2)}{\Gamma_l(\beta)}"
        r"+\beta l\Big(\log\Big(1+\frac{c^2}\rho\Big)+\hat f(y)\Big)-n\log\varepsilon'-h_a,\quad "
        r"y=\frac K{l\sqrt{\rho+c^2}}",
        "{x -> xW : |W|_* <= K}, l and h the smaller and the larger side, n = lh, any a >= 0, "
        "beta = (d+k-1)/2 + s, s > 0, rho = r c^2 > 0, 0 < t < 1; c^2 = eps'^2 h/(d+k+1+2a); L, eps', f-hat as in T13. "
        "|W|_* <= |W|_{2,1}; sum sigma^p <= R gives |W|_* <= R op^(1-p) for p <= 1, l^(1-1/p) R^(1/p) for p >= 1. "
        "Uniform and independent of T.",
        "Centres of density proportional to det(I+V'V/rho)^-beta (of W', if wider than tall). log det is concave, so "
        "E (W+eps'u)'(W+eps'u) = W'W+c^2 I may be put in: l log(1+c^2/rho) and the sum of log(1+sigma_i^2/(rho+c^2)), "
        "then as T13.",
    )
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
