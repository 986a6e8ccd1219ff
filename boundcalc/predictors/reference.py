"""Weights that were there before the data: drawn from a seed, the same bits everywhere; or a checkpoint, by its digest."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import object_of, sha256_text
from boundcalc.predictors.data import Array, digest_of_arrays
from boundcalc.predictors.statements import positive_count, real

LAWS = ("uniform", "normal", "constant")


@dataclass(frozen=True, slots=True)
class Law:
    """How one tensor starts.

    Attributes:
        shape: of the tensor.
        law: uniform on [-scale, scale]; normal (a sum of twelve uniforms) of deviation scale; constant.
        scale: see law.
    """

    shape: tuple[int, ...]
    law: str
    scale: float

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
    checkpoint: str | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the tensors, by name."""
        return {name: law.shape for name, law in self.laws.items()}

    def weights(self, seed: int, arrays: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The tensors in float64; of a checkpoint they must be given, and are compared."""
        if self.checkpoint is None:
            return {name: law.draw(f"boundcalc reference {seed} {name}") for name, law in self.laws.items()}
        if arrays is None:
            raise CertificateError(
                "the reference is a checkpoint, which is needed to decode: give its arrays, verify_predictor(certificate, "
                f"data, ...) with a network that has them (sha256 {self.checkpoint})"
            )
        if digest_of_arrays(arrays) != self.checkpoint:
            raise CertificateError("these are not the reference weights of the certificate: their sha256 differs")
        return {name: np.asarray(arrays[name], dtype=np.float64) for name in self.laws}

    @classmethod
    def of_checkpoint(cls, arrays: Mapping[str, Array]) -> Reference:
        """Relative to given weights, of a public model say."""
        laws = {name: Law(tuple(value.shape), "constant", 0.0) for name, value in arrays.items()}
        return cls(laws, digest_of_arrays(arrays))

    def to_json(self) -> dict[str, Any]:
        """As a certificate has it."""
        laws = {name: [list(law.shape), law.law, law.scale] for name, law in self.laws.items()}
        return {"tensors": [[name, *law] for name, law in laws.items()], "checkpoint": self.checkpoint}

    @classmethod
    def from_json(cls, data: object) -> Reference:
        """Read strictly."""
        raw = object_of("the reference", data, ("tensors", "checkpoint"))
        if not isinstance(raw["tensors"], list | tuple) or not raw["tensors"]:
            raise CertificateError("a reference lists its tensors")
        laws: dict[str, Law] = {}
        for entry in cast("list[Any]", raw["tensors"]):
            if not isinstance(entry, list | tuple) or len(entry) != 4 or not isinstance(entry[0], str):
                raise CertificateError(f"a tensor of a reference is [name, shape, law, scale], got {entry!r}")
            name, shape, law, scale = entry
            if not isinstance(shape, list | tuple) or not shape or name in laws or law not in LAWS:
                raise CertificateError(f"a tensor of a reference is [name, shape, law, scale], got {entry!r}")
            sizes = tuple(positive_count(f"a size of {name}", size) for size in shape)
            if math.prod(sizes) > _MOST:
                raise CertificateError(f"{name} has {math.prod(sizes)} numbers: at most {_MOST} are read")
            laws[name] = Law(sizes, law, real(f"scale of {name}", scale))
        digest = raw["checkpoint"]
        return cls(laws, None if digest is None else sha256_text("the checkpoint of the reference", digest))


_MOST = 2**31
