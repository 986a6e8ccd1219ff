"""What a checkpoint's tensors compute when they are put together as its architecture says.

What a module's own forward pass is compared with (`parity`), and what answers for a checkpoint where no module is at
hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.layers import NUMPY, Rows
from boundcalc.checkpoints.maps import heads_of, offsets_of, trained_query
from boundcalc.checkpoints.tasks import positions
from boundcalc.layers.forward import Fixed, Forward, Step
from boundcalc.setting import Architecture, Layer, Weight


class Network:
    """A checkpoint run by its architecture."""

    def __init__(self, model: Model, architecture: Architecture, fixed: Fixed | None = None) -> None:
        self.architecture, self.fixed = architecture, fixed or Fixed()
        self.arrays = Tensors(model, architecture)

    def __call__(self, x: Any) -> Rows:
        """Outputs (n, classes) for tokens (n, T), or for rows (n, T, d)."""
        return self._run(x, Forward(NUMPY, self.arrays, self.fixed))

    def trace(self, x: Any, *, every_row: bool) -> tuple[Rows, list[Step]]:
        """The outputs, and every layer in the order they run.

        With `every_row`, no row is picked before the read-out.
        """
        steps: list[Step] = []
        return self._run(x, Forward(NUMPY, self.arrays, self.fixed, every_row=every_row, steps=steps)), steps

    def _run(self, x: Any, forward: Forward) -> Rows:
        values = np.asarray(x)
        out = forward(self.architecture.stages, values if values.ndim == 2 else values.astype(np.float64))
        return out[:, 0] if out.shape[1] == 1 else out


class Tensors:
    """The arrays of layers, as a checkpoint's tensors hold them."""

    def __init__(self, model: Model, architecture: Architecture) -> None:
        self.model, self.seq_len = model, architecture.seq_len

    def has(self, layer: Layer, kind: str) -> bool:
        """Whether there is a tensor of its own for them."""
        return self.model.has(kind, layer.where())

    def __call__(self, layer: Layer, kind: str) -> Rows:
        """The array of one kind, times the constant that the model multiplies it by."""
        weights = {part.kind: part for weight in layer.weights(self.seq_len) for part in weight.all}
        if kind not in weights:
            return self._not_trained(kind)
        values = self._trained(layer, weights[kind])
        factor = self.model.factor(kind, layer.where())
        return values if factor == 1 else factor * values

    def _trained(self, layer: Layer, weight: Weight) -> Rows:
        kind = weight.kind
        if weight.heads or weight.copies > 1:
            return self._of_heads(weight)
        if kind == "positions":
            return positions(self.model, self.model.first_position, self.seq_len)
        if weight.role in ("vector", "gain"):
            alone = weight.block is None or self.has(layer, kind) or not self.model.has(kind)
            return np.asarray(self.model.vector(kind, weight.block if alone else None), np.float64)
        return self._matrix(kind, weight.block)

    def _not_trained(self, kind: str) -> Rows:
        if self.model.has(kind):
            table = read(self.model.place(kind).tensor)
            return np.asarray(table.reshape(table.shape[-2:]), np.float64)[: self.seq_len]
        table = self.model.checkpoint.tensors.get(kind)
        if table is None:
            where = self.model.checkpoint.where
            raise InvalidSetting(f"{where} does not hold the fixed {kind} it was trained with")
        return np.asarray(read(table), np.float64)

    def _of_heads(self, weight: Weight) -> Rows:
        """One tensor with a dimension for heads; or heads side by side, perhaps in one tensor for all three maps."""
        kind, block = weight.kind, weight.block
        if self.model.has(kind, block):
            tensor = self.model.place(kind, block).tensor
            if len(tensor.shape) > len(weight.shape):
                return np.asarray(read(tensor), np.float64)
        if kind == "q":
            return trained_query(self.model, block or 0, weight.copies)
        if len(weight.shape) > 1:
            return heads_of(self.model, kind, block, weight.copies).swapaxes(1, 2)
        offsets = offsets_of(self.model, kind, block, weight.copies)
        if offsets is None and kind == "b_K":
            raise InvalidSetting("the keys' offsets are read under this normaliser, but were not found")
        return np.zeros((weight.copies, 1)) if offsets is None else offsets

    def _matrix(self, kind: str, block: int | None = None) -> Rows:
        tied = kind == "readout" and not self.model.has(kind)
        matrix, transposed = self.model.matrix("embedding" if tied else kind, block)
        values = np.asarray(matrix.finite(slice(None), slice(None)), np.float64)
        return values.T if transposed != tied else values
