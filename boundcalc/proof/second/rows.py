"""Which rows a layer reads, written a second time."""

from __future__ import annotations

from collections.abc import Sequence

from boundcalc.proof.second.numbers import unknown
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    Experts,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    Residual,
    SoftCap,
)


def rows_read(layers: Sequence[Layer], rows: int, seq_len: int) -> list[int]:
    """How many output rows of each layer are read, from the last back: all below an attention or a mean."""
    read: list[int] = []
    for layer in reversed(layers):
        read.append(rows)
        if mixes(layer):
            rows = seq_len
        elif isinstance(layer, Pool):
            rows = 1
    return read[::-1]


def mixes(layer: Layer) -> bool:
    """Whether one output row depends on every input row; a layer that is not known is refused."""
    match layer:
        case Residual():
            return any(mixes(inner) for branch in layer.branches for inner in branch)
        case Pool():
            return layer.how == "mean"
        case Attention() | Lookup():
            return True
        case (
            Linear()
            | Activation()
            | Ball()
            | SoftCap()
            | LayerNorm()
            | GatedFeedForward()
            | Experts()
            | Embedding()
            | Hidden()
        ):
            return False
        case _:
            raise unknown("layer", type(layer).__name__)
