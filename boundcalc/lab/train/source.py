"""Randomness that a record can name: streams derived from a seed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def substream(seed: int, *labels: str | int) -> int:
    """A seed of its own for every purpose: no two uses of one trial share a stream."""
    text = json.dumps([seed, *labels])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class Source:
    """Where laws of tasks draw from: torch tensors that follow from a seed. torch is imported when one is made."""

    def __init__(self, seed: int) -> None:
        import torch

        self._torch = torch
        self._rng = torch.Generator().manual_seed(seed)

    def uniform(self, *shape: int) -> Any:
        """Reals in [0, 1)."""
        return self._torch.rand(shape, generator=self._rng)

    def normal(self, *shape: int) -> Any:
        """Standard normal reals."""
        return self._torch.randn(shape, generator=self._rng)

    def bits(self, *shape: int) -> Any:
        """Fair bits, as small integers."""
        return self._torch.randint(0, 2, shape, dtype=self._torch.uint8, generator=self._rng)

    def integers(self, below: int, *shape: int) -> Any:
        """Integers in [0, below)."""
        return self._torch.randint(0, below, shape, generator=self._rng)

    def permutation(self, n: int) -> Any:
        """A uniform order of 0..n-1."""
        return self._torch.randperm(n, generator=self._rng)

    def array(self, values: Any) -> Any:
        """Numbers, as a tensor."""
        return self._torch.as_tensor(np.asarray(values))
