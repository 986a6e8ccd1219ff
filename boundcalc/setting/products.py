"""Products of trained weights that an architecture's function depends on alone, and that may have budgets of their own.

Where linear maps follow each other with nothing between them that acts, what counts is their product, and its norms are
often far below the products of theirs. A budget for it is read beside those of the factors, never in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boundcalc.setting.attention import Attention
from boundcalc.setting.layer import EveryRow, Layer, Weight, weights_of
from boundcalc.setting.layers import Embedding, Linear
from boundcalc.setting.lookup import Lookup

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
    """The parts of a network whose only attention, in a residual right after the tokens, is read at a row of its own."""
    match layers:
        case (first, Layer(branches=((), (inside, last))), *rest) if _reads_one_row(rest):
            tokens, heads, output = first.as_tokens(), inside.as_lookup(), last.as_map()
            if tokens is not None and heads is not None and output is not None:
                return Beginning(tokens, heads, output, tuple(rest))
    return None


def _reads_one_row(layers: Sequence[Layer]) -> bool:
    """Whether layers take the [CLS] row alone, and else do the same to every row."""
    return [layer.pooling for layer in layers if not _alike(layer)] == ["cls"]


def _alike(layer: Layer) -> bool:
    """Whether a layer does the same to every row, wherever it stands."""
    return isinstance(layer, EveryRow) or (bool(layer.branches) and all(map(_alike, layer.inner())))


@dataclass(frozen=True, slots=True)
class Ending:
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


def ending(layers: Sequence[Layer]) -> Ending | None:
    """The end of a network that reads out the sum of some rows and of a linear map, in fewer numbers than these have."""
    *front, final = layers
    pools: list[Layer] = []
    while front and front[-1].pooling is not None:
        pools.insert(0, front.pop())
    match front:
        case (*before, Layer(branches=((), (*inside, end)))):
            last, readout = end.as_map(), final.as_map()
            if last is not None and readout is not None and 2 * readout.d_out <= last.d_out:
                return Ending(tuple(before), tuple(inside), last, tuple(pools), readout)
    return None


def products_of(layers: Sequence[Layer], seq_len: int) -> Iterator[Weight]:
    """What may have a budget beside those of its factors, as weights."""
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
