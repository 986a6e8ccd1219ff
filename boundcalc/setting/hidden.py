"""A hidden layer whose units are added up to one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boundcalc.setting import validate
from boundcalc.setting.feedforward import ACTIVATIONS
from boundcalc.setting.layer import RowWise, Weight
from boundcalc.setting.named import ours


@ours
@dataclass(frozen=True, slots=True)
class Hidden(RowWise):
    """x -> s(x W (+ c)) v with one column v: what two linear maps and an activation between them are, as one layer."""

    label: ClassVar[str] = "hidden"

    first: str
    last: str
    d: int
    d_ff: int
    activation: str
    bias: str | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            validate.word(f"hidden: {name}", getattr(self, name))
        for name in ("d", "d_ff"):
            validate.set_size(self, name, f"hidden: {name}")
        validate.choice("activation", self.activation, ACTIVATIONS)
        if self.bias is not None:
            validate.word("hidden: bias", self.bias)
        validate.set_size(self, "block", "hidden: block", least=0, optional=True)

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        first = Weight(self.first, "matrix", (self.d, self.d_ff), self.block)
        last = Weight(self.last, "matrix", (self.d_ff, 1), self.block)
        return (first, *self._offset(), last)

    def _offset(self) -> tuple[Weight, ...]:
        return () if self.bias is None else (Weight(self.bias, "vector", (self.d_ff,), self.block),)

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, 1
