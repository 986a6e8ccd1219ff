"""GPT-NeoX, its sublayers beside or after each other: rotary positions, queries, keys and values fused head by head."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    agrees,
    depth,
    every,
    neutral,
    role_rows,
    sizes,
    there,
    used,
    width,
)
from boundcalc.checkpoints.families.settings import rotation_factor
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    if rotation_factor(model.settings) != 1:
        model.settings.doubt("rope_scaling", "a factor of rotations of part of each head is not supported")
    d = model.shape("embedding")[1]
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=model.head_width(d),
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("hidden_act")),
        eps=model.number("layer_norm_eps"),
        first=True,
        beside="two norms" if model.flag("use_parallel_residual") else None,
        rope=True,
        causal=True,
    )
    return stacked(model, d, shape, "max_position_embeddings")


_L = "layers.{b}."
GPT_NEOX = Family(
    "gpt_neox",
    ("gpt_neox",),
    {
        "embed_in.weight": "embedding",
        _L + "input_layernorm.weight": "norm_attention.gain",
        _L + "input_layernorm.bias": "norm_attention.offset",
        _L + "attention.query_key_value.weight": "W_QKV.T",
        _L + "attention.query_key_value.bias": "b_QKV",
        _L + "attention.dense.weight": "W_O.T",
        _L + "attention.dense.bias": "b_O",
        _L + "post_attention_layernorm.weight": "norm_ffn.gain",
        _L + "post_attention_layernorm.bias": "norm_ffn.offset",
        _L + "mlp.dense_h_to_4h.weight": "W_1.T",
        _L + "mlp.dense_h_to_4h.bias": "b_1",
        _L + "mlp.dense_4h_to_h.weight": "W_2.T",
        _L + "mlp.dense_4h_to_h.bias": "b_2",
        "final_layer_norm.weight": "norm_final.gain",
        "final_layer_norm.bias": "norm_final.offset",
        "embed_out.weight": "readout.T",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
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
        "tie_word_embeddings": used("whether the read-out is the embedding table", False),
        "rope_parameters": used("the factor of its rotations; angles cost nothing", None),
        "rope_scaling": used("the older name of rope_parameters", None),
        "original_max_position_embeddings": used("the factor of YaRN's and LongRoPE's rotations", None),
        **every(
            "rotary_pct rotary_emb_base rope_theta partial_rotary_factor",
            neutral("angles of rotations, which keep norms (S4)"),
        ),
        "attention_bias": agrees("whether queries, keys and values have offsets", there("b_QKV")),
        **sizes(
            hidden_size=width("embedding", 1, None),
            num_hidden_layers=depth,
            intermediate_size=width("W_1", 1),
            vocab_size=role_rows("embedding"),
        ),
        **every("attention_dropout hidden_dropout classifier_dropout", DROPOUT),
        "is_decoder": neutral("its attention is causal either way: masks may be any (L7)"),
    },
    classes={
        "Model": ("!lm_head.weight", "!embed_out.weight", "!score.weight"),
        "ForCausalLM": ("!score.weight",),
        "ForSequenceClassification": ("score.weight", "!lm_head.weight", "!embed_out.weight"),
    },
    by_group=True,
)
