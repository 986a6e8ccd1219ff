"""A checkpoint as a table of tensors, whose bytes are fetched at their first use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints.errors import CheckpointError

Array = NDArray[Any]

STORED: Mapping[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "int16": np.dtype("<i2"),
    "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"),
    "uint16": np.dtype("<u2"),
    "uint32": np.dtype("<u4"),
    "uint64": np.dtype("<u8"),
    "bool": np.dtype("?"),
}
"""How each type of number is stored; NumPy has no bfloat16, so its bits are read. Floats of 8 bits are codes
that a scale multiplies, and are refused."""

FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a checkpoint: its name, shape and type, and how to fetch it.

    Attributes:
        name: as in the checkpoint.
        shape: its shape.
        dtype: a key of `STORED`.
        fetch: returns the array as stored (memory-mapped where the format allows), of that shape.
        storage: tensors with the same storage are one parameter under two names.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], Array] = field(repr=False, compare=False)
    storage: str = ""

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes as stored."""
        return self.size * STORED[self.dtype].itemsize

    @property
    def is_float(self) -> bool:
        """Whether its numbers are floats (others are buffers, not weights)."""
        return self.dtype in FLOATS


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


_LONGEST_NAME = 1000


@contextmanager
def sound(path: Path, kind: str) -> Iterator[None]:
    """Reads a file of which any byte may be damaged: whatever a library raises becomes one clear line."""
    try:
        yield
    except BoundcalcError:
        raise
    except Exception as error:
        text = ascii(str(error))[1:-1]
        why = text if len(text) <= 100 else text[:100] + "..."
        raise CheckpointError(f"{path} is not a whole {kind} ({type(error).__name__}: {why}); fetch it again") from None


_SMALL = 1 << 16


def mapped(path: Path, offset: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """A read-only view of part of a file. The map is this tensor's own: when it goes, its pages go.

    What is smaller than a few pages is read instead, which takes less than a map.
    """
    stored = STORED[dtype]
    size = math.prod(shape) * stored.itemsize
    if size == 0:
        return np.zeros(shape, stored)
    if size <= _SMALL:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            return np.frombuffer(file.read(size), stored).reshape(shape)
    return np.memmap(path, dtype=stored, mode="r", offset=offset, shape=shape)
