"""L12: entries that are bent to stay below a cap."""

from __future__ import annotations

from flint import arb

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Attention, Normaliser, SoftCap
from boundcalc.statements.layers import asked
from boundcalc.statements.layers.activation import bent, capped
from boundcalc.statements.slots import Context, Facts, LayerRule, Said, Values


def _facts(layer: SoftCap, at: Context) -> Facts:
    """L12."""
    ns = at.ns
    reach = ns.minimum(at.radius, ns.number(layer.cap) * ns.sqrt(ns.number(layer.d)))
    return Facts(reach, ns.number(1), (), ("L12",))


def _reach(layer: SoftCap, at: Context) -> arb:
    return bent(layer.cap * arb(layer.d).sqrt(), at.radius)


def _value(ns: NumberSystem, b: Number, width: int, cap: float, c_w: Number, c_v: Number) -> Values:
    """Of rows of some width, and of a head whose scores are capped."""
    rows = asked(ns, SoftCap(width, cap), b)
    head = Attention(1, normaliser=Normaliser("softmax", 1.0), cap=cap)
    steep = asked(ns, head, b, {"W_QK": c_w, "W_V": c_v}).lipschitz
    return {"radius": rows.radius, "lipschitz": rows.lipschitz, "head lipschitz": steep}


RULE = LayerRule(
    SoftCap, _facts, reach=_reach, margin=lambda layer, end: capped(layer.cap, end), says=lambda: {"L12": Said(_value)}
)
