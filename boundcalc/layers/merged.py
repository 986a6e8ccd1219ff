"""What maps that meet are made of: a hidden layer seen through one column (V4), heads that look up (A7).

Where linear maps follow each other with nothing between them that acts, what counts is their product, and its norms are
often far below the products of theirs. A budget for it is read besides those of the factors, never in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.schema import Count, Name, Size, Stacked
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import TOKENS, EveryRow, Layer, Role, RowWise, Weight, Widths, register_layer, weights_of
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.facts import Context, Facts, MatrixNorms, Member, Points, Slot, Target, one_slot
from boundcalc.layers.forward import Arrays, Forward
from boundcalc.layers.linear import Linear
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ, Activation, Function, Pool, Residual

_CURVATURE = {"gelu": 0.79789, "silu": 0.5, "quick_gelu": 0.851, "tanh": 0.76981, "identity": 0.0}
"""The largest second derivative, rounded up: 2/sqrt(2 pi), 1/2, 1.702/2, 4/(3 sqrt 3) and 0."""
_KINKED = ("relu",)
"""Piecewise linear, with a slope that jumps by 1 once."""
ROOM = (0.3, 0.6, 1.2, 2.4)
"""What curvature may add to the spread of the noise; the noise is then as small as that asks."""


@register_layer
@dataclass(frozen=True, slots=True)
class Hidden(RowWise):
    """x -> s(x W (+ c)) v with one column v: what two linear maps and an activation between them are, as one layer."""

    label = "hidden"
    noise_fields = ()

    first: Name
    last: Name
    d: Size
    d_ff: Size
    activation: Function
    bias: Name | None = None
    block: Count | None = None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        first = Weight(self.first, "matrix", (self.d, self.d_ff), self.block)
        last = Weight(self.last, "matrix", (self.d_ff, 1), self.block)
        offset = () if self.bias is None else (Weight(self.bias, "vector", (self.d_ff,), self.block),)
        return (first, *offset, last)

    def widths(self) -> Widths:
        return self.d, 1

    def facts(self, at: Context) -> Facts:
        """L3, L6, T8 one after the other, whose noise on W is also seen through v (V4)."""
        ns, slope, weights = at.ns, ACTIVATION_LIPSCHITZ[self.activation], self.weights(at.seq_len)
        first, *offset, last = weights
        reach = at.radius * at.size(first) + sum(map(at.size, offset))
        steep, row = ns.number(slope) * at.size(last), at.target(first)
        slots = (
            one_slot(self.first, steep, row, *_summed(ns, row, self.activation, slope, reach)),
            *(at.slot(weight, steep) for weight in offset),
            at.slot(last, radius=reach),
        )
        uses = ("L3", "L6", "T8") if self.bias else ("L3", "L6")
        return Facts(reach * at.size(last), at.size(first) * steep, slots, uses)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        units = run.xp.affine(x, weights(self.first), weights(self.bias) if self.bias else None)
        return run.xp.activations[self.activation](units) @ weights(self.last)


def averaged(
    ns: NumberSystem, activation: str, slope: float, units: int, reach: Number
) -> tuple[Number, Number] | None:
    """V4: what the mean adds to t in units of L B s, without s and per s; None where no curvature is known."""
    k, lipschitz = ns.number(units), ns.number(slope)
    extra = 1 / (2 * lipschitz)
    bend = k / (2 * reach)
    if activation in _KINKED:
        return extra + ns.sqrt(k / (2 * ns.pi)) / lipschitz, bend / lipschitz
    if activation not in _CURVATURE:
        return None
    return extra, (bend + ns.number(_CURVATURE[activation]) / 2 * ns.sqrt(k)) / lipschitz


def _summed(ns: NumberSystem, row: Target, activation: str, slope: float, reach: Number) -> Iterator[Target]:
    """The same map through the sum of its units: what the spread gains, and how large the noise may be."""
    added = averaged(ns, activation, slope, row.k, reach)
    if added is None:
        return
    for room in ROOM:
        yield replace(row, kind="summed", extra=added[0] + ns.number(room), most=ns.number(room) / added[1])


@register_layer
@dataclass(frozen=True, slots=True)
class Lookup(Layer):
    """Softmax heads whose scores and values are those of a token plus those of its position.

    Head h sees row t, which shows token i, with the score `token_scores[i, h] + position_scores[t, h]` and the value
    `token_values[i, h] + position_values[t, h]`, d_value numbers. The heads' outputs are set side by side; every row of
    the output is the same.
    """

    label = "lookup"
    noise_fields = ()

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
        one, weights = at.ns.number(1), self.weights(at.seq_len)
        radius, slots = sum(at.size(weight) for weight in weights if weight.role == "values"), list[Slot]()
        for weight in weights:
            size, norms = at.weights.read(weight)
            (d, k), number = weight.shape, weight.parameters
            if weight.role == "scores":
                entries = Target("gain", 1, number, one, MatrixNorms.all(size), Points(0, 1))
                noisy = Target("numbers", d, k, one, norms, Points(0, 1))
                slots.append(Slot(weight.kind, radius, (Member(1, (entries, noisy)),), 2 * radius, saturates=True))
            else:
                whole = Target("vector", 1, number, one, MatrixNorms.all(norms.fro), Points(0, 1))
                slots.append(one_slot(weight.kind, one, whole, Target("pooled", d, k, one, norms, Points(1))))
        return Facts(radius, one, tuple(slots), ("A7", "S5"))

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        n, count = x.shape
        scores, values = (
            weights(f"token_{part}")[x] + weights(f"position_{part}")[:count] for part in ("scores", "values")
        )
        mix = run.xp.softmax(scores.swapaxes(1, 2), -1)
        heads = run.xp.einsum("nht,nthw->nhw", mix, values.reshape(n, count, self.heads, self.d_value))
        return run.xp.repeat_interleave(heads.reshape(n, 1, -1), count, 1)


# -- products of trained weights that a function depends on alone, and that may have budgets next to those of factors

FIRST_ROW = "first_row"
"""What the first attention adds to its heads' outputs: the row it reads, and offsets."""
_READ = "_to_readout"
_LOOKED_UP = frozenset(("token_scores", "position_scores", "token_values", "position_values", FIRST_ROW))


