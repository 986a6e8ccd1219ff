"""What a layer computes: in float64, written from the definitions of the layers alone.

Layers are run on arrays that are asked for by name, wherever these come from: a checkpoint (`network`), or what the laws
of layers draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    Residual,
    SoftCap,
)
from boundcalc.setting.layer import Rules

Rows = NDArray[np.float64]

ACTIVATIONS: Mapping[str, Callable[[Rows], Rows]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * expit(x),
    "quick_gelu": lambda x: x * expit(1.702 * x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "tanh": np.tanh,
    "identity": lambda x: x,
}


class Arrays(Protocol):
    """Where the arrays of layers come from."""

    def __call__(self, layer: Layer, kind: str) -> Rows:
        """The array of one kind, as in x -> x W; of several heads, one after the other in front."""
        ...

    def has(self, layer: Layer, kind: str) -> bool:
        """Whether there is such an array: heads have their joint scores, or queries and keys."""
        ...


@dataclass(frozen=True)
class Fixed:
    """What a forward pass needs beside the weights: fixed before the data, so that no bound reads it.

    Attributes:
        rotate: turns (..., heads, T, width) queries or keys of a block, as rotary positions do.
        added: the numbers (heads, T, T) that positions add to the scores of T rows.
        window: which keys each of T queries of a block may see, beside the causal mask.
        bucket: the number of each pair of T positions in a table of learned ones.
        segment: the type of every token, or of each.
        row: the row that a [CLS] read-out takes.
    """

    rotate: Callable[[Rows, int | None], Rows] | None = None
    added: Callable[[int], Rows] | None = None
    window: Callable[[int | None, int], NDArray[np.bool_]] | None = None
    bucket: Callable[[int], NDArray[np.int64]] | None = None
    segment: int | NDArray[np.int64] = 0
    row: int = 0


@dataclass(frozen=True)
class Step:
    """A layer that has run: what it read, and what it made of it."""

    layer: Layer
    reads: Any
    makes: Any


_NOTHING = Fixed()


class Forward:
    """Runs layers on rows (n, T, d), or on tokens (n, T)."""

    def __init__(
        self, arrays: Arrays, fixed: Fixed = _NOTHING, *, every_row: bool = False, steps: list[Step] | None = None
    ) -> None:
        """`every_row`: no row is picked before the read-out; `steps`: where every layer is noted, in the order they run."""
        self.arrays, self.fixed, self.every_row, self.steps = arrays, fixed, every_row, steps

    def __call__(self, layers: Sequence[Layer], x: Any) -> Any:
        """Layers one after the other."""
        for layer in layers:
            y = _RUNS.of(layer)(self, layer, x)
            if self.steps is not None:
                self.steps.append(Step(layer, x, y))
            x = y
        return x

    def _residual(self, layer: Residual, x: Any) -> Any:
        return sum(self(branch, x) for branch in layer.branches)

    def _affine(self, layer: Layer, x: Rows, kind: str, bias: str | None) -> Rows:
        y = x @ self.arrays(layer, kind)
        return y + self.arrays(layer, bias) if bias else y

    def _hidden(self, layer: Hidden, x: Rows) -> Rows:
        units = ACTIVATIONS[layer.activation](self._affine(layer, x, layer.first, layer.bias))
        return self._affine(layer, units, layer.last, None)

    def _gated(self, layer: GatedFeedForward, x: Rows) -> Rows:
        def through(x: Rows, number: int) -> Rows:
            return self._affine(layer, x, f"W_{number}", f"b_{number}" if layer.bias else None)

        return through(ACTIVATIONS[layer.activation](through(x, 1)) * through(x, 3), 2)

    def _norm(self, layer: LayerNorm, x: Rows) -> Rows:
        y = x - x.mean(-1, keepdims=True) if layer.centred else x
        y = y / np.sqrt((y**2).mean(-1, keepdims=True) + layer.eps)
        y = y * (self.arrays(layer, f"{layer.kind}.gain") + layer.around_one) if layer.gain else y
        return y + self.arrays(layer, f"{layer.kind}.offset") if layer.offset else y

    def _pool(self, layer: Pool, x: Rows) -> Rows:
        if layer.how != "cls":
            return x.mean(1, keepdims=True)
        return x if self.every_row else x[:, self.fixed.row][:, None]

    def _embedding(self, layer: Embedding, x: Any) -> Rows:
        y = self.arrays(layer, "embedding")[x] if layer.vocabulary else x
        if layer.positions != "none":
            y = y + self.arrays(layer, "positions")[: y.shape[1]]
        return y + self.arrays(layer, "segments")[self.fixed.segment] if layer.segments else y

    def _lookup(self, layer: Lookup, x: Any) -> Rows:
        n, count = x.shape
        scores, values = (
            self.arrays(layer, f"token_{what}")[x] + self.arrays(layer, f"position_{what}")[:count]
            for what in ("scores", "values")
        )
        mix = _normalised("softmax", scores.swapaxes(1, 2), np.ones(count, bool))
        heads = np.einsum("nht,nthw->nhw", mix, values.reshape(n, count, layer.heads, layer.d_value))
        return np.repeat(heads.reshape(n, 1, -1), count, axis=1)

    def _attention(self, layer: Attention, x: Rows) -> Rows:
        count = x.shape[1]
        scores = self._scores(layer, x) / layer.temperature
        if (layer.offsets == "fixed") != (self.fixed.added is not None):
            raise InvalidSetting("the architecture and the forward pass disagree on numbers added to scores")
        scores = scores if self.fixed.added is None else scores + self.fixed.added(count)
        if layer.buckets is not None:
            if self.fixed.bucket is None:
                raise InvalidSetting("nothing says which pair of positions has which learned number (Fixed.bucket)")
            table = self.arrays(layer, "score_offsets").reshape(layer.buckets, layer.heads)
            scores = scores + table[self.fixed.bucket(count)].transpose(2, 0, 1) / layer.temperature
        scores = scores if layer.cap is None else layer.cap * np.tanh(scores / layer.cap)
        seen = np.tri(count, dtype=bool) if layer.causal else np.ones((count, count), bool)
        if self.fixed.window is not None:
            seen &= self.fixed.window(layer.block, count)
        values = self._of_heads(layer, x, "W_V", "b_V" if layer.v_bias else None)
        mixed = _normalised(layer.normaliser.name, scores, seen) @ np.repeat(values, layer.heads // layer.groups, 1)
        return mixed.sum(1) if layer.combine == "sum" else mixed.swapaxes(1, 2).reshape(*x.shape[:2], -1)

    def _of_heads(self, layer: Attention, x: Rows, kind: str, bias: str | None) -> Rows:
        """(n, heads, T, width)."""
        y = x[:, None] @ self.arrays(layer, kind)
        return y + self.arrays(layer, bias)[:, None] if bias else y

    def _scores(self, layer: Attention, x: Rows) -> Rows:
        """(n, heads, T, T), not yet divided."""
        kind = layer.scores.kind
        if layer.qk == "fixed":
            return np.repeat(self._of_heads(layer, x, kind, None).swapaxes(2, 3), x.shape[1], axis=2)
        if layer.qk == "joint" and (layer.d_head is None or self.arrays.has(layer, kind)):
            joint = self.arrays(layer, kind)
            with_one = np.concatenate([x, np.ones((*x.shape[:2], 1))], -1)
            asked, keys = (with_one if side > layer.d else x for side in joint.shape[1:])
            return np.einsum("nqd,hde,nke->nhqk", asked, joint, keys, optimize=True)
        q = self._of_heads(layer, x, "W_Q", "b_Q" if layer.qk_bias else None)
        k = self._of_heads(layer, x, "W_K", "b_K" if layer.key_bias else None)
        if layer.qk_norm != "none":
            q, k = (self._unit(layer, y, kind) for y, kind in ((q, "norm_Q.gain"), (k, "norm_K.gain")))
        if self.fixed.rotate is not None:
            if layer.qk != "split":  # turned keys' offsets are not the same for all keys
                raise InvalidSetting("queries and keys that turn are described apart: rope true, or qk 'split'")
            q, k = self.fixed.rotate(q, layer.block), self.fixed.rotate(k, layer.block)
        return q @ np.repeat(k, layer.heads // layer.groups, 1).swapaxes(-1, -2)

    def _unit(self, layer: Attention, y: Rows, kind: str) -> Rows:
        """(n, heads, T, width), every head by itself or all of a row together."""
        together = (1, 3) if layer.qk_norm == "width" else (3,)
        y = y / np.sqrt((y**2).mean(together, keepdims=True) + layer.qk_eps)
        return y * self.arrays(layer, kind).reshape(-1, 1, y.shape[3])


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


def _projected(x: Rows, radius: float) -> Rows:
    lengths = np.sqrt((x**2).sum(-1, keepdims=True))
    return x * np.minimum(1, radius / np.maximum(lengths, 1e-300))


_RUNS: Rules[Callable[[Forward, Any, Any], Any]] = Rules(
    "running a network",
    {
        Linear: lambda run, layer, x: run._affine(layer, x, layer.kind, layer.bias),
        Activation: lambda _, layer, x: ACTIVATIONS[layer.name](x),
        SoftCap: lambda _, layer, x: layer.cap * np.tanh(x / layer.cap),
        Ball: lambda _, layer, x: _projected(x, layer.radius),
        LayerNorm: Forward._norm,
        Attention: Forward._attention,
        GatedFeedForward: Forward._gated,
        Embedding: Forward._embedding,
        Hidden: Forward._hidden,
        Lookup: Forward._lookup,
        Pool: Forward._pool,
        Residual: Forward._residual,
    },
)
"""What a layer makes of its rows."""
