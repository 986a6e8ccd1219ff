"""T10: rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from boundcalc.base.schema import Count, Length, Size
from boundcalc.layers.base import TOKENS, Layer, Role, RowWise, Weight, Widths, of_class, register_layer
from boundcalc.layers.facts import Context, Facts, Target, one_slot
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Embedding(RowWise):
    """Rows of a trained token table, plus fixed or learned positions (vocabulary 0: positions only).

    `segments`: rows of a further trained table, one of which is added to every row (BERT's token types); which one
    is part of the input. `own_row`: the token that the row of a [CLS] read-out shows in every example.
    """

    label = "embedding"
    noise_fields = ()

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
        weights, one = self.weights(at.seq_len), at.ns.number(1)
        lengths = [at.size(weight) for weight in weights]
        if not self.vocabulary:
            lengths.append(at.radius)
        if self.positions == "fixed":
            lengths.append(at.ns.number(self.position_radius))
        slots = tuple(one_slot(weight.kind, one, *self._targets(weight, at)) for weight in weights)
        return Facts(sum(lengths), one, slots, ("T10",))

    def _targets(self, weight: Weight, at: Context) -> Iterator[Target]:
        """Rows that are covered one by one; tokens also as one matrix, where its norms are limited."""
        yield (table := at.target(weight))
        budget = at.weights.budget(weight.kind)
        part = budget.distance or budget
        if weight.role == "table" and not part.two_one is part.fro is None:
            matrix = at.weights.matrix(weight.kind, None, None, *weight.shape)
            yield replace(table, kind="map", norms=matrix.covered)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        y = run.xp.embedding(x, weights("embedding")) if self.vocabulary else x
        if self.positions != "none":
            y = y + weights("positions")[: y.shape[-2]]
        return y + weights("segments")[run.fixed.segment] if self.segments else y


def token_tables(layers: Iterable[Layer]) -> list[Embedding]:
    """The layers that read tokens, those inside of others included."""
    return [layer for layer in of_class(layers, Embedding) if layer.vocabulary]
