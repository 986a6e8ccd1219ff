"""Transformer blocks as primitive layers, with just the offsets that a model has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import activation, rotation_factor
from boundcalc.checkpoints.families.table import CLASSIFIERS, LANGUAGE, Model
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


class _Blocks:
    """The blocks of a model, from the tensors of the first one and the parameters of the family (`setting_of`).

    `style`: "pre" (or true) where the normalisation comes before each sublayer; what a sublayer adds is normalised too
    where the file has gains for that ("norm_attention_out", "norm_ffn_out"). `bare`: a sublayer without gains has no
    normalisation; `plain`: it has one without gains. `parallel`: attention and feed-forward part read the same rows,
    each through a normalisation or both through one. `normalisation`: "layernorm" or "rmsnorm", with `eps`;
    `around_one`: its gains are 1 + w. `rope`: queries and keys turn with positions; `stretches`: times a factor;
    `alibi`: fixed numbers are added to scores; `cap`: the scores' soft cap.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        outputs, self.d = model.shape("W_O", 0)
        self.width, keys = model.head_width(outputs), model.shape("W_K", 0)[1]
        if keys % self.width:
            where = model.checkpoint.where
            raise CheckpointError(f"{where}: {keys} outputs of keys do not make heads of width {self.width}")
        self.groups, self.hidden, self.gated = keys // self.width, model.shape("W_1", 0)[1], model.has("W_3", 0)
        self.activation = activation(model.setting_of("activation"))
        self.pre = model.setting_of("style") in ("pre", True)
        self.bare, self.plain = model.family.described or model.flag("bare"), model.flag("plain")
        root = model.number("score_root") if model.setting_of("score_root") is not None else self.width
        scaled = model.setting_of("score_scale") is not None
        self.temperature = 1 / model.number("score_scale") if scaled else math.sqrt(root)
        factor = rotation_factor(model.config_field, model.doubts) if model.flag("rope") else 1.0
        if factor != 1 and not model.flag("stretches"):
            model.doubts.append(f"rope_parameters: a factor {factor:.6g} of its rotations is not supported here")
        if factor != 1:  # scores grow by its square
            self.temperature *= (1 - 2.0**-50) / factor**2

    def block(self, index: int) -> Iterator[Layer]:
        """One block, as the checkpoint has it."""
        model, attends, forward = self.model, self._attention(index), self._feed_forward(index)
        if model.flag("parallel") and model.has("norm_ffn.gain", index):
            first, second = (self.norm(kind, index) for kind in ("norm_attention", "norm_ffn"))
            yield Residual((first, *attends), ((second, *forward),))
            return
        if model.flag("parallel"):
            yield Residual((self.norm("norm_attention", index), Residual(attends, (forward,), skip=False)))
            return
        for kind, branch in (("norm_attention", attends), ("norm_ffn", forward)):
            there = model.has(f"{kind}.gain", index) or self.plain or not self.bare
            norm = (self.norm(kind, index),) if there else ()
            if model.has(f"{kind}_out.gain", index):
                branch = (*branch, self.norm(f"{kind}_out", index))
            if not self.pre:
                yield from (Residual(branch), *norm)
            else:
                yield Residual((*norm, *branch))

    def _attention(self, index: int) -> tuple[Layer, ...]:
        model, heads, cap = self.model, self.model.heads, self.model.setting_of("cap")
        rope, normalised = model.flag("rope"), model.has("norm_Q.gain", index)
        buckets = model.shape("score_offsets")[0] if "score_offsets" in model.family.tensors.values() else None
        of_head = normalised and model.place("norm_Q.gain", index).size == self.width
        if rope and model.has("b_Q", index) != model.has("b_K", index):
            raise CheckpointError(
                f"block {index} has an offset of queries or of keys alone, which is not supported with RoPE"
            )
        attention = Attention(
            d=self.d,
            heads=heads,
            d_head=self.width,
            d_value=self.width,
            kv_heads=self.groups if self.groups != heads else None,
            qk="split" if rope or normalised else "joint",
            combine="concat",
            normaliser=Normaliser("softmax", self.temperature),
            causal=model.flag("causal"),
            qk_bias=model.has("b_Q", index),
            v_bias=model.has("b_V", index),
            block=index,
            offsets="fixed" if model.flag("alibi") else "none" if buckets is None else "learned",
            cap=None if cap is None else positive("the soft cap of scores", cap),
            buckets=buckets,
            qk_norm="none" if not normalised else "head" if of_head else "width",
            qk_eps=None if not normalised else model.number("qk_eps" if model.setting_of("qk_eps") else "eps"),
        )
        return attention, self.linear("W_O", heads * self.width, self.d, index)

    def _feed_forward(self, index: int) -> tuple[Layer, ...]:
        if not self.gated:
            first, last = self.linear("W_1", self.d, self.hidden, index), self.linear("W_2", self.hidden, self.d, index)
            return first, Activation(self.activation), last
        offsets = [name for name in ("b_1", "b_3", "b_2") if self.model.has(name, index)]
        if len(offsets) not in (0, 3):
            raise CheckpointError(
                f"block {index} has {' and '.join(offsets)} alone: a gated feed-forward part has all three or none"
            )
        return (GatedFeedForward(self.d, self.hidden, self.activation, block=index, bias=bool(offsets)),)

    def linear(self, kind: str, into: int, out: int, block: int | None = None) -> Linear:
        """A map, with an offset if the checkpoint has one."""
        offset = f"b_{kind.removeprefix('W_')}"
        return Linear(kind, into, out, bias=offset if self.model.has(offset, block) else None, block=block)

    def norm(self, kind: str, block: int | None = None, d: int | None = None) -> LayerNorm:
        """A LayerNorm, with an offset if the checkpoint has one."""
        centred, around_one = self.model.setting_of("normalisation") != "rmsnorm", self.model.flag("around_one")
        gain, offset = self.model.has(f"{kind}.gain", block) or not self.plain, self.model.has(f"{kind}.offset", block)
        eps = self.model.number("eps")
        return LayerNorm(kind, d or self.d, eps, centred, gain=gain, offset=offset, block=block, around_one=around_one)

    def pooling(self, at: int) -> Iterator[Layer]:
        """Attention by a trained query, so that all rows are one, and a feed-forward part."""
        tau, offset = Normaliser("softmax", math.sqrt(self.width)), self.model.has("b_V", at)
        heads, width = self.model.heads, self.width
        yield Attention(
            self.d, heads, d_value=width, qk="fixed", combine="concat", normaliser=tau, v_bias=offset, block=at
        )
        yield self.linear("W_O", self.d, self.d, at)
        yield Residual((self.norm("norm_ffn", at), *self._feed_forward(at)))


