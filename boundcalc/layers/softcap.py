"""L12: entries that are bent to stay below a cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from flint import arb

from boundcalc.base.schema import Positive, Size
from boundcalc.base.system import Number
from boundcalc.layers.activation import capped, saturate
from boundcalc.layers.base import Weightless, register_layer
from boundcalc.layers.facts import Context, End, Facts
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class SoftCap(Weightless):
    """x -> cap tanh(x / cap), entry by entry, on rows of width d."""

    label: ClassVar[str] = "softcap"
    title: ClassVar[str] = "soft cap"

    d: Size
    cap: Positive

    def facts(self, at: Context) -> Facts:
        ns = at.ns
        reach = ns.minimum(at.radius, ns.number(self.cap) * ns.sqrt(ns.number(self.d)))
        return Facts(reach, ns.number(1), (), ("L12",))

    def reach(self, at: Context) -> Number:
        return saturate(self.cap * arb(self.d).sqrt(), at.radius)

    def margin(self, end: End) -> Number | None:
        return capped(self.cap, end)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return self.cap * run.xp.tanh(x / self.cap)
