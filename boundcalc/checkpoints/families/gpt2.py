"""GPT-2: normalisation before each sublayer, fused queries, keys and values, weights stored as x -> x W (Conv1D)."""

from __future__ import annotations

import math
from dataclasses import replace

from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import DROPOUT, depth, every, neutral, role_rows, sizes, used, width
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    d = model.shape("embedding")[1]
    d_head = model.head_width(d)
    scaled, by_layer = model.flag("scale_attn_weights"), model.flag("scale_attn_by_inverse_layer_idx")
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=d_head,
        d_ff=model.shape("W_1", 0)[1],
        activation=activation(model.setting("activation_function")),
        eps=model.number("layer_norm_epsilon"),
        first=True,
        causal=True,
    )

    def at(index: int) -> Shape:
        divisor = (math.sqrt(d_head) if scaled else 1.0) * (index + 1 if by_layer else 1)
        return replace(shape, temperature=divisor)

    return stacked(model, d, shape, at=at)


_H = "h.{b}."
GPT2 = Family(
    "gpt2",
    ("gpt2",),
    {
        "wte.weight": "embedding",
        "wpe.weight": "positions",
        _H + "ln_1.weight": "norm_attention.gain",
        _H + "ln_1.bias": "norm_attention.offset",
        _H + "attn.c_attn.weight": "W_QKV",
        _H + "attn.c_attn.bias": "b_QKV",
        _H + "attn.c_proj.weight": "W_O",
        _H + "attn.c_proj.bias": "b_O",
        _H + "ln_2.weight": "norm_ffn.gain",
        _H + "ln_2.bias": "norm_ffn.offset",
        _H + "mlp.c_fc.weight": "W_1",
        _H + "mlp.c_fc.bias": "b_1",
        _H + "mlp.c_proj.weight": "W_2",
        _H + "mlp.c_proj.bias": "b_2",
        "ln_f.weight": "norm_final.gain",
        "ln_f.bias": "norm_final.offset",
        "lm_head.weight": "readout.T",
        "score.weight": "readout.T",
    },
    _architecture,
    {
        "h.*.attn.bias": "the causal mask, a buffer",
        "h.*.attn.masked_bias": "a constant of the mask, a buffer",
    },
    prefixes=("transformer.",),
    fields={
        "activation_function": used("activation of the feed-forward part", "gelu_new"),
        "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
        "n_head": used("attention heads"),
        "scale_attn_weights": used("whether scores are divided by sqrt(d_head)", True),
        "scale_attn_by_inverse_layer_idx": used("whether scores are divided by the number of the layer too", False),
        "tie_word_embeddings": used("whether the read-out is the embedding table", True),
        **sizes(
            n_embd=width("embedding", 1, None),
            n_layer=depth,
            n_inner=width("W_1", 1),
            vocab_size=role_rows("embedding"),
            n_positions=role_rows("positions"),
            n_ctx=role_rows("positions"),
        ),
        **every("resid_pdrop embd_pdrop attn_pdrop", DROPOUT),
        "reorder_and_upcast_attn": neutral("the same scores, in another order and precision"),
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
    classes={
        "Model": ("!lm_head.weight", "!score.weight"),
        "LMHeadModel": ("!score.weight",),
        "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
    },
)
