"""T: covers of one linear map. Each lemma's cost is one function, generic over the number system.

Throughout y = reach / eps, the reach being radius times norm budget (bB in docs/theory.md): the cost of
every lemma is 0 once y <= 1, because then the centre 0 alone is a cover.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import ClassVar

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.validate import shown
from boundcalc.layers.facts import Target

Params = Mapping[str, float]
ABOVE_0 = math.ulp(0.0)
"""The least of the floats above 0."""


class CoverLemma(ABC):
    """A bound on log N for one linear map.

    Attributes:
        name: as docs/theory.md, certificates and policies have it.
        text: its entry, "### NAME. Title" and what follows in the manner of docs/theory.md, where it has none there.
        uniform: whether one cover serves every sample (no points are counted). Its centres are maps of the same kind,
            within eps on the whole ball: a level that refines may cover the map that such a centre leaves.
        kinds: the kinds of target it is made for.
        published: whether it has the word of the literature only (PUB), so that only published strategies may use it.
        ranges: of each parameter that a certificate gives.
        quadratic: whether closed(y) <= y^2 closed(1) for all y >= 1, so that the closed forms of G may extend it.
    """

    name: ClassVar[str]
    text: ClassVar[str] = ""
    uniform: ClassVar[bool]
    kinds: ClassVar[frozenset[str]]
    published: ClassVar[bool] = False
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    quadratic: ClassVar[bool] = True

    def applies(self, target: Target) -> Refusal | None:
        """Why the lemma cannot be used on this target, or None."""
        if target.kind not in self.kinds:
            return Refusal(self.name, f"a {target.kind}", f"a {' or '.join(sorted(self.kinds))}")
        return None

    @abstractmethod
    def norm(self, target: Target) -> Number:
        """The norm that the lemma's budget limits."""

    def reach(self, target: Target) -> Number:
        """Radius * norm: the scale at which the cost becomes 0."""
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
        if set(params) != set(self.ranges):
            return f"{self.name} takes the parameters {', '.join(self.ranges) or 'none'}, got {shown(sorted(params))}"
        for name, (low, high) in self.ranges.items():
            if not isinstance(params[name], int | float) or not low <= params[name] <= high:
                return f"{self.name} needs {low:g} <= {name} <= {high:g}, got {params[name]!r}"
        return None

    def params(self, log_y: float, target: Target, n: int) -> Params:
        """Near-optimal parameters; any admissible ones are valid."""
        del log_y, target, n
        return {}

    def shape(self, target: Target) -> Hashable:
        """What the cost depends on besides y and n, for searches that tabulate it."""
        return target.kind, target.d, target.k, target.norms.rank


def random_cover(ns: NumberSystem, n: Number, y: Number, t: Number) -> Number:
    """log(1 + n log(1+2y/t) (1 + y/(1-t))^n): so many random centres miss less than one point of a net of a ball.

    The outer log(1 + x) is taken as log x + 1/x, which is larger and never overflows.
    """
    net, tail = n * ns.log1p(2 * y / t), n * ns.log1p(y / (1 - t))
    return ns.log(net) + tail + ns.exp(-tail) / net


def cover_uses(lemma: str, kind: str, *, uniform: bool) -> tuple[str, ...]:
    """What a cover of a target of some kind is based on: the lemma, and for a bilinear score how it is seen."""
    if kind == "score":
        return "S1", lemma
    if kind in ("query", "key"):
        return "S3" if uniform else "S2", lemma
    return (lemma,)
