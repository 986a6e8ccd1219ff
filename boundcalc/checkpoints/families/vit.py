"""ViT: patches through one linear map, a class token, normalisation before each sublayer.

The class token is row 0. With an input row of zeros there, its embedding is the patch offset plus position 0; so
position 0 is read as (position 0 + class token - patch offset), and the model is exactly one without a class token.
"""

from __future__ import annotations

import math

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Layer, Linear


def _architecture(model: Model) -> Architecture:
    width, d = model.shape("W_patch")
    heads = model.heads
    shape = Shape(
        d=d,
        heads=heads,
        d_head=model.head_width(model.shape("W_Q", 0)[1]),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("hidden_act", default="gelu")),
        eps=model.number("layer_norm_eps", default=1e-12),
        first=True,
    )
    front, seq_len = tables(model, d, 0)
    layers: list[Layer] = [Linear("W_patch", width, d, bias="b_patch" if model.has("b_patch") else None), front]
    for index in range(model.depth):
        layers += block(model, shape, index)
    layers.append(normalisation(model, "norm_final", shape))
    tail, classes = read_out(model, d)
    # pixels in [-1, 1] unless the user says otherwise
    radius = model.options.input_radius or math.nextafter(math.sqrt(width), math.inf)
    return assemble(layers + tail, seq_len, classes, radius)


_LAYER = "encoder.layer.{b}."
_LIVE = "layers.{b}."
"""Newer releases of the library call the parts of a live module so, and write files in the old names."""
VIT = Family(
    "vit",
    ("vit",),
    {
        "embeddings.cls_token": "class_token",
        "embeddings.position_embeddings": "positions",
        "embeddings.patch_embeddings.projection.weight": "W_patch.T",
        "embeddings.patch_embeddings.projection.bias": "b_patch",
        _LAYER + "layernorm_before.weight": "norm_attention.gain",
        _LAYER + "layernorm_before.bias": "norm_attention.offset",
        _LAYER + "attention.attention.query.weight": "W_Q.T",
        _LAYER + "attention.attention.query.bias": "b_Q",
        _LAYER + "attention.attention.key.weight": "W_K.T",
        _LAYER + "attention.attention.key.bias": "b_K",
        _LAYER + "attention.attention.value.weight": "W_V.T",
        _LAYER + "attention.attention.value.bias": "b_V",
        _LAYER + "attention.output.dense.weight": "W_O.T",
        _LAYER + "attention.output.dense.bias": "b_O",
        _LAYER + "layernorm_after.weight": "norm_ffn.gain",
        _LAYER + "layernorm_after.bias": "norm_ffn.offset",
        _LAYER + "intermediate.dense.weight": "W_1.T",
        _LAYER + "intermediate.dense.bias": "b_1",
        _LAYER + "output.dense.weight": "W_2.T",
        _LAYER + "output.dense.bias": "b_2",
        _LIVE + "layernorm_before.weight": "norm_attention.gain",
        _LIVE + "layernorm_before.bias": "norm_attention.offset",
        _LIVE + "attention.q_proj.weight": "W_Q.T",
        _LIVE + "attention.q_proj.bias": "b_Q",
        _LIVE + "attention.k_proj.weight": "W_K.T",
        _LIVE + "attention.k_proj.bias": "b_K",
        _LIVE + "attention.v_proj.weight": "W_V.T",
        _LIVE + "attention.v_proj.bias": "b_V",
        _LIVE + "attention.o_proj.weight": "W_O.T",
        _LIVE + "attention.o_proj.bias": "b_O",
        _LIVE + "layernorm_after.weight": "norm_ffn.gain",
        _LIVE + "layernorm_after.bias": "norm_ffn.offset",
        _LIVE + "mlp.fc1.weight": "W_1.T",
        _LIVE + "mlp.fc1.bias": "b_1",
        _LIVE + "mlp.fc2.weight": "W_2.T",
        _LIVE + "mlp.fc2.bias": "b_2",
        "layernorm.weight": "norm_final.gain",
        "layernorm.bias": "norm_final.offset",
        "pooler.dense.weight": "W_pool.T",
        "pooler.dense.bias": "b_pool",
        "classifier.weight": "readout.T",
        "classifier.bias": "b_readout",
    },
    _architecture,
    {"embeddings.mask_token": "stands for masked patches in pre-training; no input has any"},
    prefixes=("vit.",),
)
