"""Which layers G11 was proved for; here, apart from the rules of layers, as whoever reads a certificate asks it too."""

from __future__ import annotations

from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    Residual,
    Setting,
)
from boundcalc.setting.layer import flat

_PROVED = frozenset(
    (Linear, Activation, Ball, LayerNorm, Attention, GatedFeedForward, Embedding, Hidden, Lookup, Pool, Residual)
)


def unknown_layer(setting: Setting) -> str | None:
    """The label of a layer that G11 was not proved for, or None."""
    found = next((layer for layer in flat(setting.architecture.stages) if not _met(layer)), None)
    return None if found is None else repr(found.label)


def _met(layer: Layer) -> bool:
    """Not with options that came later (L10-L14, L9 with offsets)."""
    later = ("around_one", "cap", "qk_eps") + (("bias",) if isinstance(layer, GatedFeedForward) else ())
    plain = not any(getattr(layer, name, None) for name in later)
    return plain and type(layer) in _PROVED and getattr(layer, "offsets", "none") == "none"
