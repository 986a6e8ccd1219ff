"""L6, T8 and L9: a linear map with its offset, and a gated feed-forward part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boundcalc.base.schema import Count, Name, Size
from boundcalc.layers.base import EveryRow, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ, Function


@register_layer
@dataclass(frozen=True, slots=True)
class Linear(EveryRow):
    """x -> x W (+ b), applied to every row."""

    label = "linear"
    noise_fields = ()

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
        matrix, *offset = weights = self.weights(at.seq_len)
        norm, moved = at.size(matrix), sum(map(at.size, offset))
        return Facts(
            at.radius * norm + moved, norm, tuple(map(at.slot, weights)), ("L6", "T8") if self.bias else ("L6",)
        )

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.affine(x, weights(self.kind), weights(self.bias) if self.bias else None)


@register_layer
@dataclass(frozen=True, slots=True)
class GatedFeedForward(EveryRow):
    """h = (s(x W_1) * (x W_3)) W_2; with offsets (s(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2."""

    label = "gated"
    noise_fields = ("bias",)

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

    def facts(self, at: Context) -> Facts:
        first, third, second, *offsets = weights = self.weights(at.seq_len)
        c1, c3, c2 = map(at.size, (first, third, second))
        b1, b3, b2 = map(at.size, offsets) if offsets else (0, 0, 0)
        gate, value = at.radius * c1 + b1, at.radius * c3 + b3
        to_gate = at.ns.number(ACTIVATION_LIPSCHITZ[self.activation]) * value * c2
        inner, to_value = gate * value, gate * c2
        steep, radii = (to_gate, to_value, 1) * 2, (at.radius, at.radius, inner) * 2
        ways = zip(weights, steep, radii, strict=False)  # offsets may be missing
        slots = tuple(at.slot(weight, error, radius=radius) for weight, error, radius in ways)
        return Facts(inner * c2 + b2, c1 * to_gate + c3 * to_value, slots, ("L9", "T8") if self.bias else ("L9",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        def through(x: Any, number: int) -> Any:
            return run.xp.affine(x, weights(f"W_{number}"), weights(f"b_{number}") if self.bias else None)

        return through(run.xp.activations[self.activation](through(x, 1)) * through(x, 3), 2)
