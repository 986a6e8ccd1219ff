"""Feed-forward parts as data: activations, gated parts, and experts that all run, mixed by a gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
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

    @property
    def entrywise(self) -> str:
        return self.name

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


@ours
@dataclass(frozen=True, slots=True)
class Experts(EveryRow):
    """x -> sum_i p_i f_i(x), p = softmax(x W_gate), with gated parts f_i = (s(x W_1) * (x W_3)) W_2 that all run.

    `active`: how many experts run for a row. Fewer than all are refused: where two entries of the gate cross, another
    expert is picked and the output jumps.
    """

    label: ClassVar[str] = "experts"
    title: ClassVar[str] = "experts mixed by a gate"

    d: int
    d_ff: int
    experts: int
    activation: str = "silu"
    block: int | None = None
    active: int | None = None

    def __post_init__(self) -> None:
        for name in ("d", "d_ff"):
            validate.set_size(self, name)
        validate.set_size(self, "experts", most=validate.MOST_STACKED)
        validate.set_size(self, "active", optional=True)
        validate.set_size(self, "block", "experts: block", least=0, optional=True)
        validate.choice("activation", self.activation, ACTIVATIONS)
        if self.active is not None and self.active > self.experts:
            raise InvalidSetting(f"{self.active} of {self.experts} experts cannot run")
        if self.active is not None and self.active < self.experts:
            raise Unsupported(
                Refusal(
                    "routing to experts",
                    f"{self.active} of {self.experts} experts per row: where two entries of the gate cross, another expert "
                    "is picked and the output jumps, so that no error before it, however small, can be carried through",
                    "a Lipschitz factor",
                    "Let all experts run (active unset).",
                )
            )

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        into, out = (self.d, self.d_ff), (self.d_ff, self.d)
        each = (("W_1", into), ("W_3", into), ("W_2", out))
        gate = Weight("W_gate", "matrix", (self.d, self.experts), self.block)
        return (gate, *(Weight(kind, "matrix", shape, self.block, copies=self.experts) for kind, shape in each))

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d
