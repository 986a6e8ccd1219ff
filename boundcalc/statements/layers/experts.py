"""L15: gated parts that all run, mixed by a gate."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.setting import Experts, GatedFeedForward
from boundcalc.statements.layers.gated import gated_facts, gated_reach
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Slot
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


RULE = LayerRule(Experts, _facts, reach=lambda layer, at, width: gated_reach(layer, layer.activation, at))
