"""L9: a gated feed-forward part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boundcalc.base.schema import Count, Size
from boundcalc.base.system import Number
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ, Function, largest_entry
from boundcalc.layers.base import EveryRow, Layer, Proved, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts, Points, Slot, Target, offset_slot, one_slot
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class GatedFeedForward(EveryRow):
    """h = (s(x W_1) * (x W_3)) W_2; with offsets (s(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2."""

    label: ClassVar[str] = "gated"
    title: ClassVar[str] = "gated feed-forward"
    noise_fields: ClassVar[Proved] = {"bias": False}

    d: Size
    d_ff: Size
    activation: Function = "silu"
    block: Count | None = None
    bias: bool = False

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        return replace(self, bias=has("b_1"))

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        into, out = (self.d, self.d_ff), (self.d_ff, self.d)
        matrices = (("W_1", into), ("W_3", into), ("W_2", out))
        offsets = (("b_1", self.d_ff), ("b_3", self.d_ff), ("b_2", self.d)) if self.bias else ()
        return (
            *(Weight(kind, "matrix", shape, self.block) for kind, shape in matrices),
            *(Weight(kind, "vector", (size,), self.block) for kind, size in offsets),
        )

    def widths(self) -> Widths:
        return self.d, self.d

    def facts(self, at: Context) -> Facts:
        ns, b, block = at.ns, at.radius, self.block
        w1, w3 = (at.weights.matrix(kind, block, None, self.d, self.d_ff) for kind in ("W_1", "W_3"))
        w2 = at.weights.matrix("W_2", block, None, self.d_ff, self.d)
        stretch = ns.number(ACTIVATION_LIPSCHITZ[self.activation])
        c1, c2, c3 = w1.whole.op, w2.whole.op, w3.whole.op
        gate, value = b * c1, b * c3
        inner = b**2 * c1 * c3
        steep = b * c1 * c3 * c2 * (1 + stretch)
        offsets: list[Slot] = []
        radius = inner * c2
        if self.bias:
            (b1, near1), (b3, near3), (b2, near2) = (at.weights.vector(kind, block) for kind in ("b_1", "b_3", "b_2"))
            gate, value = gate + b1, value + b3
            inner = gate * value
            steep = c2 * (stretch * c1 * value + gate * c3)
            radius = inner * c2 + b2
            offsets = [
                offset_slot("b_1", stretch * value * c2, self.d_ff, near1, at),
                offset_slot("b_3", gate * c2, self.d_ff, near3, at),
                offset_slot("b_2", ns.number(1), self.d, near2, at),
            ]
        points = Points(at.rows)
        slots = (
            one_slot("W_1", stretch * value * c2, Target("map", self.d, self.d_ff, b, w1.covered, points)),
            one_slot("W_3", gate * c2, Target("map", self.d, self.d_ff, b, w3.covered, points)),
            one_slot("W_2", ns.number(1), Target("map", self.d_ff, self.d, inner, w2.covered, points)),
        )
        return Facts(radius, steep, (*slots, *offsets), ("L9", "T8") if self.bias else ("L9",))

    def reach(self, at: Context) -> Number:
        """No entry of the first factor is longer than the image of its row's length."""

        def length(kind: str) -> Number:
            return at.weights.vector(f"b_{kind}", self.block)[0] if self.bias else at.ns.number(0)

        op = {w.kind: at.weights.matrix(w.kind, self.block, None, *w.shape).whole.op for w in self.weights(0)[:3]}
        first, third = (at.radius * op[f"W_{i}"] + length(str(i)) for i in (1, 3))
        return largest_entry(self.activation, first) * third * op["W_2"] + length("2")

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        def through(x: Any, number: int) -> Any:
            return run.xp.affine(x, weights(f"W_{number}"), weights(f"b_{number}") if self.bias else None)

        return through(run.xp.activations[self.activation](through(x, 1)) * through(x, 3), 2)
