"""GPT-NeoX, its sublayers beside or after each other: rotary positions, queries, keys and values fused head by head."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    ROTATED,
    STACK,
    UNTIED,
    activation,
    agrees,
    every,
    neutral,
    there,
    used,
)
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.settings import refuse_rotation_factor
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    refuse_rotation_factor(model.settings, "a factor of rotations of part of each head is not supported")
    shape = Shape(
        **sizes_of(model),
        activation=activation(model.setting("hidden_act")),
        eps=model.number("layer_norm_eps"),
        first=True,
        beside="two norms" if model.flag("use_parallel_residual") else None,
        rope=True,
        causal=True,
    )
    return stacked(model, shape, "max_position_embeddings")


_L = "layers.{b}."
GPT_NEOX = Family(
    "gpt_neox",
    ("gpt_neox",),
    {
        "embed_in.weight": "embedding",
        **with_offsets(
            {
                _L + "input_layernorm": "norm_attention.gain",
                _L + "attention.query_key_value": "W_QKV.T",
                _L + "attention.dense": "W_O.T",
                _L + "post_attention_layernorm": "norm_ffn.gain",
                _L + "mlp.dense_h_to_4h": "W_1.T",
                _L + "mlp.dense_4h_to_h": "W_2.T",
                "final_layer_norm": "norm_final.gain",
            }
        ),
        "embed_out.weight": "readout.T",
        **READ_OUT,
    },
    _architecture,
    {
        "*attention.bias": "the causal mask, a buffer",
        "*attention.masked_bias": "a constant of the mask, a buffer",
        "*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer",
    },
    prefixes=("gpt_neox.",),
    fields={
        "hidden_act": used("activation of the feed-forward part", "gelu"),
        "layer_norm_eps": used("epsilon of every normalisation", 1e-5),
        "num_attention_heads": used("attention heads"),
        "use_parallel_residual": used("whether sublayers read the same rows", True),
        "max_position_embeddings": used("T, unless it is given", None),
        "tie_word_embeddings": UNTIED,
        **ROTATED,
        **every("rotary_pct rotary_emb_base", neutral("angles of rotations, which keep norms (S4)")),
        "attention_bias": agrees("whether queries, keys and values have offsets", there("b_QKV")),
        **STACK,
        **every("attention_dropout hidden_dropout classifier_dropout", DROPOUT),
        "is_decoder": neutral("its attention is causal either way: masks may be any (L7)"),
    },
    classes=read_outs(heads=("lm_head.weight", "embed_out.weight")),
    by_group=True,
)
