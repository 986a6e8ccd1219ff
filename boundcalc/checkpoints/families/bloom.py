"""Bloom: GPT-2's blocks with ALiBi for positions, the embedding normalised, and queries, keys and values head by head."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    depth,
    every,
    neutral,
    role_rows,
    sizes,
    used,
    width,
)
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    d = model.shape("embedding")[1]
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=model.head_width(d),
        d_ff=model.shape("W_1", 0)[1],
        activation="gelu_tanh",  # written in its code
        eps=model.number("layer_norm_epsilon"),
        first=True,
        replaced=model.flag("apply_residual_connection_post_layernorm"),
        alibi=True,
        causal=True,
    )
    return stacked(model, d, shape, "seq_length", normed=True)


_H = "h.{b}."
BLOOM = Family(
    "bloom",
    ("bloom",),
    {
        "word_embeddings.weight": "embedding",
        "word_embeddings_layernorm.weight": "norm_embedding.gain",
        "word_embeddings_layernorm.bias": "norm_embedding.offset",
        _H + "input_layernorm.weight": "norm_attention.gain",
        _H + "input_layernorm.bias": "norm_attention.offset",
        _H + "self_attention.query_key_value.weight": "W_QKV.T",
        _H + "self_attention.query_key_value.bias": "b_QKV",
        _H + "self_attention.dense.weight": "W_O.T",
        _H + "self_attention.dense.bias": "b_O",
        _H + "post_attention_layernorm.weight": "norm_ffn.gain",
        _H + "post_attention_layernorm.bias": "norm_ffn.offset",
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
    prefixes=("transformer.",),
    fields={
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
        "n_head": used("attention heads"),
        "apply_residual_connection_post_layernorm": used("whether sublayers add to the normalised rows", False),
        "seq_length": used("T, unless it is given", None),
        "tie_word_embeddings": used("whether the read-out is the embedding table", True),
        **sizes(
            hidden_size=width("embedding", 1, None),
            n_layer=depth,
            vocab_size=role_rows("embedding"),
        ),
        "n_inner": neutral("its code has four times the width of a row, whatever this says"),
        **every("hidden_dropout attention_dropout", DROPOUT),
        "slow_but_exact": neutral("the same sums, computed in parts"),
        **every(
            "offset_alibi masked_softmax_fusion attention_softmax_in_fp32 bias_dropout_fusion skip_bias_add "
            "skip_bias_add_qkv unk_token_id",
            neutral("written by an old converter; no model of the library reads it"),
        ),
    },
    aliases={
        "n_embed": "hidden_size",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    heads="n_head",
    classes={
        "Model": ("!lm_head.weight", "!score.weight"),
        "ForCausalLM": ("!score.weight",),
        "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
    },
    by_group=True,
)
