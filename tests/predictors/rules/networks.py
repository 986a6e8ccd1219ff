"""Small networks on bits, with weights drawn or set by hand, and their values by definition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.setting import Architecture


def architecture(
    T: int, d: int = 8, heads: int = 2, d_ff: int = 12, activation: str = "gelu", **more: object
) -> Architecture:
    """The kind of network that rules are proved of."""
    fields: dict[str, object] = {
        "depth": 1,
        "seq_len": T + 1,
        "heads": heads,
        "d": d,
        "d_ff": d_ff,
        "style": "post",
        "activation": activation,
        "normalisation": "none",
        "residual": True,
        "bias": True,
        "vocabulary": 3,
        "own_row": 2,
        "positions": "learned",
    }
    return Architecture(**{**fields, **more})  # type: ignore[arg-type]


def drawn(a: Architecture, seed: int, size: float = 0.5) -> dict[str, Array]:
    """Weights for it, float32; gains around 1."""
    g = np.random.default_rng(seed)
    T, d, h, f = a.seq_len - 1, a.d, a.heads, a.d_ff
    norms = [f"norm_{name}" for name in ("attention.{}[0]", "ffn.{}[0]", "final.{}")[: 3 if a.style == "pre" else 2]]
    parts = {"none": (), "rmsnorm": ("gain",), "layernorm": ("gain", "offset")}[a.normalisation]
    shapes = {
        "embedding": (3, d),
        "positions": (T + 1, d),
        **dict.fromkeys(("W_Q[0]", "W_K[0]", "W_V[0]"), (h, d, d // h)),
        **dict.fromkeys(("b_Q[0]", "b_K[0]", "b_V[0]"), (h, d // h)),
        "W_O[0]": (d, d),
        "b_O[0]": (d,),
        "W_1[0]": (d, f),
        "b_1[0]": (f,),
        "W_2[0]": (f, d),
        "b_2[0]": (d,),
        "readout": (d, 1),
        "b_readout": (1,),
        **{norm.format(part): (d,) for norm in norms for part in parts},
    }
    weights = {name: (size * g.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    return {name: value + np.float32("gain" in name) for name, value in weights.items()}


def looking_at(T: int, positions: Sequence[int], seed: int = 1, strength: float = 6.0, **more: object):
    """A network whose first head looks at these positions, with small random weights besides; above 0 where one shows
    1."""
    a = architecture(T, **more)  # type: ignore[arg-type]
    w = drawn(a, seed, 0.05 if len(positions) > 1 else 0.2)
    for position in positions:
        w["positions"][position + 1, 0] += 1
    w["embedding"][0, 1] -= 1
    w["embedding"][1, 1] += 1
    w["W_K[0]"][0, 0, 0] += 1
    w["b_Q[0]"][0, 0] += 2 * strength
    w["W_V[0]"][0, 1, 0] += 1
    w["W_O[0]"][0, 2] += 1
    w["readout"][2, 0] += 4
    w["b_readout"][:] = 4.0 * (len(positions) - 1) / len(positions)
    return a, w


@cache
def all_inputs(T: int) -> Array:
    """All rows of T bits."""
    return np.array(list(itertools.product((0, 1), repeat=T)))
