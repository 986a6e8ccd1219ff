"""Bloom: GPT-2's blocks with ALiBi for positions, the embedding normalised, and queries, keys and values head by head."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import DROPOUT, OLD_CONVERTER, STACK, TIED, every, neutral, renamed, used
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    shape = Shape(
        **sizes_of(model),
        activation="gelu_tanh",  # written in its code
        eps=model.number("layer_norm_epsilon"),
        first=True,
        replaced=model.flag("apply_residual_connection_post_layernorm"),
        alibi=True,
        causal=True,
    )
    return stacked(model, shape, "seq_length", normed=True)


_H = "h.{b}."
BLOOM = Family(
    "bloom",
    ("bloom",),
    {
        "word_embeddings.weight": "embedding",
        **with_offsets(
            {
                "word_embeddings_layernorm": "norm_embedding.gain",
                _H + "input_layernorm": "norm_attention.gain",
                _H + "self_attention.query_key_value": "W_QKV.T",
                _H + "self_attention.dense": "W_O.T",
                _H + "post_attention_layernorm": "norm_ffn.gain",
                _H + "mlp.dense_h_to_4h": "W_1.T",
                _H + "mlp.dense_4h_to_h": "W_2.T",
                "ln_f": "norm_final.gain",
            }
        ),
        **READ_OUT,
    },
    _architecture,
    prefixes=("transformer.",),
    fields={
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
        "n_head": used("attention heads"),
        "apply_residual_connection_post_layernorm": used("whether sublayers add to the normalised rows", False),
        "seq_length": used("T, unless it is given", None),
        "tie_word_embeddings": TIED,
        **renamed(STACK, num_hidden_layers="n_layer", intermediate_size="n_inner"),
        "n_inner": neutral("its code has four times the width of a row, whatever this says"),
        **every("hidden_dropout attention_dropout", DROPOUT),
        "slow_but_exact": neutral("the same sums, computed in parts"),
        **every(
            "offset_alibi masked_softmax_fusion attention_softmax_in_fp32 bias_dropout_fusion skip_bias_add "
            "skip_bias_add_qkv unk_token_id",
            OLD_CONVERTER,
        ),
    },
    aliases={
        "n_embed": "hidden_size",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    heads="n_head",
    classes=read_outs(),
    by_group=True,
)
