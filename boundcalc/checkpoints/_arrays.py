"""The arrays of a model's weights as its forward pass multiplies by them: one road for norms and the forward check."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import TOKENS, Model
from boundcalc.checkpoints.tensors import read
from boundcalc.norms.matrix import Floats, Stored, check_finite
from boundcalc.setting import Layer, Weight


def _heads_of(model: Model, kind: str, block: int | None, count: int, only: slice = slice(None)) -> Floats:
    """Maps of some of a block's heads: (heads, width, d), the transposes of x -> x W."""
    tensor = model.place(kind, block)
    if len(tensor.shape) == 3:  # boundcalc's own: (heads, d, width)
        return np.ascontiguousarray(np.asarray(read(tensor)[only], np.float64).transpose(0, 2, 1))
    matrix = model.matrix(kind, block)
    width, rest = divmod(matrix.shape[1], count)
    if rest:
        raise CheckpointError(f"{matrix.name}: {matrix.shape[1]} outputs do not make {count} heads")
    first, last, _ = only.indices(count)
    values = np.ascontiguousarray(matrix.block(slice(None), slice(first * width, last * width)).T, np.float64)
    check_finite(values, matrix.name)  # as it lies in one piece, where that is quick
    return values.reshape(last - first, -1, values.shape[1])


VECTORS = ("vector", "gain", "factor vector")
"""Roles of weights that are no matrices."""


def values_of(model: Model, weight: Weight, only: slice = slice(None)) -> Any:
    """What is stored of one weight: vectors (copies, width), maps of some heads, or a matrix."""
    key = model.key(weight)
    if weight.role in VECTORS:
        return np.asarray(model.vector(*key), np.float64).reshape(weight.copies, -1)[only]
    return _heads_of(model, *key, weight.copies, only) if weight.heads else model.matrix(*key)


def positions(model: Model, seq_len: int, d: int) -> Floats:
    """The rows that are added to the input, with their factor, tokens before it and the patch offset folded in.

    Entries are then rounded at most twice, which `Measured.widened` allows for.
    """
    first = model.first_position
    rows = read(model.place("positions")).reshape(model.table_shape("positions"))[first : first + seq_len]
    if rows.shape != (seq_len, d):
        raise CheckpointError(f"the table positions should be {(seq_len, d)}, the file has {rows.shape}")
    rows = np.array(rows, np.float64) * model.factor("positions")
    for row, token in enumerate([token for token in TOKENS if model.has(token)][:seq_len]):
        parts = [rows[row], np.asarray(model.vector(token), np.float64)]
        if model.has("b_patch"):
            parts.append(-np.asarray(model.vector("b_patch"), np.float64))
        rows[row] = [math.fsum(entries) for entries in zip(*parts, strict=True)]
    return rows


def difference(a: Any, b: Any, room: float = 0.0) -> Any:
    """A difference in float64; each entry is rounded once, which `Measured.widened` allows for.

    Entries are moved away from zero by `room` times the sizes of both, for what was rounded before.
    """
    if a.shape != b.shape:
        raise CheckpointError(f"the reference has an array of shape {b.shape} where the model has {a.shape}")
    if not isinstance(a, Stored):
        first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
        far = first - second
        return far + np.copysign(room * (np.abs(first) + np.abs(second)), far) if room else far
    if a.base is not None and b.base is not None:
        return difference(a.base, b.base, room).turned
    return Stored(a.shape, lambda rows, columns: difference(a.finite(rows, columns), b.finite(rows, columns), room))


class Arrays:
    """The arrays of layers, as a forward pass asks for them."""

    def __init__(self, model: Model, seq_len: int) -> None:
        self.model, self.seq_len = model, seq_len

    def has(self, layer: Layer, kind: str) -> bool:
        """Whether there is a tensor of its own for them."""
        return self.model.has(kind, layer.where())

    def __call__(self, layer: Layer, kind: str) -> Floats:
        """The array of one kind, times the constant that the model multiplies it by."""
        model = self.model
        weight = next((part for own in layer.weights(self.seq_len) for part in own.all if part.kind == kind), None)
        if weight is None:
            return self._not_trained(kind)
        if kind == "positions":
            return positions(model, *weight.shape)
        values = values_of(model, weight)
        if isinstance(values, Stored):
            values = np.asarray(values.finite(slice(None), slice(None)), np.float64)
        elif not weight.heads:
            values = values[0]
        elif weight.role not in VECTORS:
            values = values.swapaxes(1, 2)
        return values * model.factor(*model.key(weight))

    def _not_trained(self, kind: str) -> Floats:
        tensor = self.model.place(kind) if self.model.has(kind) else self.model.checkpoint.tensors.get(kind)
        if tensor is None:
            raise InvalidSetting(f"{self.model.checkpoint.where} does not hold the fixed {kind} it was trained with")
        return np.asarray(read(tensor).reshape(tensor.shape[-2:]), np.float64)[: self.seq_len]
