"""Layers that train nothing and keep, pick or add rows: L4, the read-out's row, and residuals (A0, L8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Positive
from boundcalc.layers.base import TOKENS, Layer, Weight, Weightless, Widths, register_layer, widths_of
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Ball(Weightless):
    """Projection of every row onto the l2 ball."""

    label = "ball"
    noise_fields = ()

    radius: Positive = 1.0

    def facts(self, at: Context) -> Facts:
        return Facts(at.ns.minimum(at.radius, at.ns.number(self.radius)), at.ns.number(1), (), ("L4",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        """Its gradient at the origin is that of the identity."""
        size = (x**2).sum(-1, keepdims=True)
        outside = size > self.radius**2
        return run.xp.where(outside, x * (self.radius / run.xp.sqrt(run.xp.where(outside, size, 1.0))), x)


@register_layer
@dataclass(frozen=True, slots=True)
class Pool(Layer):
    """From T rows to one: the [CLS] (or last) row, or the mean of all."""

    label = "pool"
    noise_fields = ()

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

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        if self.how == "mean":
            return x.mean(1, keepdims=True)
        return x if run.every_row else x[:, run.fixed.row][:, None]


@register_layer
@dataclass(frozen=True, slots=True)
class Residual(Layer):
    """X + f(X), or X + f(X) + g(X) + ... where several branches read the same rows; branches are walked one by one.

    `beside`: the branches after the first. `skip`: whether X itself is added.
    """

    label = "residual"
    noise_fields = ()

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
