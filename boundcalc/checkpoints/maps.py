"""The maps of some heads of one block and their norms, and what a measurement of an audit is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.tensors import read
from boundcalc.norms.heads import Heads, products
from boundcalc.norms.matrix import Floats, Measured, Stored, check_finite, vector
from boundcalc.setting import Attention

Found = dict[str, Measured]
"""By key of norms files. Keys ending in "'" are distances from the reference."""


def key_of(kind: str, block: int | None, head: int | None = None) -> str:
    """The key of a norms file."""
    if block is None:
        return kind
    return f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"


@dataclass(frozen=True)
class HeadMaps:
    """(heads, width, d) arrays of transposed maps of a layer, and biases (heads, width)."""

    layer: Attention
    q: Floats
    k: Floats
    v: Floats
    b_q: Floats | None = None
    b_k: Floats | None = None
    b_v: Floats | None = None

    def norms(self, first: int, first_group: int) -> Found:
        """Norms of each map; joint scores with the offsets that they read as a further row or column."""
        layer, parts = self.layer, [("W_V", self.v, first_group), ("b_V", self.b_v, first_group)]
        if layer.qk == "split":
            parts += [("W_Q", self.q, first), ("b_Q", self.b_q, first)]
            parts += [("W_K", self.k, first_group), ("b_K", self.b_k, first_group)]
        norms: Found = {}
        for kind, values, start in parts:
            if values is not None:
                measured = Heads.of(values).measured() if values.ndim == 3 else map(vector, values)
                norms |= {key_of(kind, layer.block, start + h): norm for h, norm in enumerate(measured)}
        if layer.qk != "split":
            keys = np.repeat(_with_offset(self.k, self.b_k), layer.heads // layer.groups, axis=0)
            scores = products(Heads.of(_with_offset(self.q, self.b_q)), Heads.of(keys))
            norms |= {key_of("W_QK", layer.block, first + h): norm for h, norm in enumerate(scores)}
        return norms

    def minus(self, other: HeadMaps) -> HeadMaps:
        """The distances; that of a product Q K^T - Q0 K0^T is [Q, -Q0] [K, K0]^T."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("q", "k", "v", "b_q", "b_k", "b_v")]
        q, k, v, *offsets = (None if a is None or b is None else difference(a, b) for a, b in pairs)
        if self.layer.qk == "split":
            return HeadMaps(self.layer, q, k, v, *offsets)  # type: ignore[arg-type]
        q = np.concatenate([_with_offset(self.q, self.b_q), -_with_offset(other.q, other.b_q)], axis=1)
        k = np.concatenate([_with_offset(self.k, self.b_k), _with_offset(other.k, other.b_k)], axis=1)
        return HeadMaps(self.layer, q, k, v, b_v=offsets[2])  # type: ignore[arg-type]


def _with_offset(maps: Floats, offset: Floats | None) -> Floats:
    return maps if offset is None else np.concatenate([maps, offset[:, :, None]], axis=2)


def difference(a: Any, b: Any) -> Any:
    """A difference in float64; each entry is rounded once, which `Measured.widened` allows for."""
    if a.shape != b.shape:
        raise CheckpointError(f"the reference has an array of shape {b.shape} where the model has {a.shape}")
    if not isinstance(a, Stored):
        return np.asarray(a, np.float64) - np.asarray(b, np.float64)
    if a.base is not None and b.base is not None:
        return difference(a.base, b.base).turned
    return Stored(a.shape, lambda rows, columns: difference(a.finite(rows, columns), b.finite(rows, columns)))


def heads_of(model: Model, kind: str, block: int | None, count: int, only: slice = slice(None)) -> Floats:
    """Maps W_Q, W_K or W_V of some of a block's heads: (heads, width, d), the transposes of x -> x W."""
    tensor = model.place(kind, block).tensor
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


def offsets_of(model: Model, kind: str, block: int | None, count: int) -> Floats | None:
    """Biases b_Q, b_K or b_V of a block: (heads, width)."""
    if not model.has(kind, block):
        return None
    return np.asarray(model.vector(kind, block), np.float64).reshape(count, -1)


def head_maps(model: Model, layer: Attention, queries: slice, groups: slice) -> HeadMaps:
    """The maps of some query heads and of the groups they belong to."""
    parts = {"Q": (layer.heads, queries), "K": (layer.groups, groups), "V": (layer.groups, groups)}
    needed = {"Q": layer.qk_bias, "K": layer.key_bias, "V": layer.v_bias}
    maps = [heads_of(model, f"W_{kind}", layer.block, *parts[kind]) for kind in "QKV"]
    offsets = [offsets_of(model, f"b_{kind}", layer.block, parts[kind][0]) if needed[kind] else None for kind in "QKV"]
    return HeadMaps(layer, *maps, *(b if b is None else b[parts[k][1]] for k, b in zip("QKV", offsets, strict=True)))


SPECTRUM_SIDE = 1024
"""Matrices whose shorter side exceeds this get no spectrum by default."""


@dataclass(frozen=True)
class Want:
    """What to measure.

    Attributes:
        spectra: singular values of every matrix: True, False, or None where they are cheap.
        exact: spectral norms by Gram matrices only, however large.
    """

    spectra: bool | None = None
    exact: bool = False

    def spectrum(self, shape: Sequence[int]) -> bool:
        """Whether to compute the singular values of a matrix."""
        return min(shape) <= SPECTRUM_SIDE if self.spectra is None else self.spectra


@dataclass(frozen=True)
class Task:
    """One measurement.

    Attributes:
        name: unique, for the progress bar.
        entries: numbers it reads, for the progress bar.
        run: makes it, with a generator of its own.
    """

    name: str
    entries: int
    run: Callable[[np.random.Generator], Found] = field(repr=False)
