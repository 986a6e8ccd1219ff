"""Stored numbers as native floats, exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import FLOATS, Array, Tensor
from boundcalc.norms.matrix import Floats, Native, Stored, check_finite


def to_float(stored: Array, dtype: str) -> NDArray[np.float32] | Floats:
    """The same numbers in the narrowest native type that holds each exactly: float32, or float64."""
    if dtype == "float64":
        return np.asarray(stored, np.float64)
    if dtype == "bfloat16":
        wide = stored.astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    if dtype in FLOATS:
        return np.asarray(stored, np.float32)
    raise CheckpointError(f"{dtype} is not a type of weights")


def read(tensor: Tensor) -> NDArray[np.float32] | Floats:
    """A whole tensor, exactly, checked to be finite."""
    values = to_float(tensor.fetch(), tensor.dtype)
    check_finite(values, tensor.name)
    return values


_HOLD_BYTES = 256 << 20
"""A tensor that is larger than this as native floats is decoded afresh in every pass."""


def stored(tensor: Tensor) -> Stored:
    """A tensor of two dimensions."""
    array = tensor.fetch()
    dtype = tensor.dtype
    width = 8 if dtype == "float64" else 4
    if dtype not in ("float64", "float32") and tensor.size * width <= _HOLD_BYTES:
        array, dtype = to_float(array, dtype), "float64" if width == 8 else "float32"

    def block(rows: slice, columns: slice) -> Native:
        return to_float(array[rows, columns], dtype)

    shape = tensor.shape if len(tensor.shape) == 2 else (tensor.shape[0], math.prod(tensor.shape[1:]))
    if len(tensor.shape) != 2:
        array = array.reshape(shape)
    return Stored(shape, block, tensor.name)  # type: ignore[arg-type]
