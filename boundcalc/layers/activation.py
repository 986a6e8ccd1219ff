"""L3: an entrywise non-linearity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from flint import arb

from boundcalc.base import validate
from boundcalc.base.system import Number
from boundcalc.layers.base import Proved, Weightless, register_layer
from boundcalc.layers.facts import Context, End, Facts
from boundcalc.layers.forward import Arrays, Forward

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "mish", "tanh", "identity")
Function = Annotated[str, partial(validate.choice, options=ACTIVATIONS)]
ACTIVATION_LIPSCHITZ = {
    "relu": 1.0,
    "tanh": 1.0,
    "identity": 1.0,
    "gelu": 1.12891,
    "gelu_tanh": 1.12900,
    "silu": 1.09984,
    "quick_gelu": 1.09984,
    "mish": 1.08850,
}
"""L3, rounded up; all of these also satisfy |s(x)| <= |x|."""


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
        return at.radius if at.width is None else saturate(arb(at.width).sqrt(), at.radius)

    def margin(self, end: End) -> Number | None:
        """Of the activations only tanh caps what the network says."""
        return capped(1.0, end) if self.name == "tanh" else None

    def positive(self) -> bool:
        return self.name == "relu"

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.activations[self.name](x)


def saturate(cap: arb, x: arb) -> arb:
    """The bend of a cap: cap tanh(x / cap).

    Of rows of width k no longer than b, tanh makes the longest of those with k equal entries, as tanh(sqrt(u))^2 is
    concave: sqrt(k) tanh(b / sqrt(k)).
    """
    return cap * (x / cap).tanh()


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
    if name == "mish":
        small = (-b).exp()
        return b * (1 + 2 * small) / (1 + 2 * small + 2 * small**2)
    return b


def capped(cap: float, end: End) -> arb:
    """G0e: two logits that are farthest apart behind caps stay so on both sides of 0."""
    return saturate(arb(cap) * min(end.classes, 2), end.margin())
