"""Falcon: attention and feed-forward part beside each other, one key for many queries, rotary positions or ALiBi."""

from __future__ import annotations

from typing import Literal

from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    agrees,
    depth,
    every,
    neutral,
    only,
    role_rows,
    sizes,
    there,
    used,
    width,
)
from boundcalc.checkpoints.families.heads import fused_groups
from boundcalc.checkpoints.families.settings import rotation_factor
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    alibi = model.flag("alibi")
    if rotation_factor(model.settings) != 1:
        model.settings.doubt("rope_scaling", "a factor of rotations is not supported here")
    d = model.shape("embedding")[1]
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=model.head_width(d),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("activation")),
        eps=model.number("layer_norm_epsilon"),
        first=True,
        beside=_beside(model),
        kv_heads=fused_groups(model, 0),
        rope=not alibi,
        alibi=alibi,
        causal=True,
    )
    return stacked(model, d, shape, "max_position_embeddings")


def _beside(model: Model) -> Literal["one norm", "two norms"] | None:
    new, parallel = model.flag("new_decoder_architecture"), model.flag("parallel_attn")
    two = model.has("norm_ffn.gain", 0)
    if new and not parallel:
        model.settings.doubt("parallel_attn", "new decoders have their sublayers beside each other")
    if not new and two == parallel:
        model.settings.doubt("parallel_attn", f"but the file has {'two normalisations' if two else 'one'} per block")
    if not new and not parallel:
        return None
    return "two norms" if two else "one norm"


def _keys(model: Model) -> int | None:
    """Key heads, which old decoders do not read from the field."""
    return fused_groups(model, 0) if model.flag("new_decoder_architecture") else None


def _one_key(model: Model) -> bool | None:
    groups = fused_groups(model, 0)
    return None if model.flag("new_decoder_architecture") or model.heads == 1 else groups == 1


_H = "h.{b}."
FALCON = Family(
    "falcon",
    ("falcon",),
    {
        "word_embeddings.weight": "embedding",
        _H + "input_layernorm.weight": "norm_attention.gain",
        _H + "input_layernorm.bias": "norm_attention.offset",
        _H + "ln_attn.weight": "norm_attention.gain",
        _H + "ln_attn.bias": "norm_attention.offset",
        _H + "post_attention_layernorm.weight": "norm_ffn.gain",
        _H + "post_attention_layernorm.bias": "norm_ffn.offset",
        _H + "ln_mlp.weight": "norm_ffn.gain",
        _H + "ln_mlp.bias": "norm_ffn.offset",
        _H + "self_attention.query_key_value.weight": "W_QKV.T",
        _H + "self_attention.query_key_value.bias": "b_QKV",
        _H + "self_attention.dense.weight": "W_O.T",
        _H + "self_attention.dense.bias": "b_O",
        _H + "mlp.dense_h_to_4h.weight": "W_1.T",
        _H + "mlp.dense_h_to_4h.bias": "b_1",
        _H + "mlp.dense_4h_to_h.weight": "W_2.T",
        _H + "mlp.dense_4h_to_h.bias": "b_2",
        "ln_f.weight": "norm_final.gain",
        "ln_f.bias": "norm_final.offset",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
    },
    _architecture,
    {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"},
    prefixes=("transformer.",),
    fields={
        "activation": used("activation of the feed-forward part", "gelu"),
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
        "num_attention_heads": used("query heads"),
        "alibi": used("whether positions are numbers added to scores, instead of rotations", False),
        "new_decoder_architecture": used(
            "whether sublayers stand beside each other whatever parallel_attn says", False
        ),
        "parallel_attn": used("whether sublayers stand beside each other", True),
        "max_position_embeddings": used("T, unless it is given", 2048),
        "tie_word_embeddings": used("whether the read-out is the embedding table", True),
        "rope_parameters": used("the factor of its rotations; angles cost nothing", None),
        "rope_scaling": used("the older name of rope_parameters", None),
        "original_max_position_embeddings": used("the factor of YaRN's and LongRoPE's rotations", None),
        **every("rope_theta partial_rotary_factor", neutral("angles of rotations, which keep norms (S4)")),
        "multi_query": agrees("whether all queries share one key", _one_key),
        "num_kv_heads": agrees("key and value heads of new decoders", _keys),
        "num_ln_in_parallel_attn": agrees(
            "normalisations per block of new decoders",
            lambda model: (1 + model.has("norm_ffn.gain", 0)) if model.flag("new_decoder_architecture") else None,
        ),
        "bias": agrees("whether linear maps have offsets", there("b_1")),
        "apply_residual_connection_post_layernorm": only("its code adds to the rows before", False, None),
        **sizes(
            hidden_size=width("embedding", 1, None),
            num_hidden_layers=depth,
            ffn_hidden_size=width("W_1", 1),
            vocab_size=role_rows("embedding"),
        ),
        **every("hidden_dropout attention_dropout", DROPOUT),
    },
    aliases={"n_embed": "hidden_size"},
    classes={
        "Model": ("!lm_head.weight", "!score.weight"),
        "ForCausalLM": ("!score.weight",),
        "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
    },
    by_group=True,
)
