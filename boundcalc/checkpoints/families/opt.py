"""OPT: GPT-2's blocks with ReLU and separate maps; normalisation before or after; perhaps narrower tables."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, sizes_of, tables
from boundcalc.checkpoints.families.fields import (
    BLOCKS,
    DROPOUT,
    TIED,
    activation,
    agrees,
    every,
    renamed,
    sizes,
    there,
    used,
    width,
)
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture, Embedding, Layer, Linear

_UNREAD = 2
"""Rows of the position table before the first that a token reads."""


def _architecture(model: Model) -> Architecture:
    d, narrow = model.shape("W_Q", 0)[0], model.shape("embedding")[1]
    first = model.flag("do_layer_norm_before")
    shape = Shape(
        **sizes_of(model),
        activation=activation(model.setting("activation_function")),
        eps=1e-5,  # written in its code
        first=first,
        causal=True,
        gains=model.flag("layer_norm_elementwise_affine"),
    )
    front, seq_len = tables(model, d)
    layers: list[Layer] = [front]
    if model.has("W_in"):
        layers = [Embedding(front.vocabulary, narrow), Linear("W_in", narrow, d), replace(front, vocabulary=0)]
    for index in range(model.depth):
        layers += block(model, shape, index)
    removed = model.flag("_remove_final_layer_norm")
    if first and not removed:
        layers.append(normalisation(model, "norm_final", shape))
    if model.has("W_out"):
        layers.append(Linear("W_out", d, narrow))
    tail, classes = read_out(model, narrow)
    return assemble(layers + tail, seq_len, classes)


def _positions(model: Model) -> int:
    return model.table_shape("positions")[0] - _UNREAD


_L = "layers.{b}."
OPT = Family(
    "opt",
    ("opt",),
    {
        "embed_tokens.weight": "embedding",
        "embed_positions.weight": "positions",
        "project_in.weight": "W_in.T",
        "project_out.weight": "W_out.T",
        **with_offsets(
            {
                _L + "self_attn.q_proj": "W_Q.T",
                _L + "self_attn.k_proj": "W_K.T",
                _L + "self_attn.v_proj": "W_V.T",
                _L + "self_attn.out_proj": "W_O.T",
                _L + "self_attn_layer_norm": "norm_attention.gain",
                _L + "fc1": "W_1.T",
                _L + "fc2": "W_2.T",
                _L + "final_layer_norm": "norm_ffn.gain",
                "final_layer_norm": "norm_final.gain",
            }
        ),
        **READ_OUT,
    },
    _architecture,
    prefixes=("model.decoder.", "decoder."),
    fields={
        "activation_function": used("activation of the feed-forward part", "relu"),
        "num_attention_heads": used("attention heads"),
        "do_layer_norm_before": used("whether normalisation comes before each sublayer", True),
        "_remove_final_layer_norm": used("whether the last normalisation is left out", False),
        "layer_norm_elementwise_affine": used("whether normalisations have gains", True),
        "tie_word_embeddings": TIED,
        "enable_bias": agrees("whether linear maps have offsets", there("b_1")),
        **renamed(BLOCKS, intermediate_size="ffn_dim"),
        **sizes(word_embed_proj_dim=width("embedding", 1, None), max_position_embeddings=_positions),
        **every("dropout attention_dropout activation_dropout layerdrop", DROPOUT),
    },
    classes=read_outs(),
    first_position=lambda _: _UNREAD,
)
