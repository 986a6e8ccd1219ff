"""Llama, Mistral, Qwen2 and Granite: RMSNorm first, rotary positions, grouped queries, a gated feed-forward part."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import Shape, stacked
from boundcalc.checkpoints.families.fields import DECODER, WINDOW, neutral, only, used
from boundcalc.checkpoints.families.settings import rotation_factor
from boundcalc.checkpoints.families.table import Family, Model, activation
from boundcalc.setting import Architecture


def _llama(model: Model) -> Architecture:
    d_head = model.head_width(model.shape("W_Q", 0)[1])
    return decoder(model, d_head, math.sqrt(d_head), activation(model.setting("hidden_act")))


def decoder(model: Model, d_head: int, temperature: float, act: str, **changes: Any) -> Architecture:
    """The blocks, with what differs of `Shape`; rotations that stretch make scores larger by the square of their factor."""
    d = model.shape("W_Q", 0)[0]
    outputs = model.shape("W_K", 0)[1]
    if outputs % d_head:
        raise CheckpointError(
            f"{model.checkpoint.where}: {outputs} outputs of keys do not make heads of width {d_head}"
        )
    factor = rotation_factor(model.settings)
    if factor != 1:
        temperature = temperature / factor**2 * (1 - 2.0**-50)
    shape = Shape(
        d=d,
        heads=model.heads,
        d_head=d_head,
        d_ff=model.shape("W_1", 0)[1],
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
    return stacked(model, d, shape, "max_position_embeddings")


def _granite(model: Model) -> Architecture:
    """Llama with four constants: that of the scores is one over the temperature, three go into weights (`scales`)."""
    for name in ("embedding_multiplier", "residual_multiplier", "logits_scaling"):
        model.number(name)
    d_head = model.head_width(model.shape("W_Q", 0)[1])
    return decoder(model, d_head, 1 / model.number("attention_multiplier"), activation(model.setting("hidden_act")))


def _per_logit(model: Model) -> float:
    """GraniteForSequenceClassification has the read-out of Llama."""
    divisor = model.number("logits_scaling")
    return 1.0 if model.head == "ForSequenceClassification" else math.nextafter(1 / divisor, math.inf)


def _qwen3(model: Model) -> Architecture:
    """Queries and keys of each head are normalised before they are rotated (L13)."""
    d_head = model.head_width(model.shape("W_Q", 0)[1])
    act = activation(model.setting("hidden_act"))
    return decoder(model, d_head, math.sqrt(d_head), act, normalised="head")


def _olmo2(model: Model) -> Architecture:
    """Queries and keys of all heads are normalised together, and what a sublayer adds; not what it reads."""
    d_head = model.head_width(model.shape("W_Q", 0)[1])
    act = activation(model.setting("hidden_act"))
    return decoder(model, d_head, math.sqrt(d_head), act, normalised="width")


_L = "layers.{b}."
TENSORS = {
    "embed_tokens.weight": "embedding",
    _L + "input_layernorm.weight": "norm_attention.gain",
    _L + "self_attn.q_proj.weight": "W_Q.T",
    _L + "self_attn.q_proj.bias": "b_Q",
    _L + "self_attn.k_proj.weight": "W_K.T",
    _L + "self_attn.k_proj.bias": "b_K",
    _L + "self_attn.v_proj.weight": "W_V.T",
    _L + "self_attn.v_proj.bias": "b_V",
    _L + "self_attn.o_proj.weight": "W_O.T",
    _L + "self_attn.o_proj.bias": "b_O",
    _L + "post_attention_layernorm.weight": "norm_ffn.gain",
    _L + "mlp.gate_proj.weight": "W_1.T",
    _L + "mlp.gate_proj.bias": "b_1",
    _L + "mlp.up_proj.weight": "W_3.T",
    _L + "mlp.up_proj.bias": "b_3",
    _L + "mlp.down_proj.weight": "W_2.T",
    _L + "mlp.down_proj.bias": "b_2",
    "norm.weight": "norm_final.gain",
    "lm_head.weight": "readout.T",
    "score.weight": "readout.T",
}
BUFFERS = {"*rotary_emb.inv_freq": "the frequencies of the rotary positions, a buffer"}
CLASSES = {
    "Model": ("!lm_head.weight", "!score.weight"),
    "ForCausalLM": ("!score.weight",),
    "ForSequenceClassification": ("score.weight", "!lm_head.weight"),
}

LLAMA = Family(
    "llama",
    ("llama", "mistral", "qwen2"),
    TENSORS,
    _llama,
    BUFFERS,
    prefixes=("model.",),
    fields=DECODER
    | WINDOW
    | {
        "use_mrope": only("rotary positions of several axes are not known", False, None),
        "unsloth_version": neutral("which program trained it"),
    },
    classes=CLASSES,
)

_NORMALISED = {
    _L + "self_attn.q_norm.weight": "norm_Q.gain",
    _L + "self_attn.k_norm.weight": "norm_K.gain",
}

QWEN3 = Family(
    "qwen3",
    ("qwen3",),
    TENSORS | _NORMALISED,
    _qwen3,
    BUFFERS,
    prefixes=("model.",),
    fields=DECODER | WINDOW,
    classes=CLASSES,
)

OLMO2 = Family(
    "olmo2",
    ("olmo2",),
    {name: role for name, role in TENSORS.items() if "layernorm" not in name}
    | _NORMALISED
    | {
        _L + "self_attn.o_proj.bias": "b_O",
        _L + "post_attention_layernorm.weight": "norm_attention_out.gain",
        _L + "post_feedforward_layernorm.weight": "norm_ffn_out.gain",
    },
    _olmo2,
    BUFFERS,
    prefixes=("model.",),
    fields=DECODER | {"rms_norm_eps": used("epsilon of every normalisation", 1e-5)},
    classes=CLASSES,
    bare_sublayers=True,
)

GRANITE = Family(
    "granite",
    ("granite",),
    TENSORS,
    _granite,
    BUFFERS,
    prefixes=("model.",),
    fields=DECODER
    | {
        "attention_multiplier": used("one over the temperature", 1.0),
        "embedding_multiplier": used("a factor of the embedding table", 1.0),
        "residual_multiplier": used("a factor of W_O, b_O and W_2", 1.0),
        "logits_scaling": used("the read-out is divided by it", 1.0),
    },
    classes=CLASSES,
    scales={
        "embedding": lambda model: model.number("embedding_multiplier"),
        "readout": _per_logit,
        **dict.fromkeys(("W_O", "b_O", "W_2"), lambda model: model.number("residual_multiplier")),
    },
)
