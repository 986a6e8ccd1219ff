"""Randomness that a record can name: streams derived from a seed, in NumPy or in torch."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def substream(seed: int, *labels: str | int) -> int:
    """A seed of its own for every purpose: no two uses of one trial share a stream."""
    text = json.dumps([seed, *labels])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class NumpySource:
    """Draws as NumPy arrays."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def uniform(self, *shape: int) -> Any:
        """Reals in [0, 1)."""
        return self._rng.random(shape, dtype=np.float32)

    def normal(self, *shape: int) -> Any:
        """Standard normal reals."""
        return self._rng.standard_normal(shape, dtype=np.float32)

    def bits(self, *shape: int) -> Any:
        """Fair bits, as small integers."""
        return self._rng.integers(0, 2, shape, dtype=np.uint8)

    def integers(self, below: int, *shape: int) -> Any:
        """Integers in [0, below)."""
        return self._rng.integers(0, below, shape, dtype=np.int64)

    def permutation(self, n: int) -> Any:
        """A uniform order of 0..n-1."""
        return self._rng.permutation(n)

    def array(self, values: Any) -> Any:
        """Numbers, as an array of this source."""
        return np.asarray(values)


class TorchSource:
    """The same as torch tensors: other numbers for one seed."""

    def __init__(self, seed: int) -> None:
        import torch

        self._torch = torch
        self._rng = torch.Generator().manual_seed(seed)

    def uniform(self, *shape: int) -> Any:
        return self._torch.rand(shape, generator=self._rng)

    def normal(self, *shape: int) -> Any:
        return self._torch.randn(shape, generator=self._rng)

    def bits(self, *shape: int) -> Any:
        return self._torch.randint(0, 2, shape, dtype=self._torch.uint8, generator=self._rng)

    def integers(self, below: int, *shape: int) -> Any:
        return self._torch.randint(0, below, shape, generator=self._rng)

    def permutation(self, n: int) -> Any:
        return self._torch.randperm(n, generator=self._rng)

    def array(self, values: Any) -> Any:
        return self._torch.as_tensor(np.asarray(values))


Source = NumpySource | TorchSource
"""Where laws of tasks draw from: they use only what arrays of both kinds understand."""
