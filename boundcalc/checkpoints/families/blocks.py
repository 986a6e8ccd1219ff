"""Transformer blocks as primitive layers, with just the offsets that a model has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import activation, rotation_factor
from boundcalc.checkpoints.families.table import LANGUAGE, Model
from boundcalc.checkpoints.readers.base import Tensor
from boundcalc.checkpoints.readers.locate import POOLING
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
    SoftCap,
)


@dataclass(frozen=True)
class Shape:
    """The blocks of a model.

    Attributes:
        d: width of a row.
        heads: query heads; kv_heads of keys and values.
        d_head: width of a head.
        d_ff: hidden width.
        norm: "layernorm" or "rmsnorm", with eps; `around_one`: its gains are 1 + w.
        first: whether the normalisation comes before each sublayer. What a sublayer adds is normalised too, before it
            is added, where the file has gains for that ("norm_attention_out", "norm_ffn_out").
        bare: whether a sublayer without gains in the file has no normalisation, and the file lacks nothing.
        replaced: whether the normalised rows, not those before, are what a sublayer adds to.
        rope: whether queries and keys are rotated; alibi: whether fixed numbers are added to scores.
        cap: the scores' soft cap.
        normalised: whether queries and keys are normalised, head by head or over the whole width.
        buckets: how many learned numbers each head adds to its scores.
        temperature: what scores are divided by.
        parallel: whether attention and feed-forward part read the same rows, each through a normalisation or both
            through one.
    """

    d: int
    heads: int
    d_head: int
    d_ff: int
    activation: str
    eps: float
    temperature: float
    norm: str = "layernorm"
    first: bool = False
    bare: bool = False
    kv_heads: int | None = None
    gated: bool = False
    rope: bool = False
    causal: bool = False
    parallel: bool = False
    around_one: bool = False
    replaced: bool = False
    alibi: bool = False
    cap: float | None = None
    normalised: Literal["head", "width"] | None = None
    buckets: int | None = None


def shape_of(model: Model) -> Shape:
    """The blocks, from the tensors of the first one and the parameters of the family."""
    d, (outputs, _) = model.shape("W_O", 0)[1], model.shape("W_O", 0)
    d_head, keys = model.head_width(outputs), model.shape("W_K", 0)[1]
    if keys % d_head:
        raise CheckpointError(f"{model.checkpoint.where}: {keys} outputs of keys do not make heads of width {d_head}")
    flags = ("first", "bare", "rope", "causal", "parallel", "around_one", "replaced", "alibi")
    cap, gated, act = model.setting_of("cap"), model.has("W_3", 0), model.setting_of("activation")
    if model.flag("gated_by_name"):
        kind, said = activation(act), {name: model.settings.get(name) for name in ("dense_act_fn", "is_gated_act")}
        if gated != str(act).startswith("gated-") or said["is_gated_act"] not in (None, gated):
            model.settings.doubts.append(
                f"feed_forward_proj = {act!r:.40}, and the file has {1 + gated} maps into that part"
            )
        if said["dense_act_fn"] is not None and activation(said["dense_act_fn"]) != kind:
            model.settings.doubts.append(
                f"dense_act_fn = {said['dense_act_fn']!r:.40}, feed_forward_proj = {act!r:.40}"
            )
    return Shape(
        d=d,
        heads=model.heads,
        d_head=d_head,
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(act),
        eps=model.number("eps"),
        temperature=_temperature(model, d_head),
        norm=model.setting_of("norm") or "layernorm",
        kv_heads=keys // d_head,
        gated=gated,
        cap=None if cap is None else positive("the soft cap of scores", cap),
        normalised=model.setting_of("normalised"),
        buckets=model.shape("score_offsets")[0] if model.setting_of("buckets") else None,
        **{name: model.flag(name) for name in flags},
    )


def _temperature(model: Model, d_head: int) -> float:
    """The divisor of scores; rotations that stretch make scores larger by the square of their factor."""
    temperature = math.sqrt(d_head)
    if model.setting_of("score_root") is not None:
        temperature = math.sqrt(model.number("score_root"))
    elif model.setting_of("score_scale") is not None:
        temperature = 1 / model.number("score_scale")
    if not model.flag("rope"):
        return temperature
    factor = rotation_factor(model.settings)
    if factor != 1 and not model.flag("stretches"):
        model.settings.lasting.append(f"rope_parameters: a factor {factor:.6g} of its rotations is not supported here")
    return temperature if factor == 1 else temperature / factor**2 * (1 - 2.0**-50)


def block(model: Model, shape: Shape, index: int) -> Iterator[Layer]:
    """One block, as the checkpoint has it."""

    def bias(name: str) -> str | None:
        return name if model.has(name, index) else None

    if shape.rope and model.has("b_Q", index) != model.has("b_K", index):
        raise CheckpointError(
            f"block {index} has an offset of queries or of keys alone, which is not supported with RoPE"
        )
    attention = Attention(
        d=shape.d,
        heads=shape.heads,
        d_head=shape.d_head,
        d_value=shape.d_head,
        kv_heads=shape.kv_heads if shape.kv_heads != shape.heads else None,
        qk="split" if shape.rope else "joint",
        combine="concat",
        normaliser=Normaliser("softmax", shape.temperature),
        causal=shape.causal,
        qk_bias=bias("b_Q") is not None,
        v_bias=bias("b_V") is not None,
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
                f"block {index} has {' and '.join(given)} alone: a gated feed-forward part has all three offsets or "
                "none"
            )
        gated = GatedFeedForward(shape.d, shape.d_ff, shape.activation, block=index, bias=bool(given))
        forward: tuple[Layer, ...] = (gated,)
    else:
        forward = (
            Linear("W_1", shape.d, shape.d_ff, bias=bias("b_1"), block=index),
            Activation(shape.activation),
            Linear("W_2", shape.d_ff, shape.d, bias=bias("b_2"), block=index),
        )
    if shape.parallel and model.has("norm_ffn.gain", index):
        first, second = (normalisation(model, kind, shape, index) for kind in ("norm_attention", "norm_ffn"))
        yield Residual((first, attention, output), ((second, *forward),))
        return
    if shape.parallel:
        both = Residual((attention, output), (forward,), skip=False)
        yield Residual((normalisation(model, "norm_attention", shape, index), both))
        return
    for kind, branch in (("norm_attention", (attention, output)), ("norm_ffn", forward)):
        there = model.has(f"{kind}.gain", index) or not shape.bare
        before = (normalisation(model, kind, shape, index),) if there else ()
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


def normalisation(model: Model, kind: str, shape: Shape, index: int | None = None) -> LayerNorm:
    """A LayerNorm, with an offset if the checkpoint has one."""
    centred = shape.norm == "layernorm"
    offset = model.has(f"{kind}.offset", index)
    return LayerNorm(
        kind,
        shape.d,
        shape.eps,
        centred,
        gain=True,
        offset=offset,
        block=index,
        around_one=shape.around_one,
    )


def pooling(model: Model, shape: Shape) -> Iterator[Layer]:
    """Attention by a trained query, so that all rows are one, and a feed-forward part."""
    at, d = model.depth, shape.d
    tau = Normaliser("softmax", math.sqrt(shape.d_head))
    heads, width = shape.heads, shape.d_head
    yield Attention(
        d, heads, d_value=width, qk="fixed", combine="concat", normaliser=tau, v_bias=model.has("b_V", at), block=at
    )
    yield Linear("W_O", d, d, bias="b_O" if model.has("b_O", at) else None, block=at)
    first, second = (
        Linear(f"W_{i}", *model.shape(f"W_{i}", at), bias=f"b_{i}" if model.has(f"b_{i}", at) else None, block=at)
        for i in (1, 2)
    )
    yield Residual((normalisation(model, "norm_ffn", shape, at), first, Activation(shape.activation), second))


def read_out(model: Model, shape: Shape, d: int) -> tuple[list[Layer], int]:
    """From rows to logits, by the transform, pooler and read-out that it has; and how many logits."""
    tied_to_embedding = _tied(model)
    sentence = model.settings.get(POOLING)
    mean = sentence == "mean" or (model.setting_of("pooling") == "mean" and model.head == "ForSequenceClassification")
    layers: list[Layer] = [Pool("mean" if mean else "cls")]
    if sentence is not None:
        classes = model.option("classes") or 1
        return [*layers, Linear("readout", d, classes)], classes
    if model.has("W_transform"):
        into, d = model.shape("W_transform")
        layers.append(Linear("W_transform", into, d, bias=_bias(model, "b_transform")))
        layers.append(Activation(activation(model.setting_of("transform") or model.setting_of("activation"))))
        layers.append(LayerNorm("norm_transform", d, shape.eps, offset=model.has("norm_transform.offset")))
    elif model.has("W_pool"):
        into, d = model.shape("W_pool")
        layers += [
            Linear("W_pool", into, d, bias=_bias(model, "b_pool")),
            Activation(activation(model.setting_of("pooler") or "tanh")),
        ]
    if model.has("readout"):
        classes = model.shape("readout")[1]
    elif tied_to_embedding:
        classes = model.shape("embedding")[0]
    else:
        classes = model.option("classes") or 1
    layers.append(Linear("readout", d, classes, bias=_bias(model, "b_readout")))
    cap = model.setting_of("final_cap")
    if cap is not None and model.head != "ForSequenceClassification":
        layers.append(SoftCap(classes, positive("the soft cap of logits", cap)))
    return layers, classes


def _bias(model: Model, name: str) -> str | None:
    return name if model.has(name) else None


def _tied(model: Model) -> bool:
    """Whether the read-out is the embedding table: a language-model head that the checkpoint does not hold."""
    head = model.head
    if not model.has("embedding"):
        return False
    said = model.flag("tied")
    if said and not all(_same_numbers(*pair) for pair in model.gave_way):
        model.settings.doubts.append(f"tie_word_embeddings, but {model.gave_way[0][0].name} differs from its twin")
    language = head in LANGUAGE if head else model.has("W_transform")
    if not model.has("readout"):
        return language and said
    if said and language and not _same_table(model):
        model.settings.doubts.append("tie_word_embeddings, but the file has a read-out that is not the embedding table")
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
        longest = model.table_shape("positions")[0] - model.first_position
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


def stack(model: Model) -> Architecture:
    """Tables or patches, blocks of one shape, perhaps a last normalisation, and a read-out."""
    shape, roles = shape_of(model), set(model.family.tensors.values())
    limit = model.setting_of("longest")
    narrow = model.shape("embedding")[1] if "embedding" in roles else shape.d
    table = model.table_shape("positions")[1] if model.has("positions") else narrow
    front, seq_len = tables(model, table, None if limit is None else size(model.family.reads["longest"][0], limit))
    layers: list[Layer] = [front]
    if model.has("W_patch"):
        width, d = model.shape("W_patch")
        layers = [Linear("W_patch", width, d, bias=_bias(model, "b_patch")), front]
    if "norm_embedding.gain" in roles:
        layers.append(normalisation(model, "norm_embedding", replace(shape, d=table)))
    if model.has("W_in"):  # tables that are narrower than a row: all of them, or the tokens alone
        wider = Linear("W_in", *model.shape("W_in"), bias=_bias(model, "b_in"))
        apart = [Embedding(front.vocabulary, narrow), wider, replace(front, vocabulary=0)]
        layers = apart if table != narrow else [*layers, wider]
    for index in range(model.depth):
        layers += block(model, shape, index)
    if shape.first and "norm_final.gain" in roles:
        layers.append(normalisation(model, "norm_final", shape))
    if model.has("probe", model.depth):
        layers += pooling(model, shape)
    d = shape.d
    if model.has("W_out"):
        d = model.shape("W_out")[1]
        layers.append(Linear("W_out", shape.d, d))
    tail, classes = read_out(model, shape, d)
    radius = 1.0
    if model.has("W_patch"):  # pixels in [-1, 1] unless the user says otherwise
        radius = model.option("input_radius") or math.nextafter(math.sqrt(model.shape("W_patch")[0]), math.inf)
        if model.option("input_radius") is None:
            model.settings.assumed["input_radius"] = radius
    return Architecture(layers=(*layers, *tail), seq_len=seq_len, classes=classes, input_radius=radius)
