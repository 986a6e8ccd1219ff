"""T: covers of one linear map. Each lemma's cost is one function, generic over the number system.

Throughout y = reach / eps, the reach being radius times norm budget (bB in docs/theory.md): the cost of
every lemma is 0 once y <= 1, because then the centre 0 alone is a cover.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.calculus.targets import Target
from boundcalc.errors import Refusal
from boundcalc.numbers import FLOAT, Number, NumberSystem
from boundcalc.sources import EDELMAN2022, SAKAI2026, TRAUGER2024, TRUONG2024, ZHANG2002
from boundcalc.statement import Statement

Params = Mapping[str, float]


_WHOLE_STEPS = 4.6
"""Below e^4.6 = 100 steps it matters that they are whole."""


@dataclass(frozen=True, slots=True)
class Power:
    """A cost that behaves like coefficient * y^2."""

    coefficient: float


@dataclass(frozen=True, slots=True)
class Volume:
    """A cost that behaves like dimension * log(1 + factor * y)."""

    dimension: float
    factor: float


Profile = Power | Volume


def lattice(ns: NumberSystem, n: Number, s: Number) -> Number:
    """log of the number D(n, s) of integer vectors of length n with l1 norm at most s: the least of three upper bounds.

    (2n+1)^s; ((2n+1)^2 + (s-1)(2s-1)/3)^(s/2) / s!, because s! D(n, s) = M q_(s-1) + (s-1)^2 q_(s-2) with M = 2n+1 has
    imaginary roots only, whose squares have this mean (s! by Robbins' lower bound); and the generating function
    ((1+z)/(1-z))^n z^(-s) at its best z, which is n asinh(s/n) + s asinh(n/s).
    """
    if s == 0:
        return ns.number(0)
    wide = 2 * n + 1
    direct = s * ns.log(wide)
    mean = s / 2 * ns.log(wide**2 + (s - 1) * (2 * s - 1) / 3)
    roots = mean - s * ns.log(s) + s - ns.log(2 * ns.pi * s) / 2 - 1 / (12 * s + 1)
    hypotenuse = ns.sqrt(n * n + s * s)
    up = s / n * (1 + s / (n + hypotenuse))  # s/n + sqrt(1+(s/n)^2) - 1, and likewise below, without cancellation
    generating = n * ns.log1p(up) + s * ns.log1p((n + n * n / (hypotenuse + s)) / s)
    return ns.minimum(direct, roots, generating)


class CoverLemma(ABC):
    """A bound on log N for one linear map.

    Attributes:
        statement: the lemma in words.
        uniform: whether one cover serves every sample (no points are counted).
        kinds: the kinds of target it is made for.
    """

    statement: ClassVar[Statement]
    uniform: ClassVar[bool]
    kinds: ClassVar[frozenset[str]]

    @property
    def name(self) -> str:
        """The statement's name."""
        return self.statement.name

    def applies(self, target: Target) -> Refusal | None:
        """Why the lemma cannot be used on this target, or None."""
        if target.kind not in self.kinds:
            return Refusal(self.name, f"a {target.kind}", f"a {' or '.join(sorted(self.kinds))}")
        return None

    @abstractmethod
    def norm(self, target: Target) -> Number:
        """The norm that the lemma's budget limits."""

    def reach(self, target: Target) -> Number:
        """radius * norm: the scale at which the cost becomes 0."""
        return target.radius * self.norm(target)

    @abstractmethod
    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        """The cost a paper would print, on n points."""

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        """The least cost this library can prove, with the optimiser's parameters."""
        del params
        return self.closed(ns, y, target, n)

    def check_params(self, params: Params) -> str | None:
        """What is wrong with parameters from a certificate, or None."""
        return None if not params else f"{self.name} takes no parameters, got {sorted(params)}"

    def params(self, log_y: float, target: Target, n: int) -> Params:
        """Near-optimal parameters; any admissible ones are valid."""
        del log_y, target, n
        return {}

    @abstractmethod
    def profile(self, target: Target, n: int) -> Profile:
        """How the cost grows with y, for the optimiser."""


def _inside(name: str, params: Params, key: str, low: float, high: float) -> str | None:
    if set(params) != {key}:
        return f"{name} takes the parameter {key}, got {sorted(params)}"
    value = params[key]
    if not isinstance(value, float) or not low < value <= high:
        return f"{name} needs {low:g} < {key} <= {high:g}, got {value!r}"
    return None


def _steps(ns: NumberSystem, a: Number) -> Number:
    """ceil(a) - 1, the most steps of a perceptron whose potential is a."""
    return ns.ceil(a) - 1


class Perceptron(CoverLemma):
    """T1."""

    statement = Statement(
        "T1",
        "perceptron cover of a scalar linear function",
        r"\log N(\varepsilon) \le \log\#\{n\in\mathbb Z^N:|n|_1\le\lceil a\rceil-1\} \le a\log(2N+1),"
        r"\quad a=(bB/\varepsilon)^2",
        "{x -> <x, w> : |w|_2 <= B} in any Hilbert space, on N distinct points of norm at most b. For bilinear scores "
        "x W z^T the vector is W with |W|_F <= B and the radius |x||z|. Empirical.",
        "Start at v = 0; while some |<w - v, x_i>| > eps, add (eps/b^2) sign(.) x_i to v. Each step lowers |w - v|^2 by "
        "more than eps^2/b^2, so fewer than a steps happen. v depends on how often each signed point was added, and "
        "+x_i cancels -x_i: it is an integer vector of length N whose l1 norm is at most ceil(a) - 1.",
        "published with factor 36 and 1/eps inside the logarithm",
        ZHANG2002,
    )
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

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return lattice(ns, n, _steps(ns, y**2))

    def profile(self, target: Target, n: int) -> Profile:
        return Power(math.log(2 * n + 1))


class MatrixPerceptron(CoverLemma):
    """T2."""

    statement = Statement(
        "T2",
        "perceptron cover of a matrix with a (2,1) budget",
        r"\log N(\varepsilon) \le a\,\Lambda(k,N),\quad \Lambda(k,N)=\min_{\rho>1}"
        r"\rho\log\frac{(2Nk+1)\rho^2}{\rho-1},\quad a=(bB/\varepsilon)^2",
        "{x -> xW : |W|_{2,1} <= B}, k columns, N distinct points of norm at most b, metric max_i |x_i (W - V)|_2. Empirical.",
        "Column j gets the tolerance eps rho^(-i_j/2), i_j the least number with rho^(-i_j) <= |w_j|/B; the squares sum to at "
        "most eps^2 and T1 makes fewer than rho a steps in all. The cover element is known from the net number of steps per "
        "(column, point), an integer vector of length Nk, and the levels of the q <= min(k, steps) columns with any. A level is "
        "below 2 + log_rho(a); coded with weights (1-1/rho) rho^(i - i_max) the q levels cost at most "
        "q log(rho/(rho-1)) + sum_j log(rho^2 a rho^(-i_j)) <= q [log(rho/(rho-1)) + log(rho^2 a/q)] nats by concavity, "
        "which grows with q up to rho a.",
        "the constant is suppressed where published",
        EDELMAN2022,
    )
    uniform = False
    kinds = frozenset({"map", "query", "key"})

    def norm(self, target: Target) -> Number:
        return target.norms.two_one_t if target.kind == "key" else target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return y**2 * self.constant(ns, target.k, n)

    @staticmethod
    def constant(ns: NumberSystem, k: Number, n: Number) -> Number:
        """Lambda(k, N) at rho = 1 + 1/log(2Nk+1), near its minimum."""
        wide = 2 * n * k + 1
        rho = 1 + 1 / ns.log(wide)
        return rho * ns.log(wide * rho**2 / (rho - 1))

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        rho = ns.number(params["rho"])
        a = y**2
        steps = _steps(ns, rho * a)
        if steps == 0:
            return ns.number(0)
        active = ns.minimum(ns.number(target.k), steps)
        coded = ns.log(rho / (rho - 1)) + ns.log(rho**2 * a / active)
        listed = ns.log(ns.ceil(2 + ns.log(a) / ns.log(rho)))
        return lattice(ns, n * target.k, steps) + active * ns.minimum(coded, listed)

    def check_params(self, params: Params) -> str | None:
        return _inside(self.name, params, "rho", 1.0, 10.0)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        log_a = 2 * max(log_y, 0.0)
        step = max(1.0, math.log(2 * n * target.k + 1) - log_a + 1)  # what one more step costs
        crowded = step * math.exp(min(log_a - math.log(target.k), 18.0))  # more steps than columns: levels are paid once
        rho = 1 + 1 / max(step + math.log(1 + step), crowded)
        if log_a < _WHOLE_STEPS:
            rho = math.ceil(rho * math.exp(log_a)) * (1 - 4e-12) / math.exp(log_a)  # steps are whole: use the last one up
        return {"rho": rho}

    def profile(self, target: Target, n: int) -> Profile:
        size = math.log(2 * n * target.k + 1)
        return Power(size + 1 + math.log(size + 1))


class Maurey(CoverLemma):
    """T3."""

    statement = Statement(
        "T3",
        "rounding cover of a matrix with a (1,1) budget",
        r"\log N(\varepsilon) \le \log D\big(dk,\max(1,\lceil a/2\rceil)\big)\quad\text{and}\quad \log N(\varepsilon) \le "
        r"\lambda(\tfrac a2+2)+dk\log\Big(1+2e^{-2\lambda}+\frac{2e^{-8\lambda/3}}{1-e^{-\lambda}}\Big),\quad a=(bB/\varepsilon)^2",
        "{x -> xW : |W|_{1,1} <= B}, d x k, any lambda > 0; D(n, s) counts integer vectors with l1 norm at most s. Uniform and "
        "independent of T.",
        "Let y = sW/B, |y|_1 <= s, with fractional parts f. Rounding every entry towards zero costs sum f^2, systematic random "
        "rounding costs sum f(1-f) on average, and either has l1 norm at most s; the less is at most s/2, so (B/s) times an integer "
        "matrix is within B/sqrt(2s) in Frobenius norm. Second form: at s = a/2 round so that entries 1 have weight 2 and "
        "entries n >= 2 weight n + 2/3; a fractional rounding of total weight at most s and cost at most s/2 exists entry by entry "
        "and a vertex of that linear programme has one fractional entry, rounded up. Count by exp(lambda(weight)).",
        "Maurey's argument with ceil(a) draws gives twice the first and about four times the second",
        TRAUGER2024,
    )
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
        return _inside(self.name, params, "lam", 0.0, 200.0)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        weight = math.exp(min(2 * log_y, 80.0)) / 2 + 2
        return {"lam": max(0.05, 0.5 * math.log(1 + 4 * target.size / weight))}

    def profile(self, target: Target, n: int) -> Profile:
        return Power(0.3 * math.log(2 * target.size + 1))


class Volumetric(CoverLemma):
    """T4."""

    statement = Statement(
        "T4",
        "volumetric cover of the spectral ball",
        r"\log N(\varepsilon) \le dk\log(1+2bB/\varepsilon)",
        "{x -> xW : |W|_op <= B}, d x k. Uniform and independent of T.",
        "A maximal eps/b-packing of the ball is a cover, and balls of half that radius around it are disjoint in a ball "
        "of radius B + eps/(2b).",
    )
    uniform = True
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.size) * ns.log1p(2 * y)

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 2.0)


