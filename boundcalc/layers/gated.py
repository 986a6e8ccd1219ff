"""L9: a gated feed-forward part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boundcalc.base.schema import Count, Size
from boundcalc.base.system import Number
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ, Function, largest_entry
from boundcalc.layers.base import EveryRow, Layer, Proved, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts, offset_slots, one_slot
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
        ns, b, block, d, k = at.ns, at.radius, self.block, self.d, self.d_ff
        shapes = {"W_1": (d, k), "W_3": (d, k), "W_2": (k, d)}
        first, third, second = (at.weights.matrix(kind, block, None, *shape) for kind, shape in shapes.items())
        names = [f"b_{i}" if self.bias else None for i in (1, 3, 2)]
        (b1, near1), (b3, near3), (b2, near2) = (at.offset(name, block) for name in names)
        c1, c2, c3 = (matrix.whole.op for matrix in (first, second, third))
        gate, value = b * c1 + b1, b * c3 + b3
        inner, to_value = gate * value, gate * c2
        to_gate = ns.number(ACTIVATION_LIPSCHITZ[self.activation]) * value * c2
        slots = (
            one_slot("W_1", to_gate, at.map_target(d, k, first.covered)),
            one_slot("W_3", to_value, at.map_target(d, k, third.covered)),
            one_slot("W_2", ns.number(1), at.map_target(k, d, second.covered, inner)),
            *offset_slots(names[0], to_gate, k, near1, at),
            *offset_slots(names[1], to_value, k, near3, at),
            *offset_slots(names[2], ns.number(1), d, near2, at),
        )
        steep = c1 * to_gate + c3 * to_value
        return Facts(inner * c2 + b2, steep, slots, ("L9", "T8") if self.bias else ("L9",))

    def reach(self, at: Context) -> Number:
        """No entry of the first factor is longer than the image of its row's length."""
        b1, b3, b2 = (at.offset(f"b_{i}" if self.bias else None, self.block)[0] for i in (1, 3, 2))
        c1, c3, c2 = (at.weights.matrix(w.kind, self.block, None, *w.shape).whole.op for w in self.weights(0)[:3])
        return largest_entry(self.activation, at.radius * c1 + b1) * (at.radius * c3 + b3) * c2 + b2

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        def through(x: Any, number: int) -> Any:
            return run.xp.affine(x, weights(f"W_{number}"), weights(f"b_{number}") if self.bias else None)

        return through(run.xp.activations[self.activation](through(x, 1)) * through(x, 3), 2)
