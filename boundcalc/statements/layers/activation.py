"""L3: an entrywise non-linearity."""

from __future__ import annotations

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Activation
from boundcalc.statements.layers import asked
from boundcalc.statements.slots import Context, End, Facts, LayerRule, Said

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


def _facts(layer: Activation, at: Context) -> Facts:
    """L3."""
    return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[layer.name]), (), ("L3",))


def bent(cap: arb, x: arb) -> arb:
    """The bend of a cap: cap tanh(x / cap).

    Of rows of width k no longer than b, tanh makes the longest of those with k equal entries, as tanh(sqrt(u))^2 is concave:
    sqrt(k) tanh(b / sqrt(k)).
    """
    return cap * (x / cap).tanh()


def _reach(layer: Activation, at: Context) -> arb:
    """The longest image of a row no longer than b.

    s(x) = x g(|x|) with a rising g for x >= 0 and smaller for x < 0: at most b g(b), along an axis.
    """
    name, b, width = layer.name, at.radius, at.width
    if name != "tanh":
        return largest_entry(name, b)
    return b if width is None else bent(arb(width).sqrt(), b)


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


def _margin(layer: Activation, end: End) -> arb | None:
    """Of the activations only tanh caps what the network says."""
    return capped(1.0, end) if layer.name == "tanh" else None


def capped(cap: float, end: End) -> arb:
    """G0e: two logits that are farthest apart behind caps stay so on both sides of 0."""
    return bent(arb(cap) * min(end.classes, 2), end.margin())


def _value(ns: NumberSystem, name: str) -> Number:
    return asked(ns, Activation(name), ns.number(1)).lipschitz


def has_slope(name: str) -> Refusal | None:
    """Why an activation of this name has no slope, or None."""
    if name in ACTIVATION_LIPSCHITZ:
        return None
    return Refusal("L3", f"activation {name!r}", f"one of {', '.join(ACTIVATION_LIPSCHITZ)}")


RULE = LayerRule(
    Activation,
    _facts,
    noise=lambda layer: True,
    reach=_reach,
    margin=_margin,
    positive=lambda layer: layer.name == "relu",
    idle=lambda layer, radius: layer.name == "identity",
    says=lambda: {"L3": Said(_value, has_slope)},
)
