"""L9: a gated feed-forward part."""

from __future__ import annotations

from flint import arb

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import GatedFeedForward, Layer
from boundcalc.statements.layers import asked
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ, has_slope, largest_entry
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Said, Slot, Values, offset_slot, slots_of
from boundcalc.statements.targets import Points, Target
from boundcalc.statements.weights import Matrix


def gated_facts(layer: GatedFeedForward, at: Context) -> Facts:
    """L9."""
    ns, b = at.ns, at.radius
    w1, w2, w3 = (
        at.weights.matrix(kind, layer.block, None, *shape)
        for kind, shape in (
            ("W_1", (layer.d, layer.d_ff)),
            ("W_2", (layer.d_ff, layer.d)),
            ("W_3", (layer.d, layer.d_ff)),
        )
    )
    stretch = ns.number(ACTIVATION_LIPSCHITZ[layer.activation])
    c1, c2, c3 = w1.whole.op, w2.whole.op, w3.whole.op
    gate, value = b * c1, b * c3
    inner = b**2 * c1 * c3
    steep = b * c1 * c3 * c2 * (1 + stretch)
    offsets: list[Slot] = []
    radius = inner * c2
    if layer.bias:
        (b1, near1), (b3, near3), (b2, near2) = (at.weights.vector(kind, layer.block) for kind in ("b_1", "b_3", "b_2"))
        gate, value = gate + b1, value + b3
        inner = gate * value
        steep = c2 * (stretch * c1 * value + gate * c3)
        radius = inner * c2 + b2
        offsets = [
            offset_slot("b_1", stretch * value * c2, layer.d_ff, near1, at),
            offset_slot("b_3", gate * c2, layer.d_ff, near3, at),
            offset_slot("b_2", ns.number(1), layer.d, near2, at),
        ]

    def slot(kind: str, sensitivity: Number, d: int, k: int, radius: Number, matrix: Matrix) -> Slot:
        return Slot(kind, sensitivity, (Member(1, (Target("map", d, k, radius, matrix.covered, Points(at.rows)),)),))

    slots = (
        slot("W_1", stretch * value * c2, layer.d, layer.d_ff, b, w1),
        slot("W_3", gate * c2, layer.d, layer.d_ff, b, w3),
        slot("W_2", ns.number(1), layer.d_ff, layer.d, inner, w2),
    )
    return Facts(radius, steep, (*slots, *offsets), ("L9", "T8") if layer.bias else ("L9",))


def gated_reach(layer: Layer, activation: str, at: Context) -> arb:
    """L9: no entry of the first factor is longer than the image of its row's length."""
    sizes: dict[str, arb] = {}
    for weight in layer.weights(at.seq_len):
        place = weight.kind, weight.block, None
        vector = weight.role == "vector"
        sizes[weight.kind] = (
            at.weights.vector(*place)[0] if vector else at.weights.matrix(*place, *weight.shape).whole.op
        )
    zero = arb(0)
    first, third = (at.radius * sizes[f"W_{i}"] + sizes.get(f"b_{i}", zero) for i in (1, 3))
    return largest_entry(activation, first) * third * sizes["W_2"] + sizes.get("b_2", zero)


def _value(ns: NumberSystem, b: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu") -> Values:
    fact = asked(ns, GatedFeedForward(1, 1, activation), b, {"W_1": c1, "W_3": c3, "W_2": c2})
    slots = slots_of(fact)
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        **{f"{kind} sensitivity": slot.sensitivity for kind, slot in slots.items()},
        "W_2 radius": slots["W_2"].members[0].targets[0].radius,
    }


RULE = LayerRule(
    GatedFeedForward,
    gated_facts,
    noise=lambda layer: not layer.bias,
    reach=lambda layer, at: gated_reach(layer, layer.activation, at),
    says=lambda: {"L9": Said(_value, has_slope)},
)
