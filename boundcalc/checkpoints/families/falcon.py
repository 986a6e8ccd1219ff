"""Falcon: attention and feed-forward part beside each other, one key for many queries, rotary positions or ALiBi."""

from __future__ import annotations

from typing import Literal

from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    ROTATED,
    STACK,
    TIED,
    activation,
    agrees,
    every,
    only,
    renamed,
    there,
    used,
)
from boundcalc.checkpoints.families.heads import fused_groups
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.settings import refuse_rotation_factor
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    alibi = model.flag("alibi")
    refuse_rotation_factor(model.settings, "a factor of rotations is not supported here")
    shape = Shape(
        **sizes_of(model),
        activation=activation(model.setting("activation")),
        eps=model.number("layer_norm_epsilon"),
        first=True,
        beside=_beside(model),
        kv_heads=fused_groups(model, 0),
        rope=not alibi,
        alibi=alibi,
        causal=True,
    )
    return stacked(model, shape, "max_position_embeddings")


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
        **with_offsets(
            {
                _H + "input_layernorm": "norm_attention.gain",
                _H + "ln_attn": "norm_attention.gain",
                _H + "post_attention_layernorm": "norm_ffn.gain",
                _H + "ln_mlp": "norm_ffn.gain",
                _H + "self_attention.query_key_value": "W_QKV.T",
                _H + "self_attention.dense": "W_O.T",
                _H + "mlp.dense_h_to_4h": "W_1.T",
                _H + "mlp.dense_4h_to_h": "W_2.T",
                "ln_f": "norm_final.gain",
            }
        ),
        **READ_OUT,
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
        "tie_word_embeddings": TIED,
        **ROTATED,
        "multi_query": agrees("whether all queries share one key", _one_key),
        "num_kv_heads": agrees("key and value heads of new decoders", _keys),
        "num_ln_in_parallel_attn": agrees(
            "normalisations per block of new decoders",
            lambda model: (1 + model.has("norm_ffn.gain", 0)) if model.flag("new_decoder_architecture") else None,
        ),
        "bias": agrees("whether linear maps have offsets", there("b_1")),
        "apply_residual_connection_post_layernorm": only("its code adds to the rows before", False, None),
        **renamed(STACK, intermediate_size="ffn_hidden_size"),
        **every("hidden_dropout attention_dropout", DROPOUT),
    },
    aliases={"n_embed": "hidden_size"},
    classes=read_outs(),
    by_group=True,
)
