"""Decoders with LayerNorm: GPT-2, GPT-J, GPT-NeoX, OPT, Bloom, Phi and Falcon."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.table import Family

_BUFFERS: dict[str, str] = dict.fromkeys(
    ("*attn.bias", "*attention.bias", "*masked_bias", "*inv_freq", "*embed_positions"), "a buffer"
)
_UNTIED = ("tie_word_embeddings", False)
_TIED = ("tie_word_embeddings", True)
_H, _L = "h.{b}.", "layers.{b}."
_GPT = {
    "activation": ("activation_function", "gelu_new"),
    "eps": ("layer_norm_epsilon", 1e-5),
    "heads": ("n_head", None),
}

GPT2 = Family(
    "gpt2",
    ("gpt2",),
    {"wte.weight": "embedding", "wpe.weight": "positions", **READ_OUT}
    | with_offsets(
        {
            _H + "ln_1": "norm_attention.gain",
            _H + "attn.c_attn": "W_QKV",
            _H + "attn.c_proj": "W_O",
            _H + "ln_2": "norm_ffn.gain",
            _H + "mlp.c_fc": "W_1",
            _H + "mlp.c_proj": "W_2",
            "ln_f": "norm_final.gain",
        }
    ),
    stack,
    _BUFFERS,
    prefixes=("transformer.",),
    reads=_GPT | {"tied": _TIED},
    fixed={"first": True, "causal": True},
    only={"scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,)},
    neutral="reorder_and_upcast_attn",
    classes=read_outs("LMHeadModel"),
)

GPTJ = Family(
    "gptj",
    ("gptj",),
    {"wte.weight": "embedding", "score.weight": "readout.T"}
    | with_offsets(
        {
            _H + "ln_1": "norm_attention.gain",
            _H + "attn.q_proj": "W_Q.T",
            _H + "attn.k_proj": "W_K.T",
            _H + "attn.v_proj": "W_V.T",
            _H + "attn.out_proj": "W_O.T",
            _H + "mlp.fc_in": "W_1.T",
            _H + "mlp.fc_out": "W_2.T",
            "ln_f": "norm_final.gain",
            "lm_head": "readout.T",
        }
    ),
    stack,
    _BUFFERS,
    prefixes=("transformer.",),
    reads=_GPT | {"tied": _UNTIED, "longest": ("n_positions", 2048)},
    fixed={"first": True, "causal": True, "rope": True, "parallel": True},
    only={"scale_attn_weights": (True,)},
    neutral="rotary",
    classes=read_outs(),
)

GPT_NEOX = Family(
    "gpt_neox",
    ("gpt_neox",),
    {"embed_in.weight": "embedding", "embed_out.weight": "readout.T", **READ_OUT}
    | with_offsets(
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
    stack,
    _BUFFERS,
    prefixes=("gpt_neox.",),
    reads={
        "activation": ("hidden_act", "gelu"),
        "eps": ("layer_norm_eps", 1e-5),
        "heads": ("num_attention_heads", None),
        "parallel": ("use_parallel_residual", True),
        "longest": ("max_position_embeddings", None),
        "tied": _UNTIED,
    },
    fixed={"first": True, "causal": True, "rope": True},
    neutral="partial_rotary_factor|is_decoder",
    classes=read_outs(heads=("lm_head.weight", "embed_out.weight")),
    by_group=True,
)

OPT = Family(
    "opt",
    ("opt",),
    {
        "embed_tokens.weight": "embedding",
        "embed_positions.weight": "positions",
        "project_in.weight": "W_in.T",
        "project_out.weight": "W_out.T",
        **READ_OUT,
    }
    | with_offsets(
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
    stack,
    prefixes=("model.decoder.", "decoder."),
    reads={
        "activation": ("activation_function", "relu"),
        "heads": ("num_attention_heads", None),
        "first": ("do_layer_norm_before", True),
        "tied": _TIED,
    },
    fixed={"eps": 1e-5, "causal": True, "skipped": 2},
    only={"_remove_final_layer_norm": (False,), "layer_norm_elementwise_affine": (True,)},
    classes=read_outs(),
)

BLOOM = Family(
    "bloom",
    ("bloom",),
    {"word_embeddings.weight": "embedding", **READ_OUT}
    | with_offsets(
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
    stack,
    prefixes=("transformer.",),
    reads={
        "eps": ("layer_norm_epsilon", 1e-5),
        "heads": ("n_head", None),
        "replaced": ("apply_residual_connection_post_layernorm", False),
        "longest": ("seq_length", None),
        "tied": _TIED,
    },
    fixed={"activation": "gelu_new", "first": True, "causal": True, "alibi": True},
    neutral="slow_but_exact|offset_alibi|masked_softmax_fusion|attention_softmax_in_fp32|bias_dropout_fusion|skip_bias_add\\w*|n_inner",
    classes=read_outs(),
    by_group=True,
)

PHI = Family(
    "phi",
    ("phi",),
    {"embed_tokens.weight": "embedding", "score.weight": "readout.T"}
    | with_offsets(
        {
            _L + "input_layernorm": "norm_attention.gain",
            _L + "self_attn.q_proj": "W_Q.T",
            _L + "self_attn.k_proj": "W_K.T",
            _L + "self_attn.v_proj": "W_V.T",
            _L + "self_attn.dense": "W_O.T",
            _L + "mlp.fc1": "W_1.T",
            _L + "mlp.fc2": "W_2.T",
            "final_layernorm": "norm_final.gain",
            "lm_head": "readout.T",
        }
    ),
    stack,
    _BUFFERS,
    prefixes=("model.",),
    reads={
        "activation": ("hidden_act", "gelu_new"),
        "eps": ("layer_norm_eps", 1e-5),
        "heads": ("num_attention_heads", None),
        "longest": ("max_position_embeddings", 2048),
        "tied": _UNTIED,
    },
    fixed={"first": True, "causal": True, "rope": True, "parallel": True},
    only={"qk_layernorm": (False,)},
    neutral="partial_rotary_factor",
    classes=read_outs(),
)

FALCON = Family(
    "falcon",
    ("falcon",),
    {"word_embeddings.weight": "embedding", **READ_OUT}
    | with_offsets(
        {
            _H + "input_layernorm": "norm_attention.gain",
            _H + "ln_attn": "norm_attention.gain",
            _H + "ln_mlp": "norm_ffn.gain",
            _H + "self_attention.query_key_value": "W_QKV.T",
            _H + "self_attention.dense": "W_O.T",
            _H + "mlp.dense_h_to_4h": "W_1.T",
            _H + "mlp.dense_4h_to_h": "W_2.T",
            "ln_f": "norm_final.gain",
        }
    ),
    stack,
    _BUFFERS,
    prefixes=("transformer.",),
    reads={
        "activation": ("activation", "gelu"),
        "eps": ("layer_norm_epsilon", 1e-5),
        "heads": ("num_attention_heads", None),
        "longest": ("max_position_embeddings", 2048),
        "tied": _TIED,
    },
    fixed={"first": True, "causal": True, "rope": True, "parallel": True},
    only={"alibi": (False,), "parallel_attn": (True,), "apply_residual_connection_post_layernorm": (False,)},
    neutral="new_decoder_architecture|multi_query|num_kv_heads",  # the tensors say it
    classes=read_outs(),
    by_group=True,
)
