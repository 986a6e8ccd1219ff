"""Transformer blocks as primitive layers, with just the offsets that a model has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.readers.base import Tensor
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Pool,
    Residual,
)
from boundcalc.setting.validate import size


@dataclass(frozen=True)
class Shape:
    """What differs between families.

    Attributes:
        d: width of a row.
        heads: query heads; kv_heads of keys and values.
        d_head: width of a head.
        d_ff: hidden width.
        norm: "layernorm" or "rmsnorm", with eps; `around_one`: its gains are 1 + w.
        first: whether the normalisation comes before each sublayer. What a sublayer adds is normalised too, before it is
            added, where the file has gains for that ("norm_attention_out", "norm_ffn_out").
        replaced: whether the normalised rows, not those before, are what a sublayer adds to.
        rope: whether queries and keys are rotated; alibi: whether fixed numbers are added to scores.
        cap: the scores' soft cap.
        normalised: whether queries and keys are normalised, head by head or over the whole width.
        buckets: how many learned numbers each head adds to its scores.
        temperature: what scores are divided by; unset, sqrt(d_head).
        gains: whether normalisations have gains.
        beside: whether attention and feed-forward part read the same rows, each through a normalisation ("two norms")
            or both through one ("one norm").
    """

    d: int
    heads: int
    d_head: int
    d_ff: int
    activation: str
    eps: float
    norm: str = "layernorm"
    first: bool = False
    kv_heads: int | None = None
    gated: bool = False
    rope: bool = False
    causal: bool = False
    temperature: float | None = None
    gains: bool = True
    beside: Literal["one norm", "two norms"] | None = None
    around_one: bool = False
    replaced: bool = False
    alibi: bool = False
    cap: float | None = None
    normalised: Literal["head", "width"] | None = None
    buckets: int | None = None


class Sizes(TypedDict):
    """How large blocks are."""

    d: int
    heads: int
    d_head: int
    d_ff: int


def sizes_of(model: Model, d: int | None = None) -> Sizes:
    """What the tensors of the first block say; `d`: the width of a row, where neither W_Q nor the embedding says it."""
    if {"W_Q", "W_Q.T"} & set(model.family.tensors.values()):
        asked, queries = model.shape("W_Q", 0)
        d = asked if d is None else d
    else:
        d = queries = model.shape("embedding")[1] if d is None else d
    return Sizes(d=d, heads=model.heads, d_head=model.head_width(queries), d_ff=model.shape("W_1", 0)[1])


def block(model: Model, shape: Shape, index: int) -> Iterator[Layer]:
    """One block, as the checkpoint has it."""

    def bias(name: str) -> str | None:
        return name if model.has(name, index) else None

    if shape.rope and model.has("b_Q", index) != model.has("b_K", index):
        raise CheckpointError(
            f"block {index} has an offset of queries or of keys alone, which is not supported with RoPE"
        )
    queries = model.has("b_Q", index) or model.has("b_QKV", index)
    attention = Attention(
        d=shape.d,
        heads=shape.heads,
        d_head=shape.d_head,
        d_value=shape.d_head,
        kv_heads=shape.kv_heads if shape.kv_heads != shape.heads else None,
        qk="split" if shape.rope else "joint",
        combine="concat",
        normaliser=Normaliser("softmax", shape.temperature or math.sqrt(shape.d_head)),
        causal=shape.causal,
        qk_bias=queries,
        v_bias=model.has("b_V", index) or model.has("b_QKV", index),
        block=index,
        offsets="fixed" if shape.alibi else "none" if shape.buckets is None else "learned",
        cap=shape.cap,
        buckets=shape.buckets,
        qk_norm=shape.normalised or "none",
        qk_eps=shape.eps if shape.normalised else None,
    )
    output = Linear("W_O", shape.heads * shape.d_head, shape.d, bias=bias("b_O"), block=index)
    if shape.gated:
        given = [name for name in ("b_1", "b_3", "b_2") if bias(name)]
        if len(given) not in (0, 3):
            raise CheckpointError(
                f"block {index} has {' and '.join(given)} alone: a gated feed-forward part has all three offsets or none"
            )
        gated = GatedFeedForward(shape.d, shape.d_ff, shape.activation, block=index, bias=bool(given))
        forward: tuple[Layer, ...] = (gated,)
    else:
        forward = (
            Linear("W_1", shape.d, shape.d_ff, bias=bias("b_1"), block=index),
            Activation(shape.activation),
            Linear("W_2", shape.d_ff, shape.d, bias=bias("b_2"), block=index),
        )
    if shape.beside == "one norm":
        both = Residual((attention, output), (forward,), skip=False)
        yield Residual((normalisation(model, "norm_attention", shape, index), both))
        return
    if shape.beside == "two norms":
        first, second = (normalisation(model, kind, shape, index) for kind in ("norm_attention", "norm_ffn"))
        yield Residual((first, attention, output), ((second, *forward),))
        return
    for kind, branch in (("norm_attention", (attention, output)), ("norm_ffn", forward)):
        before = (normalisation(model, kind, shape, index),) if _normalised(model, kind, shape, index) else ()
        after = f"{kind}_out"
        if model.has(f"{after}.gain", index):
            branch = (*branch, normalisation(model, after, shape, index))
        if shape.first and not shape.replaced:
            yield Residual((*before, *branch))
        elif shape.first:
            yield from before
            yield Residual(branch)
        else:
            yield Residual(branch)
            yield from before


def _normalised(model: Model, kind: str, shape: Shape, index: int) -> bool:
    """Whether a sublayer has a normalisation: where they have gains, the file says so (ModernBERT's first has none)."""
    return model.has(f"{kind}.gain", index) or not (shape.gains and model.family.bare_sublayers)


def normalisation(model: Model, kind: str, shape: Shape, index: int | None = None) -> LayerNorm:
    """A LayerNorm, with an offset if the checkpoint has one."""
    centred = shape.norm == "layernorm"
    offset = model.has(f"{kind}.offset", index)
    return LayerNorm(
        kind,
        shape.d,
        shape.eps,
        centred,
        gain=shape.gains,
        offset=offset,
        block=index,
        around_one=shape.around_one and shape.gains,
    )


def read_out(
    model: Model, d: int, pooler: str = "tanh", transform: str = "gelu", eps: float = 1e-12
) -> tuple[list[Layer], int]:
    """From rows to logits, by what there is of a transform, a pooler and a read-out; and how many logits.

    `transform` and `eps` are those of a masked-LM head, `pooler` the activation after a pooler.
    """
    tied_to_embedding = _tied(model)
    layers: list[Layer] = [Pool("cls")]
    if model.has("W_transform"):
        shape = model.shape("W_transform")
        layers.append(Linear("W_transform", *shape, bias=_bias(model, "b_transform")))
        layers.append(Activation(transform))
        layers.append(LayerNorm("norm_transform", shape[1], eps, offset=model.has("norm_transform.offset")))
        d = shape[1]
    elif model.has("W_pool"):
        shape = model.shape("W_pool")
        layers += [Linear("W_pool", *shape, bias=_bias(model, "b_pool")), Activation(pooler)]
        d = shape[1]
    if model.has("readout"):
        classes = model.shape("readout")[1]
    elif tied_to_embedding:
        classes = model.shape("embedding")[0]
    else:
        classes = model.option("classes") or 1
    layers.append(Linear("readout", d, classes, bias=_bias(model, "b_readout")))
    return layers, classes


def _bias(model: Model, name: str) -> str | None:
    return name if model.has(name) else None


_LANGUAGE = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForPreTraining")


def _tied(model: Model) -> bool:
    """Whether the read-out is the embedding table: a language-model head that the checkpoint does not hold."""
    head = model.head
    if not model.has("embedding"):
        return False
    said = model.flag("tie_word_embeddings")
    if said and not all(_same_numbers(*pair) for pair in model.gave_way):
        model.settings.doubt("tie_word_embeddings", f"but {model.gave_way[0][0].name} differs from its twin")
    language = head in _LANGUAGE if head else model.has("W_transform")
    if not model.has("readout"):
        return language and said
    if said and language and not _same_table(model):
        model.settings.doubt("tie_word_embeddings", "but the file has a read-out that is not the embedding table")
    return False


def _same_table(model: Model) -> bool:
    """Whether the read-out in the file is the embedding table."""
    return _same_numbers(model.place("readout").tensor, model.place("embedding").tensor)


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same, number by number."""
    same_kind = a.shape == b.shape and a.dtype == b.dtype
    return a.storage == b.storage or (same_kind and np.array_equal(a.fetch(), b.fetch()))


def tables(model: Model, d: int, longest: int | None = None) -> tuple[Embedding, int]:
    """Token, segment and position tables, and T; `longest` is T where there is no table of positions."""
    learned = model.has("positions")
    if learned:
        longest = model.table_shape("positions")[0] - model.family.first_position(model)
    if longest is not None and longest < 1:
        raise CheckpointError(f"{model.checkpoint.where} has no positions that a row of the input could have")
    seq_len = model.option("seq_len") or longest
    if seq_len is None:
        raise CheckpointError(f"{model.checkpoint.where} does not say how long its sequences are: say --T 512")
    if learned and longest is not None and seq_len > longest:
        raise CheckpointError(f"T = {seq_len} is more than the {longest} positions of {model.checkpoint.where}")
    vocabulary = model.shape("embedding")[0] if model.has("embedding") else 0
    segments = model.shape("segments")[0] if model.has("segments") else 0
    return Embedding(vocabulary, d, "learned" if learned else "none", segments=segments), seq_len


def assemble(layers: list[Layer], seq_len: int, classes: int, radius: float = 1.0) -> Architecture:
    """The architecture of some layers."""
    return Architecture(layers=tuple(layers), seq_len=seq_len, classes=classes, input_radius=radius)


def stacked(
    model: Model,
    shape: Shape,
    longest: str = "",
    *,
    normed: bool = False,
    at: Callable[[int], Shape] | None = None,
    tail: tuple[list[Layer], int] | None = None,
) -> Architecture:
    """Tables, blocks of one shape, a normalisation and a read-out.

    `longest`: the field that says how long sequences are; `normed`: whether the tables' rows are normalised; `at`: the shape
    of each block, where they differ; `tail`: the read-out, where it is a family's own.
    """
    limit = model.setting(longest) if longest else None
    front, seq_len = tables(model, shape.d, None if limit is None else size(longest, limit))
    layers: list[Layer] = [front, *([normalisation(model, "norm_embedding", shape)] if normed else [])]
    for index in range(model.depth):
        layers += block(model, shape if at is None else at(index), index)
    layers.append(normalisation(model, "norm_final", shape))
    end, classes = read_out(model, shape.d) if tail is None else tail
    return assemble(layers + end, seq_len, classes)
