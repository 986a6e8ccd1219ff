"""One row of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from boundcalc.base.system import Number
from boundcalc.layers.base import Layer, Proved, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Pool(Layer):
    """From T rows to one: the [CLS] (or last) row, or the mean of all."""

    label: ClassVar[str] = "pool"
    noise_fields: ClassVar[Proved] = {}

    how: Literal["cls", "mean"] = "cls"

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def widths(self) -> Widths:
        return None, None

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len if self.how == "mean" else 1

    def facts(self, at: Context) -> Facts:
        """Selecting or averaging rows neither stretches nor enlarges."""
        return Facts(at.radius, at.ns.number(1))

    def along(self, at: Context) -> Number | None:
        return at.ns.number(1)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        if self.how == "mean":
            return x.mean(1, keepdims=True)
        return x if run.every_row else x[:, run.fixed.row][:, None]
