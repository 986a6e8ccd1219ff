"""T13, T14: covers by random centres of a chosen law, seen through noise on the spectral ball.

A centre V of density p is within eps' of W with probability at least e^-I, I = E -log p(W + eps' u) - n log eps' -
(entropy of u), for noise u on the spectral ball (Jensen); log(1 + L e^I) centres serve a net of size e^L. Everything is
scaled so that the norm's budget is 1; then eps' = (1-t)/y and the noise is `energy` large.
"""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.covers.base import Params
from boundcalc.statements.covers.laws import LARGEST_SIDE, RANGES, Law, matrix_student, noise, student_columns
from boundcalc.statements.targets import Target


class Centres(Law):
    """What T13 and T14 share: the net and the noise."""

    kinds = frozenset({"map", "query"})
    ranges = RANGES

    def applies(self, target: Target) -> Refusal | None:
        least = min(target.d, target.k)
        if not isinstance(least, int) or least > LARGEST_SIDE:
            what = f"{target.d} x {target.k}"
            return super().applies(target) or Refusal(self.name, what, f"a side of at most {LARGEST_SIDE}")
        return super().applies(target)

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        side = max(target.d, target.k)
        return self.sharp(ns, y, target, n, {"a": float(side), "s": side / 8, "r": 0.125, "t": 0.5})

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
        """log(1 + L e^I), L = n log(1+2y/t), as I + log L + e^-I/L, which is larger and never overflows."""
        t = ns.number(params["t"])
        missed = self.missed(ns, y / (1 - t), target.d, target.k, params)
        net = ns.number(target.size) * ns.log1p(2 * y / t)
        return missed + ns.log(net) + ns.exp(-missed) / net


class StudentColumns(Centres):
    """T13."""

    name = "T13"

    def norm(self, target: Target) -> Number:
        return target.norms.two_one

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        kind = noise(ns, d, k, params["a"])
        energy = kind.energy * ns.number(d) / max(d, k)
        return student_columns(ns, d, k, y, params, energy) - kind.entropy


class MatrixStudent(Centres):
    """T14."""

    name = "T14"

    def norm(self, target: Target) -> Number:
        return target.norms.nuclear

    def missed(self, ns: NumberSystem, y: Number, d: int, k: int, params: Params) -> Number:
        kind = noise(ns, d, k, params["a"])
        return matrix_student(ns, d, k, y, params, kind.energy) - kind.entropy
