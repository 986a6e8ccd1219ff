"""T1, T2: perceptron covers, which count points and so depend on T through a logarithm; and their published form."""

from __future__ import annotations

import math

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.sources import EDELMAN2022, ZHANG2002
from boundcalc.base.statement import Statement
from boundcalc.statements.covers.base import CoverLemma, Params, Power, Profile, inside, lattice, steps
from boundcalc.statements.targets import Target

_WHOLE_STEPS = 4.6
"""Below e^4.6 = 100 steps it matters that they are whole."""


class Perceptron(CoverLemma):
    """T1."""

    statement = Statement(
        "T1",
        "perceptron cover of a scalar linear function",
        r"\log N(\varepsilon) \le \log\#\{n\in\mathbb Z^N:|n|_1\le\lceil a\rceil-1\} \le a\log(2N+1),\quad "
        r"a=(bB/\varepsilon)^2",
        "{x -> <x, w> : |w|_2 <= B} in any Hilbert space, on N distinct points of norm at most b. For "
        "bilinear scores x W z^T the vector is W with |W|_F <= B and the radius |x||z|. Empirical.",
        "Start at v = 0; while some |<w - v, x_i>| > eps, add (eps/b^2) sign(.) x_i to v. Each step lowers |w"
        " - v|^2 by more than eps^2/b^2, so fewer than a steps happen. v depends on how often each signed "
        "point was added, and +x_i cancels -x_i: it is an integer vector of length N whose l1 norm is at most"
        " ceil(a) - 1.",
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
        return lattice(ns, n, steps(ns, y**2))

    def profile(self, target: Target, n: int) -> Profile:
        return Power(math.log(2 * n + 1))


class MatrixPerceptron(CoverLemma):
    """T2."""

    statement = Statement(
        "T2",
        "perceptron cover of a matrix with a (2,1) budget",
        r"\log N(\varepsilon) \le a\,\Lambda(k,N),\quad "
        r"\Lambda(k,N)=\min_{\rho>1}\rho\log\frac{(2Nk+1)\rho^2}{\rho-1},\quad a=(bB/\varepsilon)^2",
        "{x -> xW : |W|_{2,1} <= B}, k columns, N distinct points of norm at most b, metric max_i |x_i (W - "
        "V)|_2. Empirical.",
        "Column j gets the tolerance eps rho^(-i_j/2), i_j the least number with rho^(-i_j) <= |w_j|/B; the "
        "squares sum to at most eps^2 and T1 makes fewer than rho a steps in all. The cover element is known "
        "from the net number of steps per (column, point), an integer vector of length Nk, and the levels of "
        "the q <= min(k, steps) columns with any. A level is below 2 + log_rho(a); coded with weights "
        "(1-1/rho) rho^(i - i_max) the q levels cost at most q log(rho/(rho-1)) + sum_j log(rho^2 a "
        "rho^(-i_j)) <= q [log(rho/(rho-1)) + log(rho^2 a/q)] nats by concavity, which grows with q up to rho"
        " a.",
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

    statement = Statement(
        "Tpub",
        "linear covers with the published constant",
        r"\log N(\varepsilon) \le 36a\log\big(2\lceil 4bB/\varepsilon+2\rceil N+1\big),\quad "
        r"a=(bB/\varepsilon)^2",
        "As T1 (|W|_F) and T2 (|W|_{2,1}, N k points). Empirical. For comparison only: T1 and T2 are never larger.",
        "As published (base-2 logarithms on both sides, so the base drops out).",
        "36, and 1/eps inside the logarithm",
        ZHANG2002,
    )
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
