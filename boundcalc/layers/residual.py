"""A0, L8: branches that read the same rows and are added.

They are walked one by one, so that it has no facts of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.layers.base import TOKENS, Layer, Proved, Weight, Widths, register_layer, widths_of


@register_layer
@dataclass(frozen=True, slots=True)
class Residual(Layer):
    """X + f(X), or X + f(X) + g(X) + ... where several branches read the same rows.

    `beside`: the branches after the first. `skip`: whether X itself is added.
    """

    label: ClassVar[str] = "residual"
    noise_fields: ClassVar[Proved] = {}

    branch: tuple[Layer, ...]
    beside: tuple[tuple[Layer, ...], ...] = ()
    skip: bool = True

    @property
    def branches(self) -> tuple[tuple[Layer, ...], ...]:
        """All that is added: X itself is what a branch of no layers makes of it."""
        return ((), self.branch, *self.beside) if self.skip else (self.branch, *self.beside)

    def brief(self) -> str:
        return "an added residual"

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def widths(self) -> Widths:
        ends = [widths_of(branch) for branch in self.branches]
        read = list(dict.fromkeys(reads for reads, _ in ends if reads is not None))
        if len(read) > 1:
            raise InvalidSetting(f"branches of a residual read the same rows, but not of width {read[0]} and {read[1]}")
        same = (None, None) in ends  # X itself, or its entries changed
        widths = list(dict.fromkeys([*(read if same else ()), *(makes for _, makes in ends if makes is not None)]))
        if len(widths) > 1:
            gets = "tokens" if widths[0] == TOKENS else f"rows of width {widths[0]}"
            raise InvalidSetting(f"a residual adds rows of width {widths[1]} to {gets}")
        width = widths[0] if widths else None
        return (read[0] if read else width if same else None), width

    def rows_before(self, rows: int, seq_len: int) -> int:
        counts = [
            reduce(lambda count, layer: layer.rows_before(count, seq_len), reversed(branch), rows)
            for branch in self.branches
        ]
        return seq_len if seq_len in counts else max(counts)  # T, which is the most, may be a symbol
