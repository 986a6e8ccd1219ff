"""Named architectures, with the sizes they are usually meant with."""

from __future__ import annotations

from typing import Any

from boundcalc.base import validate
from boundcalc.setting.architecture import Architecture

_TRANSFORMER: dict[str, Any] = {"residual": True, "normalisation": "layernorm"}

PRESETS: dict[str, dict[str, Any]] = {
    "edelman": {},
    "bert": _TRANSFORMER
    | {"style": "post", "depth": 12, "d": 768, "heads": 12, "activation": "gelu", "eps": 1e-12, "bias": True}
    | {"vocabulary": 30522, "positions": "learned", "embedding_norm": True, "pooler": True},
    "gpt2": _TRANSFORMER
    | {"style": "pre", "depth": 12, "d": 768, "heads": 12, "activation": "gelu_tanh", "bias": True, "causal": True}
    | {"seq_len": 1024, "vocabulary": 50257, "positions": "learned"},
    "llama": _TRANSFORMER
    | {"style": "pre", "depth": 32, "d": 4096, "heads": 32, "d_ff": 11008, "activation": "silu", "gated": True}
    | {"normalisation": "rmsnorm", "rope": True, "causal": True, "seq_len": 4096, "vocabulary": 32000},
    "vit": _TRANSFORMER
    | {"style": "pre", "depth": 12, "d": 768, "heads": 12, "activation": "gelu", "eps": 1e-6, "bias": True}
    | {"seq_len": 197, "d_patch": 768, "input_radius": 28.0, "positions": "learned", "classes": 1000},
}
"""Fields in which each preset differs from the default architecture (which is `edelman`).

`vit`: 16 x 16 patches of three channels in [-1, 1] have norm at most sqrt(768) < 28.
"""


def preset(name: str, **changes: Any) -> Architecture:
    """A preset, with some fields changed."""
    validate.choice("preset", name, PRESETS)
    return Architecture(**(PRESETS[name] | changes))
