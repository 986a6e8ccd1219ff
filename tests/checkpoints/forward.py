"""What a checkpoint's tensors compute when they are put together as its architecture says: the reference that a
model of the library is held against. In float64, written from the definitions of the layers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.families import Model
from boundcalc.checkpoints.maps import head_maps
from boundcalc.checkpoints.tasks import positions
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Pool,
    Residual,
    SoftCap,
)
from tests.soundness.network import ACTIVATIONS

Rows = NDArray[np.float64]
Rotate = Callable[[Rows, int | None], Rows]
Added = Callable[[int], Rows]
Bucket = Callable[[int], NDArray[np.int64]]
Window = Callable[[int | None, int], NDArray[np.bool_]]


class Network:
    """A checkpoint run by its architecture."""

    def __init__(
        self,
        source: object,
        row: int = 0,
        rotate: Rotate | None = None,
        added: Added | None = None,
        window: Window | None = None,
        bucket: Bucket | None = None,
        **options: Any,
    ) -> None:
        """`row` is the one that is pooled; `rotate` turns (heads, T, width) queries and keys of a block, as rotary
        positions do; `added` are the numbers (heads, T, T) that positions add to the scores of T rows; `window` says
        which keys each of T queries of a block may see, beside the causal mask; `bucket` is the number of each pair
        of T positions in a table of learned ones."""
        self.model: Model = open_model(source, **options)
        self.architecture: Architecture = self.model.family.architecture(self.model)
        self.row, self.rotate, self.added, self.window, self.bucket = row, rotate, added, window, bucket

    def __call__(self, tokens: Sequence[int] | Rows, segments: int = 0) -> Rows:
        """Logits of one sequence of tokens, or of rows."""
        self.segments = segments
        x = np.asarray(tokens, np.float64) if np.ndim(tokens) == 2 else np.asarray(tokens)
        return self._run(self.architecture.stages, x)[0]

    def _run(self, layers: Sequence[Layer], x: Any) -> Any:
        for layer in layers:
            x = self._apply(layer, x)
        return x

    def _matrix(self, kind: str, block: int | None = None) -> Rows:
        tied = kind == "readout" and not self.model.has(kind)
        place = self.model.place("embedding" if tied else kind, block)
        values = np.asarray(read(place.tensor), np.float64)
        values = values.reshape(len(values), -1)
        half = None if tied else self.model.role_of(kind, block)[1]
        if half is not None:
            values = np.split(values, 2, axis=0 if place.transposed else 1)[half]
        return self._scale(kind) * (values.T if place.transposed != tied else values)

    def _scale(self, kind: str) -> float:
        scale = self.model.family.scales.get(kind)
        return 1.0 if scale is None else scale(self.model)

    def _vector(self, kind: str, block: int | None = None) -> Rows:
        return self._scale(kind) * np.asarray(self.model.vector(kind, block), np.float64)

    def _apply(self, layer: Layer, x: Any) -> Any:
        if isinstance(layer, Residual):
            return sum(self._run(branch, x) for branch in layer.branches)
        if isinstance(layer, Linear):
            y = x @ self._matrix(layer.kind, layer.block)
            return y + self._vector(layer.bias, layer.block) if layer.bias else y
        if isinstance(layer, Activation):
            return ACTIVATIONS[layer.name](x)
        if isinstance(layer, Pool):
            return x[self.row][None] if layer.how == "cls" else x.mean(0)[None]
        if isinstance(layer, LayerNorm):
            y = x - x.mean(-1, keepdims=True) if layer.centred else x
            y = y / np.sqrt((y**2).mean(-1, keepdims=True) + layer.eps)
            y = y * (self._vector(f"{layer.kind}.gain", layer.block) + layer.around_one) if layer.gain else y
            return y + self._vector(f"{layer.kind}.offset", layer.block) if layer.offset else y
        if isinstance(layer, GatedFeedForward):
            gate, value, out = ((f"W_{i}", f"b_{i}") for i in (1, 3, 2))
            through = ACTIVATIONS[layer.activation](self._affine(x, *gate, layer)) * self._affine(x, *value, layer)
            return self._affine(through, *out, layer)
        if isinstance(layer, SoftCap):
            return layer.cap * np.tanh(x / layer.cap)
        if isinstance(layer, Embedding):
            return self._embedding(layer, x)
        assert isinstance(layer, Attention)
        return self._attention(layer, x)

    def _affine(self, x: Rows, kind: str, bias: str, layer: GatedFeedForward) -> Rows:
        y = x @ self._matrix(kind, layer.block)
        return y + self._vector(bias, layer.block) if layer.bias else y

    def _embedding(self, layer: Embedding, x: Any) -> Rows:
        y = self._matrix("embedding")[x] if layer.vocabulary else x
        if layer.positions == "learned":
            first = self.model.family.first_position(self.model)
            y = y + positions(self.model, first, self.architecture.seq_len)[: len(y)]
        return y + self._matrix("segments")[self.segments] if layer.segments else y

    def _attention(self, layer: Attention, x: Rows) -> Rows:
        maps = head_maps(self.model, layer, slice(0, layer.heads), slice(0, layer.groups), stacked=False)

        def through(w: Rows, b: Rows | None) -> Rows:
            y = np.einsum("td,hwd->htw", x, w)
            return y if b is None else y + b[:, None]

        per_group = layer.heads // layer.groups
        q, k, v = through(maps.q, maps.b_q), through(maps.k, maps.b_k), through(maps.v, maps.b_v)
        if layer.qk_norm != "none":
            q, k = (self._normalised(layer, y, kind) for y, kind in ((q, "norm_Q.gain"), (k, "norm_K.gain")))
        if self.rotate is not None:
            q, k = self.rotate(q, layer.block), self.rotate(k, layer.block)
        k, v = np.repeat(k, per_group, 0), np.repeat(v, per_group, 0)
        scores = q @ k.swapaxes(1, 2) / (layer.normaliser.temperature or 1.0)
        assert (layer.offsets == "fixed") == (self.added is not None)
        scores = scores if self.added is None else scores + self.added(len(x))
        if layer.buckets is not None:
            assert self.bucket is not None
            table = self.model.vector("score_offsets").reshape(layer.buckets, layer.heads)
            scores = scores + table[self.bucket(len(x))].transpose(2, 0, 1) / (layer.normaliser.temperature or 1.0)
        scores = scores if layer.cap is None else layer.cap * np.tanh(scores / layer.cap)
        if layer.causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -math.inf)
        if self.window is not None:
            scores = np.where(self.window(layer.block, len(x)), scores, -math.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.concatenate(list(weights @ v), axis=-1)

    def _normalised(self, layer: Attention, y: Rows, kind: str) -> Rows:
        """(heads, T, width), every head by itself or all of a row together."""
        together = (0, 2) if layer.qk_norm == "width" else (2,)
        y = y / np.sqrt((y**2).mean(together, keepdims=True) + layer.qk_eps)
        return y * self._vector(kind, layer.block).reshape(-1, 1, y.shape[2])
