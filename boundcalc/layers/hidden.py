"""V4: noise on a hidden layer whose units are added up to one number; the layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boundcalc.base.schema import Count, Name, Size
from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ, Function
from boundcalc.layers.base import Proved, RowWise, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts, Target, offset_slots, one_slot
from boundcalc.layers.forward import Arrays, Forward

CURVATURE = {"gelu": 0.79789, "silu": 0.5, "quick_gelu": 0.851, "tanh": 0.76981, "identity": 0.0}
"""The largest second derivative, rounded up: 2/sqrt(2 pi), 1/2, 1.702/2, 4/(3 sqrt 3) and 0."""
KINKED = ("relu",)
"""Piecewise linear, with a slope that jumps by 1 once."""
ROOM = (0.3, 0.6, 1.2, 2.4)
"""What curvature may add to the spread of the noise; the noise is then as small as that asks."""


@register_layer
@dataclass(frozen=True, slots=True)
class Hidden(RowWise):
    """x -> s(x W (+ c)) v with one column v: what two linear maps and an activation between them are, as one layer."""

    label: ClassVar[str] = "hidden"
    noise_fields: ClassVar[Proved] = {}

    first: Name
    last: Name
    d: Size
    d_ff: Size
    activation: Function
    bias: Name | None = None
    block: Count | None = None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        first = Weight(self.first, "matrix", (self.d, self.d_ff), self.block)
        last = Weight(self.last, "matrix", (self.d_ff, 1), self.block)
        offset = () if self.bias is None else (Weight(self.bias, "vector", (self.d_ff,), self.block),)
        return (first, *offset, last)

    def widths(self) -> Widths:
        return self.d, 1

    def facts(self, at: Context) -> Facts:
        """L3, L6, T8 one after the other, whose noise on W is also seen through v (V4)."""
        ns, slope = at.ns, ACTIVATION_LIPSCHITZ[self.activation]
        first = at.weights.matrix(self.first, self.block, None, self.d, self.d_ff)
        last = at.weights.matrix(self.last, self.block, None, self.d_ff, 1)
        offset, covered = at.offset(self.bias, self.block)
        reach = at.radius * first.whole.op + offset
        steep = ns.number(slope) * last.whole.op
        row = at.map_target(self.d, self.d_ff, first.covered)
        slots = (
            one_slot(self.first, steep, row, *_summed(ns, row, self.activation, slope, reach)),
            *offset_slots(self.bias, steep, self.d_ff, covered, at),
            one_slot(self.last, ns.number(1), at.map_target(self.d_ff, 1, last.covered, reach)),
        )
        uses = ("L3", "L6", "T8") if self.bias else ("L3", "L6")
        return Facts(reach * last.whole.op, first.whole.op * steep, slots, uses)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        units = run.xp.affine(x, weights(self.first), weights(self.bias) if self.bias else None)
        return run.xp.activations[self.activation](units) @ weights(self.last)


def averaged(
    ns: NumberSystem, activation: str, slope: float, units: int, reach: Number
) -> tuple[Number, Number] | None:
    """V4: what the mean adds to t in units of L B s, without s and per s; None where no curvature is known."""
    k, lipschitz = ns.number(units), ns.number(slope)
    extra = 1 / (2 * lipschitz)
    bend = k / (2 * reach)
    if activation in KINKED:
        return extra + ns.sqrt(k / (2 * ns.pi)) / lipschitz, bend / lipschitz
    if activation not in CURVATURE:
        return None
    return extra, (bend + ns.number(CURVATURE[activation]) / 2 * ns.sqrt(k)) / lipschitz


def _summed(ns: NumberSystem, row: Target, activation: str, slope: float, reach: Number) -> Iterator[Target]:
    """The same map through the sum of its units: what the spread gains, and how large the noise may be."""
    added = averaged(ns, activation, slope, row.k, reach)
    if added is None:
        return
    for room in ROOM:
        yield replace(row, kind="summed", extra=added[0] + ns.number(room), most=ns.number(room) / added[1])
