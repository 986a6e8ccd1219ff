"""A checkpoint as a table of tensors, whose bytes are fetched at their first use and decoded exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.norms.matrix import Floats, Native, Stored, check_finite

Array = NDArray[Any]
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
STORED: Mapping[str, np.dtype[Any]] = {
    **{name: np.dtype(name).newbyteorder("<") for name in (*_FLOATS[:3], *_INTEGERS)},
    "bfloat16": np.dtype("<u2"),
    "bool": np.dtype("?"),
}
"""How each type of number is stored; NumPy has no bfloat16, so its bits are read. Floats of 8 bits are codes
that a scale multiplies, and are refused."""
_LONGEST_NAME = 1000
_HOLD_BYTES = 256 << 20
"""A tensor that is larger than this as native floats is decoded afresh in every pass."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a checkpoint: its name, shape and type, and how to fetch it.

    Attributes:
        name: as in the checkpoint.
        shape: its shape.
        dtype: a key of `STORED`.
        fetch: returns the array as stored (memory-mapped where the format allows), of that shape.
        storage: tensors with the same storage are one parameter under two names.
        turned: whether a model reads its transpose, as torch.nn.Linear does: x -> x W^T.
        whole: the role of the stored tensor, where this is a part of it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], Array] = field(repr=False, compare=False)
    storage: str = ""
    turned: bool = False
    whole: str = ""

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its numbers are floats (others are buffers, not weights)."""
        return self.dtype in _FLOATS


@dataclass(frozen=True)
class Checkpoint:
    """Named tensors, and what else a checkpoint says of its model.

    Attributes:
        where: what the user pointed at.
        tensors: by name.
        config: config.json, or {}.
        doubts: files next to the weights that say that the model is another.
        buffers: names that the module registers as buffers, which are never weights.
    """

    where: str
    tensors: Mapping[str, Tensor]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    doubts: tuple[str, ...] = ()
    buffers: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Numbers in all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())

    def __post_init__(self) -> None:
        if not self.tensors:
            raise CheckpointError(f"{self.where} holds no tensors: point at the weights of a trained model")
        for name in self.tensors:  # names go into tables and errors, which stay of one line
            if not name.isprintable() or len(name) > _LONGEST_NAME:
                raise CheckpointError(f"{self.where} names a tensor {name!r:.80}: not a name; fetch the file again")


def to_float(stored: Array, dtype: str) -> NDArray[np.float32] | Floats:
    """The same numbers in the narrowest native type that holds each exactly: float32, or float64."""
    if dtype not in _FLOATS:
        raise CheckpointError(f"{dtype} is not a type of weights")
    if dtype == "bfloat16":
        wide = stored.astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    return np.asarray(stored, np.float64) if dtype == "float64" else np.asarray(stored, np.float32)


def read(tensor: Tensor) -> NDArray[np.float32] | Floats:
    """A whole tensor, exactly, checked to be finite."""
    values = to_float(tensor.fetch(), tensor.dtype)
    check_finite(values, tensor.name)
    return values


def stored(tensor: Tensor) -> Stored:
    """A tensor as a matrix: what follows its first dimension is one."""
    array, dtype = tensor.fetch(), tensor.dtype
    if dtype not in ("float64", "float32") and 4 * tensor.size <= _HOLD_BYTES:
        array, dtype = to_float(array, dtype), "float32"
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    array = array if array.ndim == 2 else array.reshape(rows, columns)

    def block(rows: slice, columns: slice) -> Native:
        return to_float(array[rows, columns], dtype)

    return Stored((rows, columns), block, tensor.name)
