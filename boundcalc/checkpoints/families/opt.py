"""OPT: GPT-2's blocks with ReLU and separate maps; normalisation before or after; perhaps narrower tables."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.checkpoints.families.blocks import Shape, assemble, block, normalisation, read_out, tables
from boundcalc.checkpoints.families.fields import DROPOUT, agrees, depth, every, role_rows, sizes, there, used, width
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture, Embedding, Layer, Linear

_UNREAD = 2
"""Rows of the position table before the first that a token reads."""


def _architecture(model: Model) -> Architecture:
    d, inner = model.shape("W_Q", 0)
    narrow = model.shape("embedding")[1]
    first = model.flag("do_layer_norm_before")
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=model.head_width(inner),
        d_ff=model.shape("W_1", 0)[1],
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
        _L + "self_attn.q_proj.weight": "W_Q.T",
        _L + "self_attn.q_proj.bias": "b_Q",
        _L + "self_attn.k_proj.weight": "W_K.T",
        _L + "self_attn.k_proj.bias": "b_K",
        _L + "self_attn.v_proj.weight": "W_V.T",
        _L + "self_attn.v_proj.bias": "b_V",
        _L + "self_attn.out_proj.weight": "W_O.T",
        _L + "self_attn.out_proj.bias": "b_O",
        _L + "self_attn_layer_norm.weight": "norm_attention.gain",
        _L + "self_attn_layer_norm.bias": "norm_attention.offset",
        _L + "fc1.weight": "W_1.T",
        _L + "fc1.bias": "b_1",
        _L + "fc2.weight": "W_2.T",
        _L + "fc2.bias": "b_2",
        _L + "final_layer_norm.weight": "norm_ffn.gain",
        _L + "final_layer_norm.bias": "norm_ffn.offset",
        "final_layer_norm.weight": "norm_final.gain",
        "final_layer_norm.bias": "norm_final.offset",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
    },
    _architecture,
    prefixes=("model.decoder.", "decoder."),
    fields={
        "activation_function": used("activation of the feed-forward part", "relu"),
        "num_attention_heads": used("attention heads"),
        "do_layer_norm_before": used("whether normalisation comes before each sublayer", True),
        "_remove_final_layer_norm": used("whether the last normalisation is left out", False),
        "layer_norm_elementwise_affine": used("whether normalisations have gains", True),
        "tie_word_embeddings": used("whether the read-out is the embedding table", True),
        "enable_bias": agrees("whether linear maps have offsets", there("b_1")),
        **sizes(
            hidden_size=width("W_Q", 0),
            num_hidden_layers=depth,
            ffn_dim=width("W_1", 1),
            vocab_size=role_rows("embedding"),
            word_embed_proj_dim=width("embedding", 1, None),
            max_position_embeddings=_positions,
        ),
        **every("dropout attention_dropout activation_dropout layerdrop", DROPOUT),
    },
    classes={
        "Model": ("!lm_head.weight", "!score.weight"),
        "ForCausalLM": ("!score.weight",),
        "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
    },
    first_position=lambda _: _UNREAD,
)
