"""GPT-J and Phi: attention and feed-forward part read the same normalised rows, and both are added."""

from __future__ import annotations

from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    ROTATED,
    STACK,
    UNTIED,
    activation,
    every,
    key_heads,
    neutral,
    only,
    sizes,
    used,
)
from boundcalc.checkpoints.families.gpt2 import BUFFERS, FIELDS, NAMES
from boundcalc.checkpoints.families.names import read_outs, with_offsets
from boundcalc.checkpoints.families.settings import refuse_rotation_factor
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _gptj(model: Model) -> Architecture:
    return _decoder(model, "activation_function", "layer_norm_epsilon", "n_positions")


def _phi(model: Model) -> Architecture:
    refuse_rotation_factor(model.settings, "a factor of rotations of part of each head is not supported")
    return _decoder(model, "hidden_act", "layer_norm_eps", "max_position_embeddings")


def _decoder(model: Model, act: str, eps: str, positions: str) -> Architecture:
    shape = Shape(
        **sizes_of(model),
        activation=activation(model.setting(act)),
        eps=model.number(eps),
        first=True,
        beside="one norm",
        kv_heads=key_heads(model),
        rope=True,
        causal=True,
    )
    return stacked(model, shape, positions)


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
        **with_offsets(
            {
                _H + "mlp.fc_in": "W_1.T",
                _H + "mlp.fc_out": "W_2.T",
                "ln_f": "norm_final.gain",
                "lm_head": "readout.T",
            }
        ),
        "score.weight": "readout.T",
    },
    _gptj,
    {
        **BUFFERS,
        "h.*.attn.embed_positions": "the angles of the rotary positions, a buffer",
    },
    prefixes=("transformer.",),
    fields=FIELDS
    | {
        "tie_word_embeddings": UNTIED,
        "n_positions": used("T, unless it is given", 2048),
        "rotary_dim": neutral("angles of rotations, which keep norms (S4)"),
        "rotary": neutral("rotations keep norms (S4), and so do none"),
        "scale_attn_weights": only("its code divides scores by sqrt(d_head), whatever this says", True, None),
    },
    aliases=NAMES,
    heads="n_head",
    classes=read_outs(),
)

_L = "layers.{b}."
PHI = Family(
    "phi",
    ("phi",),
    {
        "embed_tokens.weight": "embedding",
        **with_offsets(
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
        "score.weight": "readout.T",
    },
    _phi,
    {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"},
    prefixes=("model.",),
    fields=STACK
    | ROTATED
    | {
        "tie_word_embeddings": UNTIED,
        "hidden_act": used("activation of the feed-forward part", "gelu_new"),
        "layer_norm_eps": used("epsilon of every normalisation", 1e-5),
        "num_attention_heads": used("query heads"),
        "max_position_embeddings": used("T, unless it is given", 2048),
        "qk_layernorm": only("it normalises queries and keys: needs a layer for that", False, None),
        **sizes(num_key_value_heads=key_heads),
        **every("resid_pdrop embd_pdrop attention_dropout", DROPOUT),
    },
    classes=read_outs(),
)
