"""Transformer blocks as primitive layers, with just the offsets that a model has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Model
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


@dataclass(frozen=True)
class Shape:
    """What differs between families.

    Attributes:
        d: width of a row.
        heads: query heads; kv_heads of keys and values.
        d_head: width of a head.
        d_ff: hidden width.
        norm: "layernorm" or "rmsnorm", with eps.
        first: whether the normalisation comes before each sublayer.
        scaled: whether scores are divided by sqrt(d_head).
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
    scaled: bool = True


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
        normaliser=Normaliser("softmax", math.sqrt(shape.d_head) if shape.scaled else 1.0),
        causal=shape.causal,
        qk_bias=queries,
        v_bias=model.has("b_V", index) or model.has("b_QKV", index),
        block=index,
    )
    output = Linear("W_O", shape.heads * shape.d_head, shape.d, bias=bias("b_O"), block=index)
    if shape.gated:
        for name in ("b_1", "b_2", "b_3"):
            if bias(name):
                raise CheckpointError(
                    f"block {index} has offsets in its gated feed-forward part, which are not supported"
                )
        forward: tuple[Layer, ...] = (GatedFeedForward(shape.d, shape.d_ff, shape.activation, block=index),)
    else:
        forward = (
            Linear("W_1", shape.d, shape.d_ff, bias=bias("b_1"), block=index),
            Activation(shape.activation),
            Linear("W_2", shape.d_ff, shape.d, bias=bias("b_2"), block=index),
        )
    for kind, branch in (("norm_attention", (attention, output)), ("norm_ffn", forward)):
        norm = normalisation(model, kind, shape, index)
        if shape.first:
            yield Residual((norm, *branch))
        else:
            yield Residual(branch)
            yield norm


def normalisation(model: Model, kind: str, shape: Shape, index: int | None = None) -> LayerNorm:
    """A LayerNorm, with an offset if the checkpoint has one."""
    centred = shape.norm == "layernorm"
    return LayerNorm(kind, shape.d, shape.eps, centred, offset=model.has(f"{kind}.offset", index), block=index)


def read_out(model: Model, d: int, pooler: str = "tanh", how: str = "cls") -> tuple[list[Layer], int]:
    """From rows to logits, by what there is of a transform, a pooler and a read-out; and how many logits."""
    layers: list[Layer] = [Pool("mean" if how == "mean" else "cls")]
    if model.has("W_transform"):
        shape = model.shape("W_transform")
        layers.append(Linear("W_transform", *shape, bias=_bias(model, "b_transform")))
        layers.append(Activation(pooler_of(model)))
        eps = model.number("layer_norm_eps", default=1e-12)
        layers.append(LayerNorm("norm_transform", shape[1], eps, offset=model.has("norm_transform.offset")))
        d = shape[1]
    elif model.has("W_pool"):
        shape = model.shape("W_pool")
        layers += [Linear("W_pool", *shape, bias=_bias(model, "b_pool")), Activation(pooler)]
        d = shape[1]
    if model.has("readout"):
        classes = model.shape("readout")[1]
    elif tied(model):
        classes = model.shape("embedding")[0]
    else:
        classes = model.options.classes or 1
    layers.append(Linear("readout", d, classes, bias=_bias(model, "b_readout")))
    return layers, classes


def pooler_of(model: Model) -> str:
    """The activation of a masked-LM transform."""
    from boundcalc.checkpoints.families.table import activation

    return activation(model.setting("hidden_act", "activation", default="gelu"))


def _bias(model: Model, name: str) -> str | None:
    return name if model.has(name) else None


def tied(model: Model) -> bool:
    """Whether the read-out is the embedding table: a language-model head that the checkpoint does not hold."""
    if model.has("readout") or not model.has("embedding"):
        return False
    heads = model.setting("architectures", default=None)
    first = str(heads[0]) if isinstance(heads, list) and heads else ""
    language = model.has("W_transform") or first.endswith(("LMHeadModel", "ForCausalLM", "ForMaskedLM"))
    return language and bool(model.setting("tie_word_embeddings", default=True))


def tables(model: Model, d: int, longest: int, offset: int = 0) -> tuple[Embedding, int]:
    """Token, segment and position tables, and T."""
    learned = model.has("positions")
    if learned:
        longest = model.table_shape("positions")[0] - offset
    if longest < 1:
        raise CheckpointError(f"{model.checkpoint.where} has no positions that a row of the input could have")
    seq_len = model.options.seq_len or longest
    if learned and seq_len > longest:
        raise CheckpointError(f"T = {seq_len} is more than the {longest} positions of {model.checkpoint.where}")
    vocabulary = model.shape("embedding")[0] if model.has("embedding") else 0
    segments = model.shape("segments")[0] if model.has("segments") else 0
    return Embedding(vocabulary, d, "learned" if learned else "none", segments=segments), seq_len


def assemble(layers: list[Layer], seq_len: int, classes: int, radius: float = 1.0) -> Architecture:
    """The architecture of some layers."""
    return Architecture(layers=tuple(layers), seq_len=seq_len, classes=classes, input_radius=radius)
