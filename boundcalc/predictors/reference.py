"""Weights that were there before the data: drawn from a seed, or a checkpoint by its digest."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.schema import Size, check_fields
from boundcalc.predictors.data import Array, Digest, digest_of_arrays

_MOST = 2**31


@dataclass(frozen=True, slots=True)
class Law:
    """How one tensor starts.

    Attributes:
        shape: of the tensor.
        law: uniform on [-scale, scale]; normal (a sum of twelve uniforms) of deviation scale; constant.
        scale: see law.
    """

    shape: tuple[Size, ...]
    law: Literal["uniform", "normal", "constant"]
    scale: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.shape or math.prod(self.shape) > _MOST:
            raise InvalidSetting(f"a tensor has at least one size and at most {_MOST} numbers, got {self.shape}")

    def draw(self, label: str) -> Array:
        """The tensor: whole numbers out of SHAKE-256 of a label, and float64 operations that round in one way only."""
        count = math.prod(self.shape)
        if self.law == "constant":
            return np.full(self.shape, self.scale)
        if self.law == "uniform":
            places = np.frombuffer(hashlib.shake_256(label.encode()).digest(4 * count), dtype="<u4")
            return (((2 * places.astype(np.float64) + 1) / 2**32 - 1) * self.scale).reshape(self.shape)
        words = np.frombuffer(hashlib.shake_256(label.encode()).digest(24 * count), dtype="<u2").reshape(count, 12)
        sums = 2 * words.astype(np.int64).sum(1) - 12 * 65535
        return (sums.astype(np.float64) / 2**17).reshape(self.shape) * self.scale


@dataclass(frozen=True)
class Reference:
    """What updates are relative to: fixed before the data.

    Attributes:
        laws: of the tensors, by name.
        checkpoint: digest of the tensors they are instead, where they are not drawn.
    """

    laws: Mapping[str, Law]
    checkpoint: Digest | None = None

    def __post_init__(self) -> None:
        if not self.laws:
            raise InvalidSetting("a reference lists its tensors")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensors, by name."""
        return {name: law.shape for name, law in self.laws.items()}

    def weights(self, seed: int, arrays: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The tensors in float64; of a checkpoint they must be given, and are compared."""
        if self.checkpoint is None:
            return {name: law.draw(f"boundcalc reference {seed} {name}") for name, law in self.laws.items()}
        if arrays is None:
            raise CertificateError(
                "the reference is a checkpoint, which is needed to decode: give its arrays, "
                f"verify_predictor(certificate, data, ...) with a network that has them (sha256 {self.checkpoint})"
            )
        if digest_of_arrays(arrays) != self.checkpoint:
            raise CertificateError("these are not the reference weights of the certificate: their sha256 differs")
        return {name: np.asarray(arrays[name], dtype=np.float64) for name in self.laws}

    @classmethod
    def of_checkpoint(cls, arrays: Mapping[str, Array]) -> Reference:
        """Relative to given weights, of a public model say."""
        laws = {name: Law(tuple(value.shape), "constant", 0.0) for name, value in arrays.items()}
        return cls(laws, digest_of_arrays(arrays))
