"""Layers that train nothing: activations and caps (L3, L12), balls (L4), the read-out's row, residuals (A0, L8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Annotated, Any, Literal

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Positive, Size
from boundcalc.base.validate import choice
from boundcalc.layers.base import TOKENS, Layer, Weight, Weightless, Widths, register_layer, widths_of
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward

ACTIVATION_LIPSCHITZ = {
    "relu": 1.0,
    "gelu": 1.12891,
    "gelu_tanh": 1.12900,
    "silu": 1.09984,
    "quick_gelu": 1.09984,
    "tanh": 1.0,
    "identity": 1.0,
}
"""L3, rounded up; all of these also satisfy |s(x)| <= |x|."""
Function = Annotated[str, partial(choice, options=tuple(ACTIVATION_LIPSCHITZ))]


@register_layer
@dataclass(frozen=True, slots=True)
class Activation(Weightless):
    """An entrywise non-linearity."""

    label = "activation"
    noise_fields = ()

    name: Function = "relu"

    def facts(self, at: Context) -> Facts:
        return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[self.name]), (), ("L3",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return run.xp.activations[self.name](x)


@register_layer
@dataclass(frozen=True, slots=True)
class SoftCap(Weightless):
    """x -> cap tanh(x / cap), entry by entry, on rows of width d."""

    label = "softcap"

    d: Size
    cap: Positive

    def facts(self, at: Context) -> Facts:
        ns = at.ns
        reach = ns.minimum(at.radius, ns.number(self.cap) * ns.sqrt(ns.number(self.d)))
        return Facts(reach, ns.number(1), (), ("L12",))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        return self.cap * run.xp.tanh(x / self.cap)


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
