"""Products of trained weights that an architecture's function depends on alone, and that may have budgets of their own.

Where linear maps follow each other with nothing between them that acts, what counts is their product, and its norms are
often far below the products of theirs. A budget for it is read besides those of the factors, never in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from boundcalc.layers.activation import Activation
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import EveryRow, Layer, Weight, weights_of
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.linear import Linear
from boundcalc.layers.merged import Lookup
from boundcalc.layers.rows import Pool, Residual

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
