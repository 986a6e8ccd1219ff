"""The weights of an architecture: their names, shapes and initial laws. Data only; no torch.

Names are those of norms files: "W_V[0]" is the value map of block 0, with one slice per head. A map is
stored as it acts on rows, x -> x W, so its shape is (d_in, d_out), or (heads, d_in, d_out).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.schema import Length, check_fields
from boundcalc.layers.attention import is_causal
from boundcalc.layers.base import flat, of_class, place_named
from boundcalc.layers.embedding import Embedding
from boundcalc.setting import Architecture, Attention, Layer

CLS = 2
"""Token of the row that is read out of a sequence of bits; 0 and 1 are the bits."""


class Parameter(NamedTuple):
    """One tensor of a model: its name as in a norms file, and how it starts.

    Attributes:
        name: its kind and block: "W_V[0]", "positions", ...
        shape: without the dimension of trials; heads come first.
        law: "uniform" on [-scale, scale], "normal" with deviation scale, "constant", or "sphere" of this radius.
        scale: see law.
        trained: fixed positions are not.
    """

    name: str
    shape: tuple[int, ...]
    law: str
    scale: float
    trained: bool = True


@dataclass(frozen=True, slots=True)
class Init:
    """Deviations of the tables at the start; all else starts as torch's own layers do."""

    embedding_std: Length = 1.0
    position_std: Length = 0.1

    def __post_init__(self) -> None:
        check_fields(self)


def parameters(architecture: Architecture, init: Init | None = None) -> dict[str, Parameter]:
    """Every tensor of a model, input to read-out."""
    _refuse_untrainable(architecture)
    table: dict[str, Parameter] = {}
    for layer in flat(architecture.stages):
        attention = isinstance(layer, Attention)
        starts = _of_attention(layer) if attention else _of_weights(layer, architecture.seq_len, init or Init())
        for parameter in starts:
            if parameter.name in table:
                raise InvalidSetting(f"two layers have weights called {parameter.name}: give them different blocks")
            table[parameter.name] = parameter
    return table


def _refuse_untrainable(architecture: Architecture) -> None:
    """Refuse what can be bounded but is not trained here."""
    layers = list(of_class(architecture.stages, Attention))
    refused = {
        f"weights of {architecture.bits} bits": architecture.bits is not None,
        "numbers added to scores (offsets)": any(a.offsets != "none" for a in layers),
        "normalised queries and keys (qk_norm)": any(a.qk_norm != "none" for a in layers),
        "a query of the layer's own (qk='fixed')": any(a.qk == "fixed" for a in layers),
        "normaliser 'custom'": any(a.normaliser.name == "custom" for a in layers),
        "rotary positions (rope)": architecture.rope,
        "a table of segments": any(e.segments for e in of_class(architecture.stages, Embedding)),
    }
    for what, holds in refused.items():
        if holds:
            raise Unsupported(Refusal("training", what, "models that can be trained here", "Leave that out."))


def read_row(architecture: Architecture) -> int:
    """The row that is read out: the last under a causal mask (no other sees all), else the first."""
    return -1 if is_causal(architecture.stages) else 0


def _of_weights(layer: Layer, seq_len: int, init: Init) -> Iterator[Parameter]:
    """By what a layer is: maps start as torch.nn.Linear's, normalisations at the identity, tables by `Init`."""
    weights = layer.weights(seq_len)
    maps = [weight for weight in weights if weight.role == "matrix"]
    alone = len(maps) == 1 and maps[0].kind != "W_O"  # offsets of several maps, and torch's behind heads, start at 0
    gain = 0.0 if getattr(layer, "around_one", False) else 1.0  # of 1 + w it is w that is trained
    for weight in weights:
        if weight.role not in ("matrix", "vector", "gain", "table", "rows") or weight.heads or weight.copies > 1:
            what = f"layer {layer.label!r}: {weight.copies} of the role {weight.role!r}"
            raise Unsupported(Refusal("training", what, "layers of single maps, offsets, gains and tables"))
        law, scale = "uniform", 1 / math.sqrt(weight.shape[0])
        if weight.role == "vector":
            law, scale = ("uniform" if maps else "constant"), 1 / math.sqrt(maps[0].shape[0]) if alone else 0.0
        elif weight.role == "gain":
            law, scale = "constant", gain
        elif weight.role != "matrix":
            law, scale = "normal", init.embedding_std if weight.role == "table" else init.position_std
        yield Parameter(place_named(weight.kind, weight.block), weight.shape, law, scale)
    for weight, length in layer.fixed(seq_len):
        yield Parameter(place_named(weight.kind, weight.block), weight.shape, "sphere", length, trained=False)


def _of_attention(layer: Attention) -> Iterator[Parameter]:
    """As one matrix of all heads would start."""
    d, heads, groups = layer.d, layer.heads, layer.groups
    glorot = math.sqrt(6 / (4 * d))  # torch fills queries, keys and values as one (3d, d) matrix
    starts: list[tuple[str, tuple[int, ...], float]] = []
    if layer.d_head is None:
        starts += [("W_QK", (heads, d + layer.qk_bias, d), math.sqrt(3 / d) / math.sqrt(d))]
    else:
        starts += [("W_Q", (heads, d, layer.d_head), glorot), ("b_Q", (heads, layer.d_head), 0.0)]
        starts += [("W_K", (groups, d, layer.d_head), glorot), ("b_K", (groups, layer.d_head), 0.0)]
    starts += [("W_V", (groups, d, layer.out), glorot), ("b_V", (groups, layer.out), 0.0)]
    for kind, shape, scale in starts:
        if scale or (layer.v_bias if kind == "b_V" else layer.qk_bias):
            yield Parameter(place_named(kind, layer.block), shape, "uniform" if scale else "constant", scale)