def random_cover(ns: NumberSystem, n: Number, y: Number, t: Number, excess: Number) -> Number:
    """log(1 + (n log(1+2y/t) + R) e^R (1 + y/(1-t))^n): so many random centres miss less than one point of a net.

    R = `excess` >= 0 is the log of how much larger the body is, in volume, than the unit ball of the metric.
    The outer log(1 + x) is taken as log x + 1/x, which is larger and never overflows.
    """
    net = n * ns.log1p(2 * y / t) + excess
    tail = n * ns.log1p(y / (1 - t)) + excess
    return ns.log(net) + tail + ns.exp(-tail) / net


class RandomCover(Volumetric):
    """T4r."""

    statement = Statement(
        "T4r",
        "random cover of the spectral ball",
        r"\log N(\varepsilon) \le \log\Big(1+n\log\big(1+\tfrac{2}{tx}\big)\big(1+\tfrac{1}{(1-t)x}\big)^n\Big),"
        r"\quad x=\varepsilon/(bB),\ n=dk",
        "{x -> xW : |W|_op <= B}, any 0 < t < 1. Uniform and independent of T; about n log(1+1/x).",
        "Take a tx-net of the unit ball and M uniform points of the ball of radius 1+(1-t)x. A point of the net is "
        "farther than (1-t)x from all of them with probability at most (1-p)^M, p = ((1-t)x/(1+(1-t)x))^n; with "
        "M = floor(log|net|/p)+1 fewer than one point of the net is missed on average, so none for some draw.",
    )

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return random_cover(ns, ns.number(target.size), y, ns.number(params["t"]), ns.number(0))

    def check_params(self, params: Params) -> str | None:
        return _inside(self.name, params, "t", 0.0, 0.75)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / target.size)}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 1.0)


