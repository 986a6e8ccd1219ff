"""The maps of some heads of one block and their norms, and what a measurement of an audit is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.families.heads import head_offsets, heads_of
from boundcalc.checkpoints.families.table import Model
from boundcalc.norms.heads import Heads, products
from boundcalc.norms.matrix import Floats, Measured, Native, vector
from boundcalc.setting import Attention

Found = dict[str, Measured]
"""By key of norms files. Keys ending in "'" are distances from the reference."""


def key_of(kind: str, block: int | None, head: int | None = None) -> str:
    """The key of a norms file."""
    if block is None:
        return kind
    return f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"


def difference(a: Native, b: Native) -> Floats:
    """A difference in float64; each entry is rounded once, which `Measured.widened` allows for."""
    return np.asarray(a, np.float64) - np.asarray(b, np.float64)


@dataclass(frozen=True)
class HeadMaps:
    """(heads, width, d) arrays of transposed maps, and biases (heads, width)."""

    q: Floats
    k: Floats
    v: Floats
    b_q: Floats | None
    b_k: Floats | None
    b_v: Floats | None

    def norms(self, layer: Attention, first: int, first_group: int) -> Found:
        """Norms of each map; joint scores with the query bias as a further row."""
        b = layer.block
        out: Found = {}
        for h, found in enumerate(Heads.of(self.v).measured()):
            out[key_of("W_V", b, first_group + h)] = found
        for kind, values in (
            ("b_V", self.b_v),
            *((("b_Q", self.b_q), ("b_K", self.b_k)) if layer.qk == "split" else ()),
        ):
            if values is not None:
                start = first if kind == "b_Q" else first_group
                out |= {key_of(kind, b, start + h): vector(w) for h, w in enumerate(values)}
        if layer.qk == "split":
            out |= {key_of("W_Q", b, first + h): found for h, found in enumerate(Heads.of(self.q).measured())}
            out |= {key_of("W_K", b, first_group + h): found for h, found in enumerate(Heads.of(self.k).measured())}
            return out
        keys = self._keys(layer)
        if layer.groups != layer.heads:
            keys = np.repeat(keys, layer.heads // layer.groups, axis=0)
        scores = products(self._queries(), Heads.of(keys))
        return out | {key_of("W_QK", b, first + h): found for h, found in enumerate(scores)}

    def _queries(self) -> Heads:
        if self.b_q is None:
            return Heads.of(self.q)
        return Heads.of(np.concatenate([self.q, self.b_q[:, :, None]], axis=2))

    def _keys(self, layer: Attention) -> Floats:
        """The keys' maps.

        Under a normaliser that does not forget their offsets, a joint score has these as a column.
        """
        if self.b_k is None or layer.qk == "split":
            return self.k
        return np.concatenate([self.k, self.b_k[:, :, None]], axis=2)

    def distance_norms(self, other: HeadMaps, layer: Attention, first: int, first_group: int) -> Found:
        """Norms of the distances; that of a product Q K^T - Q0 K0^T is [Q, -Q0] [K, K0]^T."""
        b = layer.block
        out: Found = {}
        pairs: list[tuple[str, Floats, Floats, int]] = [("W_V", self.v, other.v, first_group)]
        if layer.qk == "split":
            pairs += [("W_Q", self.q, other.q, first), ("W_K", self.k, other.k, first_group)]
        for kind, mine, theirs, start in pairs:
            found = Heads.of(difference(mine, theirs)).measured()
            out |= {key_of(kind, b, start + h): m.widened for h, m in enumerate(found)}
        offsets = [("b_V", self.b_v, other.b_v, first_group)]
        if layer.qk == "split":
            offsets += [("b_Q", self.b_q, other.b_q, first), ("b_K", self.b_k, other.b_k, first_group)]
        for kind, mine, theirs, start in offsets:
            if mine is not None and theirs is not None:
                out |= {key_of(kind, b, start + h): vector(w).widened for h, w in enumerate(difference(mine, theirs))}
        if layer.qk != "split":
            queries, theirs = self._queries(), other._queries()
            left = np.concatenate([queries.transposed / queries.scale, -theirs.transposed / theirs.scale], axis=1)
            right = np.concatenate([self._keys(layer), other._keys(layer)], axis=1)
            if layer.groups != layer.heads:
                right = np.repeat(right, layer.heads // layer.groups, axis=0)
            found = products(Heads.of(left), Heads.of(right))
            out |= {key_of("W_QK", b, first + h): m for h, m in enumerate(found)}
        return out


def head_maps(model: Model, layer: Attention, queries: slice, groups: slice) -> HeadMaps:
    """The maps of some query heads and of the groups they belong to."""
    b = layer.block
    stacked = not model.has("W_QKV", b) and len(model.place("W_Q", b).tensor.shape) == 3

    def cut(kind: str, count: int, part: slice) -> Floats:
        if stacked:  # boundcalc's own: (heads, d, width)
            values = read(model.place(f"W_{kind}", b).tensor)
            return np.ascontiguousarray(np.asarray(values[part], np.float64).transpose(0, 2, 1))
        return heads_of(model, kind, b, count, part)

    def offsets(kind: str, needed: bool, count: int, part: slice) -> Floats | None:
        found = head_offsets(model, kind, b, count) if needed else None
        return None if found is None else found[part]

    return HeadMaps(
        q=cut("Q", layer.heads, queries),
        k=cut("K", layer.groups, groups),
        v=cut("V", layer.groups, groups),
        b_q=offsets("Q", layer.qk_bias, layer.heads, queries),
        b_k=offsets("K", layer.key_bias, layer.groups, groups),
        b_v=offsets("V", layer.v_bias, layer.groups, groups),
    )


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
