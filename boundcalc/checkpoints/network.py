"""What a checkpoint's tensors compute when they are put together as its architecture says.

In float64, written from the definitions of the layers alone: what a module's own forward pass is held against
(`parity`), and what answers for a checkpoint where no module is at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.maps import head_maps
from boundcalc.checkpoints.tasks import positions
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Pool,
    Residual,
    SoftCap,
)
from boundcalc.setting.layer import Rules

Rows = NDArray[np.float64]

_ACTIVATIONS: Mapping[str, Callable[[Rows], Rows]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * expit(x),
    "quick_gelu": lambda x: x * expit(1.702 * x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "tanh": np.tanh,
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class Fixed:
    """What a forward pass needs beside the weights: fixed before the data, so that no bound reads it.

    Attributes:
        rotate: turns (..., heads, T, width) queries or keys of a block, as rotary positions do.
        added: the numbers (heads, T, T) that positions add to the scores of T rows.
        window: which keys each of T queries of a block may see, beside the causal mask.
        bucket: the number of each pair of T positions in a table of learned ones.
        segment: the type of every token.
        row: the row that a [CLS] read-out takes.
    """

    rotate: Callable[[Rows, int | None], Rows] | None = None
    added: Callable[[int], Rows] | None = None
    window: Callable[[int | None, int], NDArray[np.bool_]] | None = None
    bucket: Callable[[int], NDArray[np.int64]] | None = None
    segment: int = 0
    row: int = 0


@dataclass(frozen=True)
class Step:
    """A layer that has run: what it read, and what it made of it."""

    layer: Layer
    reads: Any
    makes: Any


_NOTHING = Fixed()


class Network:
    """A checkpoint run by its architecture."""

    def __init__(self, model: Model, architecture: Architecture, fixed: Fixed = _NOTHING) -> None:
        self.model, self.architecture, self.fixed = model, architecture, fixed
        self.every_row = False
        self._trace: list[Step] | None = None

    def __call__(self, x: Any) -> Rows:
        """Outputs (n, classes) for tokens (n, T), or for rows (n, T, d)."""
        values = np.asarray(x)
        out = self.run(self.architecture.stages, values if values.ndim == 2 else values.astype(np.float64))
        return out[:, 0] if out.shape[1] == 1 else out

    def trace(self, x: Any, *, every_row: bool) -> tuple[Rows, list[Step]]:
        """The outputs, and every layer in the order they run; with `every_row`, no row is picked before the read-out."""
        self._trace, self.every_row = [], every_row
        try:
            return self(x), self._trace
        finally:
            self._trace, self.every_row = None, False

    def run(self, layers: Sequence[Layer], x: Any) -> Any:
        """Layers one after the other."""
        for layer in layers:
            y = _RUNS.of(layer)(self, layer, x)
            if self._trace is not None:
                self._trace.append(Step(layer, x, y))
            x = y
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
        place = block if block is None or self.model.has(kind, block) or not self.model.has(kind) else None
        return self._scale(kind) * np.asarray(self.model.vector(kind, place), np.float64)

    def _residual(self, layer: Residual, x: Any) -> Any:
        return sum(self.run(branch, x) for branch in layer.branches)

    def _affine(self, x: Rows, kind: str, bias: str | None, block: int | None) -> Rows:
        y = x @ self._matrix(kind, block)
        return y + self._vector(bias, block) if bias else y

    def _gated(self, layer: GatedFeedForward, x: Rows) -> Rows:
        def through(x: Rows, number: int) -> Rows:
            return self._affine(x, f"W_{number}", f"b_{number}" if layer.bias else None, layer.block)

        return through(_ACTIVATIONS[layer.activation](through(x, 1)) * through(x, 3), 2)

    def _norm(self, layer: LayerNorm, x: Rows) -> Rows:
        y = x - x.mean(-1, keepdims=True) if layer.centred else x
        y = y / np.sqrt((y**2).mean(-1, keepdims=True) + layer.eps)
        y = y * (self._vector(f"{layer.kind}.gain", layer.block) + layer.around_one) if layer.gain else y
        return y + self._vector(f"{layer.kind}.offset", layer.block) if layer.offset else y

    def _pool(self, layer: Pool, x: Rows) -> Rows:
        if layer.how != "cls":
            return x.mean(1, keepdims=True)
        return x if self.every_row else x[:, self.fixed.row][:, None]

    def _embedding(self, layer: Embedding, x: Any) -> Rows:
        y = self._matrix("embedding")[x] if layer.vocabulary else x
        if layer.positions == "learned":
            first = self.model.family.first_position(self.model)
            rows = positions(self.model, first, self.architecture.seq_len)[: y.shape[1]]
            y = y + self._scale("positions") * rows
        elif layer.positions == "fixed":
            table = self.model.checkpoint.tensors.get("positions")
            if table is None:
                raise InvalidSetting(
                    f"{self.model.checkpoint.where} does not hold the fixed positions it was trained with"
                )
            y = y + read(table)[: y.shape[1]]
        return y + self._matrix("segments")[self.fixed.segment] if layer.segments else y

    def _attention(self, layer: Attention, x: Rows) -> Rows:
        values, scores = self._values_and_scores(layer, x)
        scores = scores / _temperature(layer)
        if (layer.offsets == "fixed") != (self.fixed.added is not None):
            raise InvalidSetting("the architecture and the forward pass disagree on numbers added to scores")
        scores = scores if self.fixed.added is None else scores + self.fixed.added(x.shape[1])
        if layer.buckets is not None:
            if self.fixed.bucket is None:
                raise InvalidSetting("nothing says which pair of positions has which learned number (Fixed.bucket)")
            table = self._vector("score_offsets", layer.block).reshape(layer.buckets, layer.heads)
            scores = scores + table[self.fixed.bucket(x.shape[1])].transpose(2, 0, 1) / _temperature(layer)
        scores = scores if layer.cap is None else layer.cap * np.tanh(scores / layer.cap)
        seen = np.ones((x.shape[1], x.shape[1]), dtype=bool)
        seen &= np.tri(x.shape[1], dtype=bool) if layer.causal else seen
        if self.fixed.window is not None:
            seen &= self.fixed.window(layer.block, x.shape[1])
        mixed = _normalised(layer.normaliser.name, scores, seen) @ values
        return mixed.sum(1) if layer.combine == "sum" else mixed.swapaxes(1, 2).reshape(*x.shape[:2], -1)

    def _values_and_scores(self, layer: Attention, x: Rows) -> tuple[Rows, Rows]:
        """(n, heads, T, width) and (n, heads, T, T), not yet divided."""
        per_group = layer.heads // layer.groups
        if layer.d_head is None:
            joint = np.asarray(read(self.model.place(layer.scores.kind, layer.block).tensor), np.float64)
            values = np.asarray(read(self.model.place("W_V", layer.block).tensor), np.float64)
            ones = np.ones((*x.shape[:2], 1))
            rows, columns = joint.shape[1] - layer.d, joint.shape[2] - layer.d
            asked = np.concatenate([x, ones], -1) if rows else x
            keys = np.concatenate([x, ones], -1) if columns else x
            v = np.einsum("ntd,hdw->nhtw", x, values)
            if layer.v_bias:
                v = v + self._vector("b_V", layer.block).reshape(layer.groups, 1, -1)
            return np.repeat(v, per_group, 1), np.einsum("nqd,hde,nke->nhqk", asked, joint, keys, optimize=True)
        stacked = not self.model.has("W_QKV", layer.block) and len(self._heads_tensor(layer.block).shape) == 3
        maps = head_maps(self.model, layer, slice(0, layer.heads), slice(0, layer.groups), stacked)
        b_k = maps.b_k
        if b_k is None and layer.qk_bias and layer.key_bias:
            raise InvalidSetting("the keys' offsets are read under this normaliser, but were not found")

        def through(w: Rows, b: Rows | None) -> Rows:
            y = np.einsum("ntd,hwd->nhtw", x, w)
            return y if b is None else y + b[:, None]

        q, k, v = through(maps.q, maps.b_q), through(maps.k, b_k), through(maps.v, maps.b_v)
        if layer.qk_norm != "none":
            q, k = (self._unit(layer, y, kind) for y, kind in ((q, "norm_Q.gain"), (k, "norm_K.gain")))
        if self.fixed.rotate is not None:
            if layer.qk != "split":  # turned keys' offsets are not the same for all keys
                raise InvalidSetting("queries and keys that turn are described apart: rope true, or qk 'split'")
            q, k = self.fixed.rotate(q, layer.block), self.fixed.rotate(k, layer.block)
        k, v = np.repeat(k, per_group, 1), np.repeat(v, per_group, 1)
        return v, q @ k.swapaxes(-1, -2)

    def _heads_tensor(self, block: int | None) -> Any:
        return self.model.place("W_Q", block).tensor

    def _unit(self, layer: Attention, y: Rows, kind: str) -> Rows:
        """(n, heads, T, width), every head by itself or all of a row together."""
        together = (1, 3) if layer.qk_norm == "width" else (3,)
        y = y / np.sqrt((y**2).mean(together, keepdims=True) + layer.qk_eps)
        return y * self._vector(kind, layer.block).reshape(-1, 1, y.shape[3])


def _temperature(layer: Attention) -> float:
    given = layer.normaliser.temperature
    if given is not None:
        return given
    return math.sqrt(layer.d_head) if layer.qk == "split" and layer.d_head is not None else 1.0


def _normalised(name: str, scores: Rows, seen: NDArray[np.bool_]) -> Rows:
    """Weights of the keys that are seen."""
    if name in ("softmax", "softmax1"):
        scores = np.where(seen, scores, -math.inf)
        top = scores.max(-1, keepdims=True)
        top = np.maximum(top, 0) if name == "softmax1" else top
        weights = np.exp(scores - top)
        return weights / (weights.sum(-1, keepdims=True) + (np.exp(-top) if name == "softmax1" else 0))
    if name not in ("sigmoid", "linear"):
        raise InvalidSetting(f"normaliser {name!r} does not say how scores become weights, so it cannot be run")
    return np.where(seen, expit(scores) if name == "sigmoid" else scores, 0.0) / scores.shape[-1]


_RUNS: Rules[Callable[[Network, Any, Any], Any]] = Rules(
    "running a checkpoint",
    {
        Linear: lambda net, layer, x: net._affine(x, layer.kind, layer.bias, layer.block),
        Activation: lambda net, layer, x: _ACTIVATIONS[layer.name](x),
        SoftCap: lambda net, layer, x: layer.cap * np.tanh(x / layer.cap),
        Ball: lambda net, layer, x: x * np.minimum(1, layer.radius / np.maximum(_lengths(x), 1e-300)),
        LayerNorm: Network._norm,
        Attention: Network._attention,
        GatedFeedForward: Network._gated,
        Embedding: Network._embedding,
        Pool: Network._pool,
        Residual: Network._residual,
    },
)
"""What a layer makes of rows (n, T, d)."""


def _lengths(x: Rows) -> Rows:
    return np.sqrt((x**2).sum(-1, keepdims=True))