class ColumnBody(RandomCover):
    """T4v."""

    statement = Statement(
        "T4v",
        "random cover of the (2,1) ball in spectral norm",
        r"\log N(\varepsilon) \le n\log\Big(1+\frac{2bK}{\lambda\varepsilon}\Big)+R,\quad \lambda=\sqrt{k\min(d,k)},"
        r"\quad R=n\log\lambda+\log\mathrm{vol}\,B_{2,1}-\log\mathrm{vol}\,B_{\mathrm{op}}",
        "{x -> xW : |W|_{2,1} <= K}, n = dk. Uniform and independent of T; better than T4 when K < lambda C_op e^(-R/n). The factor "
        "2 goes as in T4r.",
        "|x(W-V)| <= b|W-V|_op. The spectral ball of radius h lies in the (2,1)-ball of radius lambda h; vol B_{2,1} = "
        "(v_d d!)^k/(dk)! with v_d the volume of the unit ball of R^d, and vol B_op = pi^(n/2) prod_{i<=k} "
        "Gamma((i+1)/2)/Gamma((d+i+1)/2). Compare volumes as in T4, or draw centres as in T4r.",
    )
    _norm = "21"

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        scale, excess = _body(ns, self._norm, target.d, target.k)
        return ns.number(target.size) * ns.log1p(2 * y / scale) + excess

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        scale, excess = _body(ns, self._norm, target.d, target.k)
        return random_cover(ns, ns.number(target.size), y / scale, ns.number(params["t"]), excess)

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 1 / float(_body(FLOAT, self._norm, target.d, target.k)[0]))


