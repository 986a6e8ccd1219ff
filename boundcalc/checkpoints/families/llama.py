"""Llama, Mistral, Qwen2 and Granite: RMSNorm first, rotary positions, grouped queries, a gated feed-forward part."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, sizes_of, stacked
from boundcalc.checkpoints.families.fields import DECODER, WINDOW, activation, head_width, neutral, only, used
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.settings import rotation_factor
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.setting import Architecture


def decoder(model: Model, act: str | None = None, temperature: float | None = None, **changes: Any) -> Architecture:
    """The blocks, with what differs of `Shape`; rotations that stretch make scores larger by the square of their factor.

    `act` is what hidden_act says unless it is given, the temperature sqrt(d_head).
    """
    d_head = head_width(model)
    act = activation(model.setting("hidden_act")) if act is None else act
    outputs = model.shape("W_K", 0)[1]
    if outputs % d_head:
        raise CheckpointError(
            f"{model.checkpoint.where}: {outputs} outputs of keys do not make heads of width {d_head}"
        )
    temperature = math.sqrt(d_head) if temperature is None else temperature
    factor = rotation_factor(model.settings)
    if factor != 1:
        temperature = temperature / factor**2 * (1 - 2.0**-50)
    shape = Shape(
        **sizes_of(model),
        activation=act,
        eps=model.number("rms_norm_eps"),
        norm="rmsnorm",
        first=True,
        kv_heads=outputs // d_head,
        gated=True,
        rope=True,
        causal=True,
        temperature=temperature,
        **changes,
    )
    return stacked(model, shape, "max_position_embeddings")


def _granite(model: Model) -> Architecture:
    """Llama with four constants: that of the scores is one over the temperature, three go into weights (`scales`)."""
    for name in ("embedding_multiplier", "residual_multiplier", "logits_scaling"):
        model.number(name)
    return decoder(model, temperature=1 / model.number("attention_multiplier"))


def _per_logit(model: Model) -> float:
    """GraniteForSequenceClassification has the read-out of Llama."""
    divisor = model.number("logits_scaling")
    return 1.0 if model.head == "ForSequenceClassification" else math.nextafter(1 / divisor, math.inf)


def _qwen3(model: Model) -> Architecture:
    """Queries and keys of each head are normalised before they are rotated (L13)."""
    return decoder(model, normalised="head")


def _olmo2(model: Model) -> Architecture:
    """Queries and keys of all heads are normalised together, and what a sublayer adds; not what it reads."""
    return decoder(model, normalised="width")


_L = "layers.{b}."
TENSORS = {
    "embed_tokens.weight": "embedding",
    _L + "input_layernorm.weight": "norm_attention.gain",
    **with_offsets(
        {
            _L + "self_attn.q_proj": "W_Q.T",
            _L + "self_attn.k_proj": "W_K.T",
            _L + "self_attn.v_proj": "W_V.T",
            _L + "self_attn.o_proj": "W_O.T",
        }
    ),
    _L + "post_attention_layernorm.weight": "norm_ffn.gain",
    **with_offsets(
        {
            _L + "mlp.gate_proj": "W_1.T",
            _L + "mlp.up_proj": "W_3.T",
            _L + "mlp.down_proj": "W_2.T",
        }
    ),
    "norm.weight": "norm_final.gain",
    **READ_OUT,
}

LLAMA = Family(
    "llama",
    ("llama", "mistral", "qwen2"),
    TENSORS,
    decoder,
    {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"},
    prefixes=("model.",),
    fields=DECODER
    | WINDOW
    | {
        "use_mrope": only("rotary positions of several axes are not known", False, None),
        "unsloth_version": neutral("which program trained it"),
    },
    classes=read_outs(),
)

_NORMALISED = {
    _L + "self_attn.q_norm.weight": "norm_Q.gain",
    _L + "self_attn.k_norm.weight": "norm_K.gain",
}

QWEN3 = replace(
    LLAMA,
    name="qwen3",
    model_types=("qwen3",),
    tensors=TENSORS | _NORMALISED,
    architecture=_qwen3,
    fields=DECODER | WINDOW,
)

OLMO2 = replace(
    LLAMA,
    name="olmo2",
    model_types=("olmo2",),
    tensors={name: role for name, role in TENSORS.items() if "layernorm" not in name}
    | _NORMALISED
    | {
        _L + "self_attn.o_proj.bias": "b_O",
        _L + "post_attention_layernorm.weight": "norm_attention_out.gain",
        _L + "post_feedforward_layernorm.weight": "norm_ffn_out.gain",
    },
    architecture=_olmo2,
    fields=DECODER | {"rms_norm_eps": used("epsilon of every normalisation", 1e-5)},
    bare_sublayers=True,
)

GRANITE = replace(
    LLAMA,
    name="granite",
    model_types=("granite",),
    architecture=_granite,
    fields=DECODER
    | {
        "attention_multiplier": used("one over the temperature", 1.0),
        "embedding_multiplier": used("a factor of the embedding table", 1.0),
        "residual_multiplier": used("a factor of W_O, b_O and W_2", 1.0),
        "logits_scaling": used("the read-out is divided by it", 1.0),
    },
    scales={
        "embedding": lambda model: model.number("embedding_multiplier"),
        "readout": _per_logit,
        **dict.fromkeys(("W_O", "b_O", "W_2"), lambda model: model.number("residual_multiplier")),
    },
)
