"""The weights of an architecture: their names, shapes and initial laws. Data only; no torch.

Names are those of norms files: "W_V[0]" is the value map of block 0, with one slice per head. A map is
stored as it acts on rows, x -> x W, so its shape is (d_in, d_out), or (heads, d_in, d_out).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.setting import (
    Architecture,
    Attention,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Residual,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of a model.

    Attributes:
        kind: "W_V", "b_1", "positions", ...
        block: its block, if it belongs to one.
        shape: without the dimension of trials.
        law: "uniform" on [-scale, scale], "normal" with deviation scale, or "constant".
        scale: see law.
        headed: whether the first dimension counts heads.
        trained: fixed positions are not.
    """

    kind: str
    block: int | None
    shape: tuple[int, ...]
    law: str
    scale: float
    headed: bool = False
    trained: bool = True

    @property
    def name(self) -> str:
        """Kind and block, as in a norms file."""
        return weight_name(self.kind, self.block)


@dataclass(frozen=True, slots=True)
class Init:
    """Deviations of the tables at the start; all else starts as torch's own layers do."""

    embedding_std: float = 1.0
    position_std: float = 0.1


def weight_name(kind: str, block: int | None) -> str:
    """Name of a tensor from its kind and block."""
    return kind if block is None else f"{kind}[{block}]"


def parameters(architecture: Architecture, init: Init | None = None) -> dict[str, Parameter]:
    """Every tensor of a model, input to read-out."""
    trainable(architecture)
    found: dict[str, Parameter] = {}
    for parameter in _of_layers(architecture.stages, architecture.seq_len, init or Init()):
        if parameter.name in found:
            raise InvalidSetting(f"two layers have weights called {parameter.name}: give them different blocks")
        found[parameter.name] = parameter
    return found


def trainable(architecture: Architecture) -> None:
    """Refuse what can be bounded but is not trained here."""
    for attention in attentions(architecture.stages):
        if attention.normaliser.name == "custom":
            raise Unsupported(
                Refusal("training", "normaliser 'custom'", "a normaliser that says how it maps scores to weights")
            )
    if architecture.rope:
        raise Unsupported(
            Refusal(
                "training", "rotary positions", "positions added to the rows", "Use rope=False, positions='learned'."
            )
        )
    if any(isinstance(stage, Embedding) and stage.segments for stage in architecture.stages):
        raise Unsupported(
            Refusal("training", "a table of segments", "inputs of tokens alone", "Use Embedding(..., segments=0).")
        )


def attentions(stages: Sequence[Layer]) -> Iterator[Attention]:
    """The attention layers, input to read-out."""
    for stage in stages:
        if isinstance(stage, Attention):
            yield stage
        elif isinstance(stage, Residual):
            yield from attentions(stage.branch)


def read_row(architecture: Architecture) -> int:
    """The row that is read out: the last under a causal mask (no other sees all), else the first."""
    return -1 if any(attention.causal for attention in attentions(architecture.stages)) else 0


def _of_layers(stages: Sequence[Layer], seq_len: int, init: Init) -> Iterator[Parameter]:
    for stage in stages:
        if isinstance(stage, Residual):
            yield from _of_layers(stage.branch, seq_len, init)
        elif isinstance(stage, Embedding):
            yield from _of_embedding(stage, seq_len, init)
        elif isinstance(stage, Linear):
            bound = 1 / math.sqrt(stage.d_in)
            zero_offset = stage.kind == "W_O"  # as torch's MultiheadAttention starts
            yield Parameter(stage.kind, stage.block, (stage.d_in, stage.d_out), "uniform", bound)
            if stage.bias:
                scale = 0.0 if zero_offset else bound
                yield Parameter(stage.bias, stage.block, (stage.d_out,), "uniform", scale)
        elif isinstance(stage, GatedFeedForward):
            for kind, rows, columns in (
                ("W_1", stage.d, stage.d_ff),
                ("W_3", stage.d, stage.d_ff),
                ("W_2", stage.d_ff, stage.d),
            ):
                yield Parameter(kind, stage.block, (rows, columns), "uniform", 1 / math.sqrt(rows))
        elif isinstance(stage, LayerNorm):
            if stage.gain:
                yield Parameter(f"{stage.kind}.gain", stage.block, (stage.d,), "constant", 1.0)
            if stage.offset:
                yield Parameter(f"{stage.kind}.offset", stage.block, (stage.d,), "constant", 0.0)
        elif isinstance(stage, Attention):
            yield from _of_attention(stage)


def _of_embedding(layer: Embedding, seq_len: int, init: Init) -> Iterator[Parameter]:
    if layer.vocabulary:
        yield Parameter("embedding", None, (layer.vocabulary, layer.d), "normal", init.embedding_std)
    if layer.positions == "learned":
        yield Parameter("positions", None, (seq_len, layer.d), "normal", init.position_std)
    elif layer.positions == "fixed":
        yield Parameter("positions", None, (seq_len, layer.d), "sphere", layer.position_radius, trained=False)


def _of_attention(layer: Attention) -> Iterator[Parameter]:
    d, heads, groups, block = layer.d, layer.heads, layer.groups, layer.block
    glorot = math.sqrt(6 / (4 * d))  # torch fills queries, keys and values as one (3d, d) matrix
    if layer.d_head is None:
        rows = d + 1 if layer.qk_bias else d
        yield Parameter("W_QK", block, (heads, rows, d), "uniform", math.sqrt(3 / d) / math.sqrt(d), headed=True)
    else:
        for kind, count in (("Q", heads), ("K", groups)):
            yield Parameter(f"W_{kind}", block, (count, d, layer.d_head), "uniform", glorot, headed=True)
            if layer.qk_bias:
                yield Parameter(f"b_{kind}", block, (count, layer.d_head), "constant", 0.0, headed=True)
    yield Parameter("W_V", block, (groups, d, layer.out), "uniform", glorot, headed=True)
    if layer.v_bias:
        yield Parameter("b_V", block, (groups, layer.out), "constant", 0.0, headed=True)


def count_parameters(table: Mapping[str, Parameter]) -> int:
    """How many numbers are trained."""
    return sum(math.prod(p.shape) for p in table.values() if p.trained)
