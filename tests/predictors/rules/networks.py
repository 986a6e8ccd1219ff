"""Small networks on bits, with weights drawn or set by hand, and their values by definition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.tables import _shapes_of
from boundcalc.setting import Architecture


def architecture(T: int, **more: Any) -> Architecture:
    """The kind of network that rules are proved of."""
    kind: dict[str, Any] = {"depth": 1, "style": "post", "normalisation": "none", "residual": True, "bias": True}
    kind |= {"vocabulary": 3, "own_row": 2, "positions": "learned", "activation": "gelu"}
    kind |= {"seq_len": T + 1, "heads": 2, "d": 8, "d_ff": 12}
    return Architecture(**{**kind, **more})


def drawn(a: Architecture, seed: int, size: float = 0.5) -> dict[str, Array]:
    """Weights for it, float32; gains around 1."""
    g, shapes = np.random.default_rng(seed), _shapes_of(a)
    weights = {name: (size * g.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    return {name: value + np.float32("gain" in name) for name, value in weights.items()}


def looking_at(T: int, positions: Sequence[int], seed: int = 1, strength: float = 6.0, **more: Any):
    """A network whose first head looks at these positions, with small random weights besides; above 0 where one shows
    1."""
    a = architecture(T, **more)
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
