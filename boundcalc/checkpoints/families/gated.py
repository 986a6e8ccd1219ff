"""Decoders with RMSNorm, rotary positions and gated parts: Llama, Mistral, Qwen 2 and 3, OLMo 2, Granite, Gemma 1 and 2."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.names import READ_OUT, read_outs, with_offsets
from boundcalc.checkpoints.families.table import Family, Model

_L = "layers.{b}."
TENSORS = {
    "embed_tokens.weight": "embedding",
    _L + "input_layernorm.weight": "norm_attention.gain",
    _L + "post_attention_layernorm.weight": "norm_ffn.gain",
    "norm.weight": "norm_final.gain",
    **READ_OUT,
    **with_offsets(
        {
            _L + "self_attn.q_proj": "W_Q.T",
            _L + "self_attn.k_proj": "W_K.T",
            _L + "self_attn.v_proj": "W_V.T",
            _L + "self_attn.o_proj": "W_O.T",
            _L + "mlp.gate_proj": "W_1.T",
            _L + "mlp.up_proj": "W_3.T",
            _L + "mlp.down_proj": "W_2.T",
        }
    ),
}
_READS = {
    "activation": ("hidden_act", "silu"),
    "eps": ("rms_norm_eps", 1e-6),
    "heads": ("num_attention_heads", None),
    "longest": ("max_position_embeddings", None),
    "tied": ("tie_word_embeddings", False),
}
_FIXED = {"first": True, "causal": True, "rope": True, "stretches": True, "norm": "rmsnorm"}

LLAMA = Family(
    "llama",
    ("llama", "mistral", "qwen2"),
    TENSORS,
    stack,
    {"*rotary_emb.inv_freq": "a buffer"},
    prefixes=("model.",),
    reads=_READS,
    fixed=_FIXED,
    classes=read_outs(),
)

_NORMALISED = {
    _L + "self_attn.q_norm.weight": "norm_Q.gain",
    _L + "self_attn.k_norm.weight": "norm_K.gain",
}
QWEN3 = replace(
    LLAMA, name="qwen3", model_types=("qwen3",), tensors=TENSORS | _NORMALISED, fixed=_FIXED | {"normalised": "head"}
)
OLMO2 = replace(
    LLAMA,
    name="olmo2",
    model_types=("olmo2",),
    tensors={name: role for name, role in TENSORS.items() if "layernorm" not in name}
    | _NORMALISED
    | {
        _L + "post_attention_layernorm.weight": "norm_attention_out.gain",
        _L + "post_feedforward_layernorm.weight": "norm_ffn_out.gain",
    },
    reads=_READS | {"eps": ("rms_norm_eps", 1e-5)},
    fixed=_FIXED | {"normalised": "width", "bare": True},
)

GRANITE = replace(
    LLAMA,
    name="granite",
    model_types=("granite",),
    reads=_READS
    | {
        "score_scale": ("attention_multiplier", 1.0),
        "embedding": ("embedding_multiplier", 1.0),
        "residual": ("residual_multiplier", 1.0),
        "divisor": ("logits_scaling", 1.0),
    },
    scales={
        "embedding": lambda model: model.number("embedding"),
        "readout": lambda model: math.nextafter(1 / model.number("divisor"), math.inf),
        **dict.fromkeys(("W_O", "b_O", "W_2", "b_2"), lambda model: model.number("residual")),
    },
    classes={name: tensors for name, tensors in read_outs().items() if name != "ForSequenceClassification"},
)


def _root_of_width(model: Model) -> float:
    """sqrt(d), which the library rounds to the type that the weights are stored in: the largest that it may be."""
    tensor = model.place("embedding").tensor
    exact = math.sqrt(tensor.shape[-1])
    found = [math.nextafter(exact, math.inf), float(np.float32(exact))] if not exact.is_integer() else [exact]
    if bits := {"float16": 11, "bfloat16": 8}.get(tensor.dtype):
        mantissa, exponent = math.frexp(exact)
        found.append(math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits))
    return max(found)


GEMMA = replace(
    LLAMA,
    name="gemma",
    model_types=("gemma",),
    reads={name: field for name, field in _READS.items() if name != "activation"}
    | {"longest": ("max_position_embeddings", 8192), "tied": ("tie_word_embeddings", True)},
    fixed=_FIXED | {"around_one": True, "activation": "gelu_pytorch_tanh"},
    only={"hidden_act": ("gelu_pytorch_tanh", "gelu"), "hidden_activation": ("gelu_pytorch_tanh",)},
    scales={"embedding": _root_of_width},
)
GEMMA2 = replace(
    GEMMA,
    name="gemma2",
    model_types=("gemma2",),
    tensors=TENSORS
    | {
        _L + "post_attention_layernorm.weight": "norm_attention_out.gain",
        _L + "pre_feedforward_layernorm.weight": "norm_ffn.gain",
        _L + "post_feedforward_layernorm.weight": "norm_ffn_out.gain",
    },
    reads={
        **GEMMA.reads,
        "activation": ("hidden_activation", "gelu_pytorch_tanh"),
        "score_root": ("query_pre_attn_scalar", 256),
        "cap": ("attn_logit_softcapping", 50.0),
        "final_cap": ("final_logit_softcapping", 30.0),
    },
    fixed=_FIXED | {"around_one": True},
    only={"hidden_act": ("gelu_pytorch_tanh",)},
)
