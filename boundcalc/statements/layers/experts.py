"""L15: gated parts that all run, mixed by a gate."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Experts, GatedFeedForward
from boundcalc.statements.layers import asked
from boundcalc.statements.layers.activation import has_slope
from boundcalc.statements.layers.gated import gated_facts, gated_reach
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Said, Slot, Values, slots_of
from boundcalc.statements.targets import Points, Target


def _facts(layer: Experts, at: Context) -> Facts:
    """L15."""
    one = gated_facts(GatedFeedForward(layer.d, layer.d_ff, layer.activation, layer.block), at)
    gate = at.weights.matrix("W_gate", layer.block, None, layer.d, layer.experts)
    c = 1 / at.ns.sqrt(at.ns.number(2))
    target = Target("map", layer.d, layer.experts, at.radius, gate.covered, Points(at.rows))
    slots = [Slot("W_gate", c * one.radius, (Member(1, (target,)),), cap=2 * one.radius)]
    for slot in one.slots:
        (member,) = slot.members
        slots.append(replace(slot, members=(replace(member, multiplicity=layer.experts),)))
    stretch = one.lipschitz + c * one.radius * gate.whole.op
    return Facts(one.radius, stretch, tuple(slots), ("L9", "L15"))


def _value(
    ns: NumberSystem, b: Number, gate: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu"
) -> Values:
    fact = asked(ns, Experts(1, 1, 1, activation), b, {"W_gate": gate, "W_1": c1, "W_3": c3, "W_2": c2})
    slots = slots_of(fact)
    assert slots["W_gate"].cap is not None  # noqa: S101 - convex weights always have one
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        "gate": slots["W_gate"].sensitivity,
        "gate at most": slots["W_gate"].cap,
        "W_1": slots["W_1"].sensitivity,
    }


RULE = LayerRule(
    Experts,
    _facts,
    reach=lambda layer, at, width: gated_reach(layer, layer.activation, at),
    says=lambda: {"L15": Said(_value, has_slope)},
)
