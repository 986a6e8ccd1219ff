"""Randomness that a record can name: streams derived from a seed, in NumPy or on a torch device.

A task's law is written once, for arrays of either kind. The two kinds give different numbers for one seed;
each gives the same ones again.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol

import numpy as np


def substream(seed: int, *labels: str | int) -> int:
    """A seed of its own for every purpose: no two uses of one trial share a stream."""
    text = json.dumps([seed, *labels])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class Source(Protocol):
    """Where draws come from. Arrays are NumPy's or torch's: laws use only what both understand."""

    def uniform(self, *shape: int) -> Any:
        """Reals in [0, 1)."""
        ...

    def normal(self, *shape: int) -> Any:
        """Standard normal reals."""
        ...

    def bits(self, *shape: int) -> Any:
        """Fair bits, as small integers."""
        ...

    def integers(self, below: int, *shape: int) -> Any:
        """Integers in [0, below)."""
        ...

    def permutation(self, n: int) -> Any:
        """A uniform order of 0..n-1."""
        ...

    def array(self, values: Any) -> Any:
        """Given numbers, as an array of this source."""
        ...


class NumpySource:
    """Draws as NumPy arrays."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def uniform(self, *shape: int) -> Any:
        return self._rng.random(shape, dtype=np.float32)

    def normal(self, *shape: int) -> Any:
        return self._rng.standard_normal(shape, dtype=np.float32)

    def bits(self, *shape: int) -> Any:
        return self._rng.integers(0, 2, shape, dtype=np.uint8)

    def integers(self, below: int, *shape: int) -> Any:
        return self._rng.integers(0, below, shape, dtype=np.int64)

    def permutation(self, n: int) -> Any:
        return self._rng.permutation(n)

    def array(self, values: Any) -> Any:
        return np.asarray(values)


class TorchSource:
    """Draws as torch tensors, made on their device."""

    def __init__(self, seed: int, device: Any = "cpu") -> None:
        import torch

        self._torch = torch
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device)
        self.generator.manual_seed(seed)

    def _options(self) -> dict[str, Any]:
        return {"generator": self.generator, "device": self.device}

    def uniform(self, *shape: int) -> Any:
        return self._torch.rand(shape, **self._options())

    def normal(self, *shape: int) -> Any:
        return self._torch.randn(shape, **self._options())

    def bits(self, *shape: int) -> Any:
        return self._torch.randint(0, 2, shape, dtype=self._torch.uint8, **self._options())

    def integers(self, below: int, *shape: int) -> Any:
        return self._torch.randint(0, below, shape, **self._options())

    def permutation(self, n: int) -> Any:
        return self._torch.randperm(n, **self._options())

    def array(self, values: Any) -> Any:
        return self._torch.as_tensor(np.asarray(values), device=self.device)
