"""L3 and L12: entrywise non-linearities, and entries that are bent to stay below a cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.base.schema import Positive, Size
from boundcalc.layers.base import Weightless, register_layer
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward

ACTIVATION_LIPSCHITZ = {
    "relu": 1.0,
    "gelu": 1.12891,
    "gelu_tanh": 1.12900,
    "silu": 1.09984,
    "quick_gelu": 1.09984,
    "tanh": 1.0,
    "identity": 1.0,
}
"""L3, rounded up; all of these also satisfy |s(x)| <= |x|."""
Function = Literal["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "tanh", "identity"]


@register_layer
@dataclass(frozen=True, slots=True)
class Activation(Weightless):
    """An entrywise non-linearity."""

    label = "activation"
    noise_fields = ()

    name: Function = "relu"

    def facts(self, at: Context) -> Facts:
        return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[self.name]), (), ("L3",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.activations[self.name](x)


@register_layer
@dataclass(frozen=True, slots=True)
class SoftCap(Weightless):
    """x -> cap tanh(x / cap), entry by entry, on rows of width d."""

    label = "softcap"

    d: Size
    cap: Positive

    def facts(self, at: Context) -> Facts:
        ns = at.ns
        reach = ns.minimum(at.radius, ns.number(self.cap) * ns.sqrt(ns.number(self.d)))
        return Facts(reach, ns.number(1), (), ("L12",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return self.cap * run.xp.tanh(x / self.cap)
