"""T10: rows of tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from boundcalc.base.schema import Count, Length, Size
from boundcalc.layers.base import TOKENS, Layer, Proved, Role, RowWise, Weight, Widths, of_class, register_layer
from boundcalc.layers.facts import Context, Facts, MatrixNorms, Points, Slot, Target, one_slot
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Embedding(RowWise):
    """Rows of a trained token table, plus fixed or learned positions (vocabulary 0: positions only).

    `segments`: rows of a further trained table, one of which is added to every row (BERT's token types); which one
    is part of the input. `own_row`: the token that the row of a [CLS] read-out shows in every example.
    """

    label: ClassVar[str] = "embedding"
    noise_fields: ClassVar[Proved] = {}

    vocabulary: Count
    d: Size
    positions: Literal["none", "fixed", "learned"] = "none"
    position_radius: Length = 0.0
    segments: Count = 0
    own_row: Count | None = None

    def contradiction(self) -> str | None:
        if self.own_row is not None and not self.own_row < self.vocabulary:
            return f"own_row is one of the {self.vocabulary} tokens, numbered from 0: got {self.own_row}"
        if self.position_radius != 0 and self.positions != "fixed":
            words = f"it is about fixed positions, and the positions are {self.positions!r}"
            return f"position radius = {self.position_radius} would change nothing: {words}"
        return None

    def fixed(self, seq_len: int) -> tuple[tuple[Weight, float], ...]:
        rows = Weight("positions", "rows", (seq_len, self.d))
        return ((rows, self.position_radius),) if self.positions == "fixed" else ()

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        tables: tuple[tuple[str, Role, int], ...] = (
            ("embedding", "table", self.vocabulary),
            ("positions", "rows", seq_len if self.positions == "learned" else 0),
            ("segments", "rows", self.segments),
        )
        return tuple(Weight(kind, role, (rows, self.d)) for kind, role, rows in tables if rows)

    def widths(self) -> Widths:
        return TOKENS if self.vocabulary else self.d, self.d

    def facts(self, at: Context) -> Facts:
        slots: list[Slot] = []
        lengths = [] if self.vocabulary else [at.radius]
        for weight in self.weights(at.seq_len):
            row, covered = at.weights.row(weight.kind)
            lengths.append(row)
            slots.append(
                one_slot(weight.kind, at.ns.number(1), *self._targets(weight.kind, weight.shape[0], covered, at))
            )
        if self.positions == "fixed":
            lengths.append(at.ns.number(self.position_radius))
        return Facts(sum(lengths), at.ns.number(1), tuple(slots), ("T10",))

    def _targets(self, kind: str, rows: int, covered: Any, at: Context) -> tuple[Target, ...]:
        one, points = at.ns.number(1), Points(at.seq_len, rows)
        table = Target("table", rows, self.d, one, MatrixNorms.all(covered, self.d), points)
        budget = at.weights.budget(kind)
        part = budget.distance or budget
        if kind != "embedding" or (part.two_one is None and part.fro is None):
            return (table,)
        matrix = at.weights.matrix(kind, None, None, rows, self.d)
        return table, Target("map", rows, self.d, one, matrix.covered, points)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        y = run.xp.embedding(x, weights("embedding")) if self.vocabulary else x
        if self.positions != "none":
            y = y + weights("positions")[: y.shape[-2]]
        return y + weights("segments")[run.fixed.segment] if self.segments else y


def token_tables(layers: Iterable[Layer]) -> list[Embedding]:
    """The layers that read tokens, those inside of others included."""
    return [layer for layer in of_class(layers, Embedding) if layer.vocabulary]
