"""Gemma 1 and 2: Llama's blocks with gains 1 + w and scaled embeddings; Gemma 2 caps scores and logits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from boundcalc.checkpoints.families.fields import DECODER, TIED, WINDOW, Fields, activation, neutral, only, used
from boundcalc.checkpoints.families.llama import LLAMA, TENSORS, decoder
from boundcalc.checkpoints.families.table import Model
from boundcalc.setting import Architecture, SoftCap
from boundcalc.setting.validate import positive

_HALF = {"float16": 11, "bfloat16": 8}
"""Bits of the significands of narrow floats."""


def _gemma(model: Model) -> Architecture:
    """GELU has its tanh form whatever the older word says."""
    name = model.setting("hidden_act")
    return decoder(model, "gelu_tanh" if name == "gelu" else activation(name), around_one=True)


def _gemma2(model: Model) -> Architecture:
    temperature = math.sqrt(model.number("query_pre_attn_scalar"))
    found = decoder(
        model,
        activation(model.setting("hidden_activation")),
        temperature,
        around_one=True,
        cap=_cap(model, "attn_logit_softcapping"),
    )
    cap = _cap(model, "final_logit_softcapping")
    if cap is None or model.head == "ForSequenceClassification":
        return found
    return replace(found, layers=(*found.stages, SoftCap(found.classes, cap)))


def _cap(model: Model, name: str) -> float | None:
    """A soft cap; null in config.json says that there is none."""
    return None if model.settings.switched_off(name) else positive(name, model.setting(name))


def _embedding_scale(model: Model) -> float:
    """sqrt(d), which the library rounds to the type that the weights are stored in: the largest that it may be."""
    tensor = model.place("embedding").tensor
    exact = math.sqrt(tensor.shape[-1])
    found = [math.nextafter(exact, math.inf), float(np.float32(exact))] if not exact.is_integer() else [exact]
    if bits := _HALF.get(tensor.dtype):
        mantissa, exponent = math.frexp(exact)
        found.append(math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits))
    return max(found)


_TENSORS = {name: role for name, role in TENSORS.items() if "_proj.bias" not in name or "self_attn" in name}
_TENSORS |= {"layers.{b}.self_attn.o_proj.bias": "b_O"}
_COMMON: Fields = {name: entry for name, entry in DECODER.items() if name not in ("hidden_act", "mlp_bias")} | {
    "tie_word_embeddings": TIED,
    "max_position_embeddings": used("T, unless it is given", 8192),
    "use_bidirectional_attention": neutral("which keys a query sees is a mask: masks may be any (L7)"),
    "cache_implementation": neutral("keys and values kept from earlier tokens are those computed again"),
}

GEMMA = replace(
    LLAMA,
    name="gemma",
    model_types=("gemma",),
    tensors=_TENSORS,
    architecture=_gemma,
    fields=_COMMON
    | {
        "hidden_act": used("activation of the gated part; gelu stands for its tanh form", "gelu_pytorch_tanh"),
        "hidden_activation": only("releases differ in which of two words they read", None, "gelu_pytorch_tanh"),
    },
    scales={"embedding": _embedding_scale},
)

GEMMA2 = replace(
    GEMMA,
    name="gemma2",
    model_types=("gemma2",),
    tensors={
        **{name: role for name, role in _TENSORS.items() if "layernorm" not in name},
        "layers.{b}.input_layernorm.weight": "norm_attention.gain",
        "layers.{b}.post_attention_layernorm.weight": "norm_attention_out.gain",
        "layers.{b}.pre_feedforward_layernorm.weight": "norm_ffn.gain",
        "layers.{b}.post_feedforward_layernorm.weight": "norm_ffn_out.gain",
    },
    architecture=_gemma2,
    fields=_COMMON
    | {name: entry for name, entry in WINDOW.items() if name != "max_window_layers"}
    | {
        "hidden_activation": used("activation of the gated part", "gelu_pytorch_tanh"),
        "hidden_act": only("its code reads hidden_activation", None, "gelu_pytorch_tanh"),
        "query_pre_attn_scalar": used("the temperature is its root", 256),
        "attn_logit_softcapping": used("the soft cap of scores; null: none", 50.0),
        "final_logit_softcapping": used("the soft cap of logits; null: none", 30.0),
    },
)