@dataclass(frozen=True, slots=True)
class Beginning:
    """A first attention on tokens, read at a row without data: its layers, and what comes after them."""

    embedding: Embedding
    attention: Attention
    output: Linear
    rest: tuple[Layer, ...]

    @property
    def lookup(self) -> Lookup:
        """The same heads with scores and values in tables."""
        return Lookup(self.embedding.vocabulary, self.attention.heads, self.attention.out)


def beginning(layers: Sequence[Layer]) -> Beginning | None:
    """The parts of a network whose only attention, right after the tokens, is read at a row of its own."""
    match layers:
        case (Embedding() as rows, Residual((Attention() as heads, Linear() as output), (), True), *rest):
            sums = rows.vocabulary and rows.positions == "learned" and not rows.segments and rows.own_row is not None
            plain = heads.normaliser.name == "softmax" and heads.cap is None and heads.qk_norm == "none"
            alone = heads.qk == "joint" and heads.groups == heads.heads and heads.combine == "concat"
            if sums and plain and alone and heads.offsets == "none" and not heads.causal and _reads_one_row(rest):
                return Beginning(rows, heads, output, tuple(rest))
    return None


def _reads_one_row(layers: Sequence[Layer]) -> bool:
    """Whether layers take the [CLS] row alone, and else do the same to every row."""
    return [layer for layer in layers if not _alike(layer)] == [Pool("cls")]


def _alike(layer: Layer) -> bool:
    """Whether a layer does the same to every row, wherever it stands."""
    return isinstance(layer, EveryRow) or (bool(layer.branches) and all(map(_alike, chain(*layer.branches))))


@dataclass(frozen=True, slots=True)
class _Ending:
    """A residual part whose last map meets the read-out (A6)."""

    before: tuple[Layer, ...]
    inside: tuple[Layer, ...]
    last: Linear
    pools: tuple[Layer, ...]
    readout: Linear

    @property
    def kind(self) -> str:
        """The name of the product of the last map and the read-out."""
        return f"{self.last.kind}{_READ}"

    @property
    def hidden(self) -> tuple[Linear, Activation] | None:
        """The first map and the activation of a hidden layer in front of the last map, where they are one block's."""
        match self.inside:
            case (*_, Linear() as first, Activation() as function) if first.block == self.last.block:
                return first, function
        return None


def ending(layers: Sequence[Layer]) -> _Ending | None:
    """The end of a network that reads out the sum of rows and of a linear map, in fewer numbers."""
    *front, readout = layers
    pools: list[Layer] = []
    while front and isinstance(front[-1], Pool):
        pools.insert(0, front.pop())
    match front, readout:
        case (*before, Residual((*inside, Linear() as last), (), True)), Linear() if 2 * readout.d_out <= last.d_out:
            return _Ending(tuple(before), tuple(inside), last, tuple(pools), readout)
    return None


def products_of(layers: Sequence[Layer], seq_len: int) -> Iterator[Weight]:
    """What may have a budget besides those of its factors, as weights."""
    first = beginning(layers)
    if first is not None:
        yield from weights_of((first.lookup,), seq_len)
        yield Weight(FIRST_ROW, "vector", (first.output.d_out,), first.output.block)
    last = ending(layers)
    if last is not None:
        yield Weight(last.kind, "matrix", (last.last.d_in, last.readout.d_out), last.last.block)


def is_product(kind: str) -> bool:
    """Whether a kind is the name of a product."""
    return kind in _LOOKED_UP or kind.endswith(_READ)
