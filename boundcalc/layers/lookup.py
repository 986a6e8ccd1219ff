"""A7: heads that look their scores and values up: what attention on tokens is to a row in which there are no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from boundcalc.base.schema import Size, Stacked
from boundcalc.layers.base import TOKENS, Layer, Proved, Role, Weight, Widths, register_layer
from boundcalc.layers.facts import Context, Facts, Member, Points, Slot, Target, one_slot, vector_target
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Lookup(Layer):
    """Softmax heads whose scores and values are those of a token plus those of its position.

    Head h sees row t, which shows token i, with the score `token_scores[i, h] + position_scores[t, h]` and the value
    `token_values[i, h] + position_values[t, h]`, d_value numbers. The heads' outputs are set side by side; every row of
    the output is the same.
    """

    label: ClassVar[str] = "lookup"
    noise_fields: ClassVar[Proved] = {}

    vocabulary: Size
    heads: Stacked
    d_value: Size

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        width = self.heads * self.d_value
        tables: tuple[tuple[str, Role, int, int], ...] = (
            ("token_scores", "scores", self.vocabulary, self.heads),
            ("position_scores", "scores", seq_len, self.heads),
            ("token_values", "values", self.vocabulary, width),
            ("position_values", "values", seq_len, width),
        )
        return tuple(Weight(kind, role, (rows, columns)) for kind, role, rows, columns in tables)

    def widths(self) -> Widths:
        return TOKENS, self.heads * self.d_value

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len

    def facts(self, at: Context) -> Facts:
        """Scores as numbers (T9, or noise on all of them), values as one vector (T8, T12), or noise on what is pooled.

        `heads` of values is the root of the sum over heads of the square of the longest part, so that |y| <= its sum
        over both tables; scores that err by e move y by 2 tanh(e/2) times that (S5, each head by its own part).
        """
        ns, one = at.ns, at.ns.number(1)
        tables = {weight.kind: weight for weight in self.weights(at.seq_len)}
        values: list[Slot] = []
        radius = ns.number(0)
        for kind in ("token_values", "position_values"):
            longest, norms = at.weights.table(tables[kind])
            radius = radius + longest
            (d, k), size = tables[kind].shape, tables[kind].parameters
            pooled = Target("pooled", d, k, one, norms, Points(1))
            values.append(one_slot(kind, one, vector_target(ns, "vector", size, norms.fro), pooled))
        scores: list[Slot] = []
        for kind in ("token_scores", "position_scores"):
            largest, norms = at.weights.table(tables[kind])
            (d, k), size = tables[kind].shape, tables[kind].parameters
            targets = vector_target(ns, "gain", size, largest), Target("numbers", d, k, one, norms, Points(0, 1))
            scores.append(Slot(kind, radius, (Member(1, targets),), 2 * radius, saturates=True))
        return Facts(radius, one, (*scores, *values), ("A7", "S5"))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        n, count = x.shape
        scores, values = (
            weights(f"token_{part}")[x] + weights(f"position_{part}")[:count] for part in ("scores", "values")
        )
        mix = run.xp.softmax(scores.swapaxes(1, 2), -1)
        heads = run.xp.einsum("nht,nthw->nhw", mix, values.reshape(n, count, self.heads, self.d_value))
        return run.xp.repeat_interleave(heads.reshape(n, 1, -1), count, 1)
