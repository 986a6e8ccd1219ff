"""L12: entries that are bent to stay below a cap."""

from __future__ import annotations

from flint import arb

from boundcalc.setting import SoftCap
from boundcalc.statements.layers.activation import bent, capped
from boundcalc.statements.slots import Context, Facts, LayerRule


def _facts(layer: SoftCap, at: Context) -> Facts:
    """L12."""
    ns = at.ns
    reach = ns.minimum(at.radius, ns.number(layer.cap) * ns.sqrt(ns.number(layer.d)))
    return Facts(reach, ns.number(1), (), ("L12",))


def _reach(layer: SoftCap, at: Context, width: int | None) -> arb:
    del width
    return bent(layer.cap * arb(layer.d).sqrt(), at.radius)


RULE = LayerRule(SoftCap, _facts, reach=_reach, margin=lambda layer, end: capped(layer.cap, end))
