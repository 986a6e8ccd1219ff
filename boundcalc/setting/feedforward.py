"""Feed-forward parts as data: activations and gated parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from boundcalc.setting import validate
from boundcalc.setting.layer import EveryRow, Layer, Weight, Weightless
from boundcalc.setting.named import ours

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "mish", "tanh", "identity")


@ours
@dataclass(frozen=True, slots=True)
class Activation(Weightless):
    """An entrywise non-linearity."""

    label: ClassVar[str] = "activation"

    name: str = "relu"

    def __post_init__(self) -> None:
        validate.choice("activation", self.name, ACTIVATIONS)

    def widths(self) -> tuple[int | None, int | None]:
        return None, None


@ours
@dataclass(frozen=True, slots=True)
class GatedFeedForward(EveryRow):
    """h = (s(x W_1) * (x W_3)) W_2; with offsets (s(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2."""

    label: ClassVar[str] = "gated"
    title: ClassVar[str] = "gated feed-forward"

    d: int
    d_ff: int
    activation: str = "silu"
    block: int | None = None
    bias: bool = False

    def __post_init__(self) -> None:
        validate.set_size(self, "d")
        validate.set_size(self, "d_ff")
        validate.set_size(self, "block", "feed-forward: block", least=0, optional=True)
        validate.choice("activation", self.activation, ACTIVATIONS)
        validate.flag("feed-forward: bias", self.bias)

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        return replace(self, bias=has("b_1"))

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        into, out = (self.d, self.d_ff), (self.d_ff, self.d)
        matrices = (("W_1", into), ("W_3", into), ("W_2", out))
        offsets = (("b_1", self.d_ff), ("b_3", self.d_ff), ("b_2", self.d)) if self.bias else ()
        return (
            *(Weight(kind, "matrix", shape, self.block) for kind, shape in matrices),
            *(Weight(kind, "vector", (size,), self.block) for kind, size in offsets),
        )

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d