def _read_out(model: Model, blocks: _Blocks) -> tuple[list[Layer], int]:
    """From rows to logits, by the transform, pooler and read-out that it has; and how many logits.

    A model that has none yet ends in rows, or in one that it pools them to.
    """
    mean = model.setting_of("readout") == "mean" and (model.family.described or model.head == CLASSIFIERS[0])
    layers: list[Layer] = [Pool("mean" if mean else "cls")]
    d = blocks.d
    if model.has("W_transform"):
        into, d = model.shape("W_transform")
        layers.append(blocks.linear("W_transform", into, d))
        layers.append(Activation(activation(model.setting_of("transform") or model.setting_of("activation"))))
        layers.append(blocks.norm("norm_transform", d=d))
    elif model.has("W_pool"):
        into, d = model.shape("W_pool")
        layers += [blocks.linear("W_pool", into, d), Activation(activation(model.setting_of("pooler") or "tanh"))]
    if model.has("readout"):
        classes = model.shape("readout")[1]
    elif _tied(model) and model.shape("embedding")[1] == d:
        classes = model.shape("embedding")[0]
    else:
        return [] if model.pooling is None else [Pool("cls")], blocks.d
    layers.append(blocks.linear("readout", d, classes))
    cap = model.setting_of("final_cap")
    if cap is not None and model.head != CLASSIFIERS[0]:
        layers.append(SoftCap(classes, positive("the soft cap of logits", cap)))
    return layers, classes


def _tied(model: Model) -> bool:
    """Whether the read-out is the embedding table: a language-model head that the checkpoint does not hold."""
    language = model.head in LANGUAGE if model.head else model.has("W_transform") or model.family.described
    return language and model.has("embedding") and model.flag("tied")


def _tables(model: Model, d: int, longest: int | None = None) -> tuple[Embedding, int]:
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
    radius = model.setting_of("position_radius")
    if radius is not None:
        return Embedding(vocabulary, d, "fixed", positive("position_radius", radius), segments), seq_len
    return Embedding(vocabulary, d, "learned" if learned else "none", segments=segments), seq_len


def stack(model: Model) -> Architecture:
    """Tables or patches, blocks of one shape, perhaps a last normalisation, and a read-out."""
    blocks, roles = _Blocks(model), set(model.family.tensors.values())
    limit = model.setting_of("longest")
    table = model.shape("embedding")[1] if "embedding" in roles else blocks.d
    name = model.family.reads.get("longest", ("longest",))[0]
    front, seq_len = _tables(model, table, None if limit is None else size(name, limit))
    layers: list[Layer] = [front] if front.vocabulary or front.positions != "none" or front.segments else []
    if model.has("W_patch"):
        layers = [blocks.linear("W_patch", *model.shape("W_patch")), *layers]
    if "norm_embedding.gain" in roles:
        layers.append(blocks.norm("norm_embedding", d=table))
    if model.has("W_in"):  # tables that are narrower than a row
        layers.append(blocks.linear("W_in", *model.shape("W_in")))
    layers += [layer for index in range(model.depth) for layer in blocks.block(index)]
    if blocks.pre and ("norm_final.gain" in roles or blocks.plain):
        layers.append(blocks.norm("norm_final"))
    if model.pooling is not None:
        layers += blocks.pooling(model.pooling)
    tail, classes = _read_out(model, blocks)
    radius = 1.0
    if not front.vocabulary:
        pixels = model.has("W_patch") and len(model.place("W_patch").shape) == 4  # in [-1, 1]
        default = math.nextafter(math.sqrt(model.shape("W_patch")[0]), math.inf) if pixels else 1.0
        said = model.option("input_radius") or model.setting_of("input_radius")
        radius = said or default
        if said is None:
            model.assumed["input_radius"] = radius
    return Architecture(layers=(*layers, *tail), seq_len=seq_len, classes=classes, input_radius=radius)
