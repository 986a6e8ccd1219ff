"""Heads that look their scores and values up: what attention on tokens is to a row in which there are no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boundcalc.setting import validate
from boundcalc.setting.layer import TOKENS, Layer, Role, Weight
from boundcalc.setting.named import ours


@ours
@dataclass(frozen=True, slots=True)
class Lookup(Layer):
    """Softmax heads whose scores and values are those of a token plus those of its position.

    Head h sees row t, which shows token i, with the score `token_scores[i, h] + position_scores[t, h]` and the value
    `token_values[i, h] + position_values[t, h]`, d_value numbers. The heads' outputs are set side by side; every row of
    the output is the same.
    """

    label: ClassVar[str] = "lookup"

    vocabulary: int
    heads: int
    d_value: int

    def __post_init__(self) -> None:
        for name in ("vocabulary", "d_value"):
            validate.set_size(self, name, f"lookup: {name}")
        validate.set_size(self, "heads", "lookup: heads", most=validate.MOST_STACKED)

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        width = self.heads * self.d_value
        tables: tuple[tuple[str, Role, int, int], ...] = (
            ("token_scores", "scores", self.vocabulary, self.heads),
            ("position_scores", "scores", seq_len, self.heads),
            ("token_values", "values", self.vocabulary, width),
            ("position_values", "values", seq_len, width),
        )
        return tuple(Weight(kind, role, (rows, columns)) for kind, role, rows, columns in tables)

    def inner(self) -> tuple[Layer, ...]:
        return ()

    def widths(self) -> tuple[int | None, int | None]:
        return TOKENS, self.heads * self.d_value

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len
