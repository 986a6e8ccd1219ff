"""ViT and DeiT: patches through one linear map, a class token, normalisation before each sublayer.

The class token is row 0. With an input row of zeros there, its embedding is the patch offset plus position 0; so
position 0 is read as (position 0 + class token - patch offset), and the model is exactly one without a class token.
DeiT's distillation token is row 1, likewise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, sizes_of, tables
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    Fields,
    activation,
    agrees,
    depth,
    every,
    neutral,
    sizes,
    there,
    used,
    width,
)
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture, Layer, Linear


def _architecture(model: Model) -> Architecture:
    width, d = model.shape("W_patch")
    shape = Shape(
        **sizes_of(model, d),
        activation=activation(model.setting("hidden_act")),
        eps=model.number("layer_norm_eps"),
        first=True,
    )
    front, seq_len = tables(model, d)
    layers: list[Layer] = [Linear("W_patch", width, d, bias="b_patch" if model.has("b_patch") else None), front]
    for index in range(model.depth):
        layers += block(model, shape, index)
    layers.append(normalisation(model, "norm_final", shape))
    tail, classes = read_out(model, d, activation(model.setting("pooler_act")))
    # pixels in [-1, 1] unless the user says otherwise
    radius = model.option("input_radius")
    if radius is None:
        model.settings.assume("input_radius", radius := math.nextafter(math.sqrt(width), math.inf))
    return assemble(layers + tail, seq_len, classes, radius)


_LAYER = "encoder.layer.{b}."
_LIVE = "layers.{b}."
"""Newer releases of the library call the parts of a live module so, and write files in the old names."""
_TENSORS = {
    "embeddings.cls_token": "class_token",
    "embeddings.position_embeddings": "positions",
    **with_offsets(
        {
            "embeddings.patch_embeddings.projection": "W_patch.T",
            _LAYER + "layernorm_before": "norm_attention.gain",
            _LAYER + "attention.attention.query": "W_Q.T",
            _LAYER + "attention.attention.key": "W_K.T",
            _LAYER + "attention.attention.value": "W_V.T",
            _LAYER + "attention.output.dense": "W_O.T",
            _LAYER + "layernorm_after": "norm_ffn.gain",
            _LAYER + "intermediate.dense": "W_1.T",
            _LAYER + "output.dense": "W_2.T",
            _LIVE + "layernorm_before": "norm_attention.gain",
            _LIVE + "attention.q_proj": "W_Q.T",
            _LIVE + "attention.k_proj": "W_K.T",
            _LIVE + "attention.v_proj": "W_V.T",
            _LIVE + "attention.o_proj": "W_O.T",
            _LIVE + "layernorm_after": "norm_ffn.gain",
            _LIVE + "mlp.fc1": "W_1.T",
            _LIVE + "mlp.fc2": "W_2.T",
            "layernorm": "norm_final.gain",
            "pooler.dense": "W_pool.T",
            "classifier": "readout.T",
        }
    ),
}


def _patch(axis: int) -> Any:
    """A side of the patches, as the tensor of the patch map has it."""

    def find(model: Model) -> int | None:
        shape = model.place("W_patch").tensor.shape
        return shape[axis] if len(shape) == 4 and (axis == 1 or shape[2] == shape[3]) else None

    return find


def _image(model: Model) -> int | None:
    """The side of a square image, from how many positions there are."""
    side, patches = _patch(2)(model), model.table_shape("positions")[0]
    patches -= sum(model.has(token) for token in model.family.tokens)
    return side * math.isqrt(patches) if side and math.isqrt(patches) ** 2 == patches else None


_FIELDS: Fields = {
    "hidden_act": used("activation of the feed-forward part", "gelu"),
    "layer_norm_eps": used("epsilon of every normalisation", 1e-12),
    "num_attention_heads": used("attention heads"),
    "pooler_act": used("activation after the pooler", "tanh"),
    **sizes(
        hidden_size=width("W_Q", 0),
        num_hidden_layers=depth,
        intermediate_size=width("W_1", 1),
        pooler_output_size=width("W_pool", 1, None),
        num_channels=_patch(1),
        patch_size=_patch(2),
        image_size=_image,
    ),
    "qkv_bias": agrees("whether queries, keys and values have offsets", there("b_Q")),
    **every("hidden_dropout_prob attention_probs_dropout_prob", DROPOUT),
    "encoder_stride": neutral("the head that paints masked patches, whose tensors are unexpected"),
    "tie_word_embeddings": neutral("it reads no words"),
}
_IGNORED = {"embeddings.mask_token": "stands for masked patches in pre-training; no input has any"}
_CLASSES = {"Model": ("!classifier.weight",), "ForImageClassification": ("classifier.weight", "!pooler.dense.weight")}

VIT = Family(
    "vit",
    ("vit",),
    _TENSORS,
    _architecture,
    _IGNORED,
    prefixes=("vit.",),
    fields=_FIELDS,
    classes=_CLASSES,
)
DEIT = replace(
    VIT,
    name="deit",
    model_types=("deit",),
    tensors=_TENSORS | {"embeddings.distillation_token": "distillation_token"},
    prefixes=("deit.",),
    tokens=("class_token", "distillation_token"),
)
