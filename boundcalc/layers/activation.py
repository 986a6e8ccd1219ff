"""L3 and L12: entrywise non-linearities, and entries that are bent to stay below a cap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from flint import arb

from boundcalc.base import validate
from boundcalc.base.schema import Positive, Size
from boundcalc.base.system import Number
from boundcalc.layers.base import Proved, Weightless, register_layer
from boundcalc.layers.facts import Context, End, Facts
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
ACTIVATIONS = tuple(ACTIVATION_LIPSCHITZ)
Function = Annotated[str, partial(validate.choice, options=ACTIVATIONS)]


@register_layer
@dataclass(frozen=True, slots=True)
class Activation(Weightless):
    """An entrywise non-linearity."""

    label: ClassVar[str] = "activation"
    noise_fields: ClassVar[Proved] = {}

    name: Function = "relu"

    def facts(self, at: Context) -> Facts:
        return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[self.name]), (), ("L3",))

    def idle(self, radius: Number) -> bool:
        return self.name == "identity"

    def reach(self, at: Context) -> Number:
        """s(x) = x g(|x|) with a rising g for x >= 0 and smaller for x < 0: at most b g(b), along an axis."""
        if self.name != "tanh":
            return largest_entry(self.name, at.radius)
        return at.radius if at.width is None else _saturate(arb(at.width).sqrt(), at.radius)

    def margin(self, end: End) -> Number | None:
        """Of the activations only tanh caps what the network says."""
        return _capped(1.0, end) if self.name == "tanh" else None

    def positive(self) -> bool:
        return self.name == "relu"

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.activations[self.name](x)


@register_layer
@dataclass(frozen=True, slots=True)
class SoftCap(Weightless):
    """x -> cap tanh(x / cap), entry by entry, on rows of width d."""

    label: ClassVar[str] = "softcap"

    d: Size
    cap: Positive

    def facts(self, at: Context) -> Facts:
        ns = at.ns
        reach = ns.minimum(at.radius, ns.number(self.cap) * ns.sqrt(ns.number(self.d)))
        return Facts(reach, ns.number(1), (), ("L12",))

    def reach(self, at: Context) -> Number:
        return _saturate(self.cap * arb(self.d).sqrt(), at.radius)

    def margin(self, end: End) -> Number | None:
        return _capped(self.cap, end)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return self.cap * run.xp.tanh(x / self.cap)


def _saturate(cap: arb, x: arb) -> arb:
    """The bend of a cap: cap tanh(x / cap).

    Of rows of width k no longer than b, tanh makes the longest of those with k equal entries, as tanh(sqrt(u))^2 is
    concave: sqrt(k) tanh(b / sqrt(k)).
    """
    return cap * (x / cap).tanh()


def _capped(cap: float, end: End) -> arb:
    """G0e: two logits that are farthest apart behind caps stay so on both sides of 0."""
    return _saturate(arb(cap) * min(end.classes, 2), end.margin())


def largest_entry(name: str, b: arb) -> arb:
    """The largest image of a number no larger than b."""
    if name == "tanh":
        return b.tanh()
    if name == "gelu":
        return b * (1 + (b / arb(2).sqrt()).erf()) / 2
    if name == "gelu_tanh":
        return b * (1 + ((2 / arb.pi()).sqrt() * (b + arb("0.044715") * b**3)).tanh()) / 2
    if name in ("silu", "quick_gelu"):
        steep = arb("1.702") if name == "quick_gelu" else arb(1)
        return b / (1 + (-steep * b).exp())
    return b
