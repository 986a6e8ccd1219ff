"""GPT-J and Phi: attention and feed-forward part read the same normalised rows, and both are added."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    Fields,
    depth,
    every,
    key_heads,
    neutral,
    only,
    role_rows,
    sizes,
    used,
    width,
)
from boundcalc.checkpoints.families.settings import rotation_factor
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture


def _gptj(model: Model) -> Architecture:
    return _decoder(model, "activation_function", "layer_norm_epsilon", "n_positions")


def _phi(model: Model) -> Architecture:
    if rotation_factor(model.settings) != 1:
        model.settings.doubt("rope_scaling", "a factor of rotations of part of each head is not supported")
    return _decoder(model, "hidden_act", "layer_norm_eps", "max_position_embeddings")


def _decoder(model: Model, act: str, eps: str, positions: str) -> Architecture:
    d, outputs = model.shape("W_Q", 0)
    d_head = model.head_width(outputs)
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=d_head,
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting(act)),
        eps=model.number(eps),
        first=True,
        beside="one norm",
        kv_heads=model.shape("W_K", 0)[1] // d_head,
        rope=True,
        causal=True,
    )
    return stacked(model, d, shape, positions)


_READ_OUT = {
    "lm_head.weight": "readout.T",
    "lm_head.bias": "b_readout",
    "score.weight": "readout.T",
}
_CLASSES = {
    "Model": ("!lm_head.weight", "!score.weight"),
    "ForCausalLM": ("!score.weight",),
    "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
}
_TIED: Fields = {"tie_word_embeddings": used("whether the read-out is the embedding table", False)}

_H = "h.{b}."
GPTJ = Family(
    "gptj",
    ("gptj",),
    {
        "wte.weight": "embedding",
        _H + "ln_1.weight": "norm_attention.gain",
        _H + "ln_1.bias": "norm_attention.offset",
        _H + "attn.q_proj.weight": "W_Q.T",
        _H + "attn.k_proj.weight": "W_K.T",
        _H + "attn.v_proj.weight": "W_V.T",
        _H + "attn.out_proj.weight": "W_O.T",
        _H + "mlp.fc_in.weight": "W_1.T",
        _H + "mlp.fc_in.bias": "b_1",
        _H + "mlp.fc_out.weight": "W_2.T",
        _H + "mlp.fc_out.bias": "b_2",
        "ln_f.weight": "norm_final.gain",
        "ln_f.bias": "norm_final.offset",
        **_READ_OUT,
    },
    _gptj,
    {
        "h.*.attn.bias": "the causal mask, a buffer",
        "h.*.attn.masked_bias": "a constant of the mask, a buffer",
        "h.*.attn.embed_positions": "the angles of the rotary positions, a buffer",
    },
    prefixes=("transformer.",),
    fields=_TIED
    | {
        "activation_function": used("activation of the feed-forward part", "gelu_new"),
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
        "n_head": used("attention heads"),
        "n_positions": used("T, unless it is given", 2048),
        "rotary_dim": neutral("angles of rotations, which keep norms (S4)"),
        "rotary": neutral("rotations keep norms (S4), and so do none"),
        "scale_attn_weights": only("its code divides scores by sqrt(d_head), whatever this says", True, None),
        **sizes(
            n_embd=width("embedding", 1, None),
            n_layer=depth,
            n_inner=width("W_1", 1),
            vocab_size=role_rows("embedding"),
        ),
        **every("resid_pdrop embd_pdrop attn_pdrop", DROPOUT),
        **every(
            "summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout",
            neutral("the head of multiple choice, whose tensors are unexpected"),
        ),
    },
    aliases={
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "max_position_embeddings": "n_positions",
    },
    heads="n_head",
    classes=_CLASSES,
)

_L = "layers.{b}."
PHI = Family(
    "phi",
    ("phi",),
    {
        "embed_tokens.weight": "embedding",
        _L + "input_layernorm.weight": "norm_attention.gain",
        _L + "input_layernorm.bias": "norm_attention.offset",
        _L + "self_attn.q_proj.weight": "W_Q.T",
        _L + "self_attn.q_proj.bias": "b_Q",
        _L + "self_attn.k_proj.weight": "W_K.T",
        _L + "self_attn.k_proj.bias": "b_K",
        _L + "self_attn.v_proj.weight": "W_V.T",
        _L + "self_attn.v_proj.bias": "b_V",
        _L + "self_attn.dense.weight": "W_O.T",
        _L + "self_attn.dense.bias": "b_O",
        _L + "mlp.fc1.weight": "W_1.T",
        _L + "mlp.fc1.bias": "b_1",
        _L + "mlp.fc2.weight": "W_2.T",
        _L + "mlp.fc2.bias": "b_2",
        "final_layernorm.weight": "norm_final.gain",
        "final_layernorm.bias": "norm_final.offset",
        **_READ_OUT,
    },
    _phi,
    {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"},
    prefixes=("model.",),
    fields=_TIED
    | {
        "hidden_act": used("activation of the feed-forward part", "gelu_new"),
        "layer_norm_eps": used("epsilon of every normalisation", 1e-5),
        "num_attention_heads": used("query heads"),
        "max_position_embeddings": used("T, unless it is given", 2048),
        "qk_layernorm": only("it normalises queries and keys: needs a layer for that", False, None),
        "rope_parameters": used("the factor of its rotations; angles cost nothing", None),
        "rope_scaling": used("the older name of rope_parameters", None),
        "original_max_position_embeddings": used("the factor of YaRN's and LongRoPE's rotations", None),
        **every("rope_theta partial_rotary_factor", neutral("angles of rotations, which keep norms (S4)")),
        **sizes(
            hidden_size=width("embedding", 1, None),
            num_hidden_layers=depth,
            intermediate_size=width("W_1", 1),
            vocab_size=role_rows("embedding"),
            num_key_value_heads=key_heads,
        ),
        **every("resid_pdrop embd_pdrop attention_dropout", DROPOUT),
    },
    classes=_CLASSES,
)