class FrobeniusBody(ColumnBody):
    """T4f."""

    statement = Statement(
        "T4f",
        "random cover of the Frobenius ball in spectral norm",
        r"\log N(\varepsilon) \le n\log\Big(1+\frac{2bB}{\sqrt q\,\varepsilon}\Big)+R,\quad q=\min(d,k),"
        r"\quad R=\tfrac n2\log q+\log v_n-\log\mathrm{vol}\,B_{\mathrm{op}}",
        "{x -> xW : |W|_F <= B}, n = dk. Uniform and independent of T; better than T4 when B < sqrt(q) C_op e^(-R/n).",
        "As T4v, with |W|_F <= sqrt(q) |W|_op.",
    )
    _norm = "F"

    def norm(self, target: Target) -> Number:
        return target.norms.fro


def log_ball(ns: NumberSystem, n: Number) -> Number:
    """log volume of the unit ball of R^n."""
    return n / 2 * ns.log(ns.pi) - ns.lgamma(n / 2 + 1)


def log_spectral_ball(ns: NumberSystem, d: int, k: int) -> Number:
    """log volume of the unit spectral ball of R^(d x k)."""
    low, high = min(d, k), max(d, k)
    total = ns.number(low * high) / 2 * ns.log(ns.pi)
    for i in range(1, low + 1):
        total = total + ns.lgamma(ns.number(i + 1) / 2) - ns.lgamma(ns.number(high + i + 1) / 2)
    return total


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

    statement = Statement(
        "T5",
        "low-rank cover",
        r"\log N(\varepsilon) \le r(d+k)\log(1+4bB/\varepsilon),\quad\text{with random centres about } r(d+k)\log(1+2bB/\varepsilon)",
        "{x -> xW : rank W <= r, |W|_op <= B}. Uniform and independent of T.",
        "W = B P Q with |P|_op, |Q|_op <= 1. Cover P at x_1 and Q at x_2. Centres within the unit ball (T4): the error is at most "
        "x_1 + x_2. Random centres (T4r): |P'|_op <= 1 + (1-t) x_1, the error is at most x_1 + (1 + (1-t) x_1) x_2.",
        source=TRUONG2024,
    )
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
        return self.factors(ns, y, ns.number(target.norms.rank), target, params["theta"])

    @staticmethod
    def factors(ns: NumberSystem, y: Number, rank: Number, target: Target, theta: float) -> Number:
        """The cover of W/B = PQ at 1/y: P at theta/y, Q at what is left, both by random centres with t = 1/(2rd), 1/(2rk)."""
        if rank == 0:
            return ns.number(0)
        left, right = rank * target.d, rank * target.k
        t, u = 1 / (2 * left), 1 / (2 * right)
        first = y / ns.number(theta)
        second = (y + (1 - t) * ns.number(theta)) / (1 - ns.number(theta))
        return random_cover(ns, left, first, t, ns.number(0)) + random_cover(ns, right, second, u, ns.number(0))

    def check_params(self, params: Params) -> str | None:
        return _inside(self.name, params, "theta", 0.0, 0.999)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"theta": min(0.999, target.d / (target.d + target.k))}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.norms.rank * (target.d + target.k), 2.0)


