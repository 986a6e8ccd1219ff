"""What a checkpoint's tensors compute when they are put together as its architecture says.

What a module's own forward pass is compared with (`parity`), and what answers for a checkpoint where no module is at
hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.layers import NUMPY, Rows
from boundcalc.checkpoints.maps import heads_of, offsets_of, trained_query
from boundcalc.checkpoints.tasks import positions
from boundcalc.checkpoints.tensors import read
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
        values = self._trained(weights[kind]) if kind in weights else self._not_trained(kind)
        factor = self.model.factor(kind, layer.where()) if kind in weights else 1
        return values if factor == 1 else factor * values

    def _not_trained(self, kind: str) -> Rows:
        held = self.model.place(kind).tensor if self.model.has(kind) else self.model.checkpoint.tensors.get(kind)
        if held is None:
            raise InvalidSetting(f"{self.model.checkpoint.where} does not hold the fixed {kind} it was trained with")
        return np.asarray(read(held).reshape(held.shape[-2:]), np.float64)[: self.seq_len]

    def _trained(self, weight: Weight) -> Rows:
        """One tensor, of the block or of all, perhaps with a dimension for heads; or heads side by side."""
        kind, model = weight.kind, self.model
        block = weight.block if model.has(kind, weight.block) or not model.has(kind) else None
        if kind == "positions":
            return positions(model, model.first_position, self.seq_len)
        if kind == "q":
            return trained_query(model, block or 0, weight.copies)
        if weight.heads or weight.copies > 1:
            shape = (weight.copies, *weight.shape)
            if model.has(kind, block) and model.place(kind, block).tensor.shape == shape:
                return np.asarray(read(model.place(kind, block).tensor), np.float64)
            if len(weight.shape) > 1:
                return heads_of(model, kind, block, weight.copies).swapaxes(1, 2)
            offsets = offsets_of(model, kind, block, weight.copies)
            if offsets is None and kind == "b_K":
                raise InvalidSetting("the keys' offsets are read under this normaliser, but were not found")
            return np.zeros((weight.copies, 1)) if offsets is None else offsets
        if weight.role in ("vector", "gain"):
            return np.asarray(model.vector(kind, block), np.float64)
        return np.asarray(model.matrix(kind, block).finite(slice(None), slice(None)), np.float64)
