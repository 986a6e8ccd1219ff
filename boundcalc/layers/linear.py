"""L6, T8 and L9: a linear map with its offset, and a gated feed-forward part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from boundcalc.base.schema import Count, Name, Size
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ, Function
from boundcalc.layers.base import EveryRow, Proved, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts, offset_slots, one_slot
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Linear(EveryRow):
    """x -> x W (+ b), applied to every row."""

    label: ClassVar[str] = "linear"
    noise_fields: ClassVar[Proved] = {}

    kind: Name
    d_in: Size
    d_out: Size
    bias: Name | None = None
    block: Count | None = None

    def brief(self) -> str:
        return self.kind

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        matrix = Weight(self.kind, "matrix", (self.d_in, self.d_out), self.block)
        return (matrix,) if self.bias is None else (matrix, Weight(self.bias, "vector", (self.d_out,), self.block))

    def widths(self) -> Widths:
        return self.d_in, self.d_out

    def facts(self, at: Context) -> Facts:
        one, d, k = at.ns.number(1), self.d_in, self.d_out
        matrix = at.weights.matrix(self.kind, self.block, None, d, k)
        offset, covered = at.offset(self.bias, self.block)
        slots = (
            one_slot(self.kind, one, at.map_target(d, k, matrix.covered)),
            *offset_slots(self.bias, one, k, covered, at),
        )
        norm = matrix.whole.op
        return Facts(at.radius * norm + offset, norm, slots, ("L6", "T8") if self.bias else ("L6",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.affine(x, weights(self.kind), weights(self.bias) if self.bias else None)


@register_layer
@dataclass(frozen=True, slots=True)
class GatedFeedForward(EveryRow):
    """h = (s(x W_1) * (x W_3)) W_2; with offsets (s(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2."""

    label: ClassVar[str] = "gated"
    noise_fields: ClassVar[Proved] = {"bias": False}

    d: Size
    d_ff: Size
    activation: Function = "silu"
    block: Count | None = None
    bias: bool = False

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

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        def through(x: Any, number: int) -> Any:
            return run.xp.affine(x, weights(f"W_{number}"), weights(f"b_{number}") if self.bias else None)

        return through(run.xp.activations[self.activation](through(x, 1)) * through(x, 3), 2)
