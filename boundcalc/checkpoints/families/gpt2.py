"""GPT-2: normalisation before each sublayer, fused queries, keys and values, weights stored as x -> x W (Conv1D)."""

from __future__ import annotations

import math
from dataclasses import replace

from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import (
    DROPOUT,
    MULTIPLE_CHOICE,
    STACK,
    TIED,
    Fields,
    activation,
    every,
    neutral,
    renamed,
    role_rows,
    sizes,
    used,
)
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def _architecture(model: Model) -> Architecture:
    sizes = sizes_of(model)
    scaled, by_layer = model.flag("scale_attn_weights"), model.flag("scale_attn_by_inverse_layer_idx")
    shape = Shape(
        **sizes,
        activation=activation(model.setting("activation_function")),
        eps=model.number("layer_norm_epsilon"),
        first=True,
        causal=True,
    )

    def at(index: int) -> Shape:
        divisor = (math.sqrt(shape.d_head) if scaled else 1.0) * (index + 1 if by_layer else 1)
        return replace(shape, temperature=divisor)

    return stacked(model, shape, at=at)


NAMES = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "max_position_embeddings": "n_positions",
}
"""Other names of the fields of GPT-2 and GPT-J."""
FIELDS: Fields = {
    "activation_function": used("activation of the feed-forward part", "gelu_new"),
    "layer_norm_epsilon": used("epsilon of every normalisation", 1e-5),
    "n_head": used("attention heads"),
    **renamed(STACK, hidden_size="n_embd", num_hidden_layers="n_layer", intermediate_size="n_inner"),
    **every("resid_pdrop embd_pdrop attn_pdrop", DROPOUT),
    **MULTIPLE_CHOICE,
}
"""Fields that GPT-2 and GPT-J share."""
BUFFERS = {"h.*.attn.bias": "the causal mask, a buffer", "h.*.attn.masked_bias": "a constant of the mask, a buffer"}

_H = "h.{b}."
GPT2 = Family(
    "gpt2",
    ("gpt2",),
    {
        "wte.weight": "embedding",
        "wpe.weight": "positions",
        **with_offsets(
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
        **READ_OUT,
    },
    _architecture,
    BUFFERS,
    prefixes=("transformer.",),
    fields=FIELDS
    | {
        "scale_attn_weights": used("whether scores are divided by sqrt(d_head)", True),
        "scale_attn_by_inverse_layer_idx": used("whether scores are divided by the number of the layer too", False),
        "tie_word_embeddings": TIED,
        **sizes(n_positions=role_rows("positions"), n_ctx=role_rows("positions")),
        "reorder_and_upcast_attn": neutral("the same scores, in another order and precision"),
    },
    aliases=NAMES,
    heads="n_head",
    classes=read_outs("LMHeadModel"),
)