class Schatten(CoverLemma):
    """T6."""

    statement = Statement(
        "T6",
        "Schatten-p cover",
        r"\log N(\varepsilon) \le r(d+k)\log\Big(1+\frac{4(bB-t\varepsilon)}{(1-t)\varepsilon}\Big),"
        r"\quad r=\min\big(d,k,\lceil R(b/(t\varepsilon))^p\rceil-1\big)",
        "{x -> xW : sum sigma_i^p <= R, |W|_op <= B}, 0 < p <= 2, any 0 < t < 1. Uniform and independent of T.",
        "Lower every singular value by t eps/b, to no less than 0: an error of at most t eps, norm at most B - t eps/b, and fewer than "
        "R (b/(t eps))^p remain. Cover what remains by T5 at (1-t) eps.",
        source=SAKAI2026,
    )
    uniform = True
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
        return T5.factors(ns, rest, self._rank(ns, y, target, t), target, target.d / (target.d + target.k))

    @staticmethod
    def _rank(ns: NumberSystem, y: Number, target: Target, t: Number) -> Number:
        schatten = target.norms.schatten
        if schatten is None:
            raise TypeError("T6 was asked for a target without a Schatten budget")
        power, relative = schatten  # the budget over op^p, so that b/eps = y/op drops out
        kept = _steps(ns, relative * (y / t) ** power)
        return ns.minimum(ns.number(target.norms.rank), kept)

    def check_params(self, params: Params) -> str | None:
        return _inside(self.name, params, "t", 0.0, 0.999)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": 0.8}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.norms.rank * (target.d + target.k), 2.0)


class Offset(RandomCover):
    """T8 and T9b."""

    statement = Statement(
        "T8",
        "cover of an offset",
        r"\log N(\varepsilon) \le k\log(1+2|c|_2/\varepsilon)",
        "{c in R^k : |c|_2 <= B}, added to every row (a bias, T8, or a LayerNorm offset, T9b). Uniform and independent of T.",
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
        "A table of V rows of norm at most B, looked up by index (tokens or positions); rows covered as in T4r. Uniform; "
        "learned positions have V = T rows, and then nothing is independent of T.",
        "The metric is the largest l2 distance of a row, so the rows are covered one by one. (T2 applies too: a table is "
        "linear on one-hot points, b = 1, N = min(mT, V).)",
    )
    uniform = True
    kinds = frozenset({"table"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return ns.number(target.size) * ns.log1p(2 * y)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        return target.d * random_cover(ns, ns.number(target.k), y, ns.number(params["t"]), ns.number(0))

    def check_params(self, params: Params) -> str | None:
        return _inside(self.name, params, "t", 0.0, 0.75)

    def params(self, log_y: float, target: Target, n: int) -> Params:
        return {"t": min(0.5, 1 / target.k)}

    def profile(self, target: Target, n: int) -> Profile:
        return Volume(target.size, 1.0)


class PublishedPerceptron(CoverLemma):
    """PUB in place of T1 and T2."""

    statement = Statement(
        "Tpub",
        "linear covers with the published constant",
        r"\log N(\varepsilon) \le 36a\log\big(2\lceil 4bB/\varepsilon+2\rceil N+1\big),\quad a=(bB/\varepsilon)^2",
        "As T1 (|W|_F) and T2 (|W|_{2,1}, N k points). Empirical. For comparison only: T1 and T2 are never larger.",
        "As published (base-2 logarithms on both sides, so the base drops out).",
        "36, and 1/eps inside the logarithm",
        ZHANG2002,
    )
    uniform = False
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


T1, T2, T3 = Perceptron(), MatrixPerceptron(), Maurey()
T4, T4R, T4V, T4F = Volumetric(), RandomCover(), ColumnBody(), FrobeniusBody()
T5, T6, T8, T9, T10 = LowRank(), Schatten(), Offset(), Gain(), Table()
TPUB = PublishedPerceptron()

LEMMAS: dict[str, CoverLemma] = {
    lemma.name: lemma for lemma in (T1, T2, T3, T4, T4R, T4V, T4F, T5, T6, T8, T9, T10, TPUB)
}
"""Every covering lemma by name; registering one enrols it in the law tests."""
