"""L6 and T8: a linear map, and its offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boundcalc.base.schema import Count, Name, Size
from boundcalc.base.system import Number
from boundcalc.layers.base import EveryRow, Layer, Proved, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, End, Facts, MatrixNorms, halved, largest_margin, offset_slots, one_slot
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Linear(EveryRow):
    """x -> x W (+ b), applied to every row."""

    label: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear map"
    noise_fields: ClassVar[Proved] = {}

    kind: Name
    d_in: Size
    d_out: Size
    bias: Name | None = None
    block: Count | None = None

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        """Its offset is called b_1 where the map is W_1."""
        offset = self.bias or f"b_{self.kind.removeprefix('W_')}"
        return replace(self, bias=offset if has(offset) else None)

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

    def _norms(self, at: Context | End) -> MatrixNorms:
        return at.weights.matrix(self.kind, self.block, None, self.d_in, self.d_out).whole

    def margin(self, end: End) -> Number | None:
        """G0e: of several logits, the margin is that of the largest two columns apart."""
        if end.classes == 1:
            return None
        ns, norms = end.weights.ns, self._norms(end)
        offset = end.weights.vector(self.bias, self.block)[0] if self.bias else ns.number(0)
        columns = ns.minimum(largest_margin(ns, norms.op, end.classes), norms.two_one)
        return end.radius() * columns + largest_margin(ns, offset, end.classes)

    def along(self, at: Context) -> Number | None:
        """An offset would add to both labels."""
        return self._norms(at).op if self.bias is None else None

    def split(self, at: Context) -> Number | None:
        """|x W_+| <= b |W_+|_F, and b times the lengths of the columns there."""
        return at.radius * halved(at.ns, self._norms(at)) if self.bias is None else None

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.affine(x, weights(self.kind), weights(self.bias) if self.bias else None)
