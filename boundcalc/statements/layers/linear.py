"""L6 and T8: a linear map, and its offset."""

from __future__ import annotations

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Linear
from boundcalc.statements.layers import asked
from boundcalc.statements.slots import (
    Context,
    End,
    Facts,
    LayerRule,
    Member,
    Said,
    Slot,
    Values,
    halved,
    largest_margin,
    offset_slot,
)
from boundcalc.statements.targets import Points, Target


def _facts(layer: Linear, at: Context) -> Facts:
    """L6, T8."""
    matrix = at.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    target = Target("map", layer.d_in, layer.d_out, at.radius, matrix.covered, Points(at.rows))
    slots = [Slot(layer.kind, at.ns.number(1), (Member(1, (target,)),))]
    radius = at.radius * matrix.whole.op
    if layer.bias:
        norm, covered = at.weights.vector(layer.bias, layer.block)
        radius = radius + norm
        slots.append(offset_slot(layer.bias, at.ns.number(1), layer.d_out, covered, at))
    return Facts(radius, matrix.whole.op, tuple(slots), ("L6", "T8") if layer.bias else ("L6",))


def _margin(layer: Linear, end: End) -> arb | None:
    """G0e: of several logits, the margin is that of the largest two columns apart."""
    if end.classes == 1:
        return None
    norms = end.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole
    offset = end.weights.vector(layer.bias, layer.block)[0] if layer.bias else arb(0)
    columns = INTERVAL.minimum(largest_margin(INTERVAL, norms.op, end.classes), norms.two_one)
    return end.radius() * columns + largest_margin(INTERVAL, offset, end.classes)


def _value(ns: NumberSystem, b: Number, op: Number, bias: Number | None = None) -> Values:
    layer = Linear("W", 1, 1, bias=None if bias is None else "c")
    fact = asked(ns, layer, b, {"W": op, "c": bias})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _along(layer: Linear, at: Context) -> Number | None:
    """G0e: x W; an offset would add to both labels."""
    matrix = at.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    return matrix.whole.op if layer.bias is None else None


def _split(layer: Linear, at: Context) -> Number | None:
    """G0e: |x W_+| <= b |W_+|_F, and b times the lengths of the columns there."""
    norms = at.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole
    return at.radius * halved(at.ns, norms) if layer.bias is None else None


RULE = LayerRule(
    Linear,
    _facts,
    noise=lambda layer: True,
    margin=_margin,
    along=_along,
    split=_split,
    says=lambda: {"L6": Said(_value)},
)
