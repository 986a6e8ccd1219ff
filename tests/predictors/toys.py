"""Learners whose risk is known exactly: thresholds on [0, 1], with and without noise in the labels."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.predictors.data import Array, Data


@dataclass
class Threshold:
    """Says 1 above the middle of the closest pair it has seen; x is uniform, the truth is x > 1/2, labels may be noisy.

    With `robust`, the middle of the means of both classes instead.
    """

    robust: bool = False

    @property
    def recipe(self) -> Mapping[str, Any]:
        return {"kind": "threshold", "robust": self.robust}

    @property
    def environment(self) -> Mapping[str, Any]:
        return {"numpy": np.__version__}

    def start(self, seed: int) -> float:
        return 0.1 + 0.01 * seed

    def fit(self, state: float, examples: Data, prefix: int) -> float:
        del prefix
        x, y = examples.x[:, 0], examples.y
        low = x[y == 0].mean() if self.robust and (y == 0).any() else x[y == 0].max(initial=0.0)
        high = x[y == 1].mean() if self.robust and (y == 1).any() else x[y == 1].min(initial=1.0)
        trace = (0.01 if self.robust else 0.02) * (state - 0.5)  # of seed and history, as training leaves one
        return float(low + high) / 2 + trace

    def scores(self, state: float, examples: Data) -> Array:
        return (examples.x[:, 0] - state) * np.where(examples.y == 1, 1.0, -1.0)

    def weights(self, state: float) -> Mapping[str, Array]:
        return {"threshold": np.array([state])}

    def dump(self, state: float) -> bytes:
        return pickle.dumps(state)

    def restore(self, data: bytes) -> float:
        return pickle.loads(data)


def draw(seed: int, n: int, noise: float = 0.0) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    y = (x[:, 0] > 0.5).astype(np.int64)
    flipped = rng.random(n) < noise
    return Data(x, np.where(flipped, 1 - y, y))


def risk(threshold: float, noise: float = 0.0) -> float:
    """Exact, on examples whose labels have this noise."""
    off = abs(threshold - 0.5)
    return off * (1 - noise) + (1 - off) * noise
