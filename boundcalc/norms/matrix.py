"""Certified norms of one matrix or vector: every value is an upper bound of the exact one (docs/weights.md).

A matrix is W of x -> x W. Files may store its transpose; only the names of the two mixed norms depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import NotFinite
from boundcalc.norms import _spectral as spectral
from boundcalc.norms.rounding import UNIT, root, roots, scale_for, total, unscaled, up, ups
from boundcalc.setting import Budget

Floats = NDArray[np.float64]
Native = NDArray[np.floating[Any]]

_SLAB = 128
"""Rows (along the longer side) taken at once: short sums keep the a-priori rounding bound small, and they stay in
cache."""
_SMALL, _LARGE = 2.0**-32, 2.0**32
"""Matrices whose largest entry is outside this range are first scaled by a power of two, exactly: squares then neither
overflow nor vanish."""

_SIZES = ("op", "fro", "two_one", "two_one_t", "one_one", "row", "column", "sup")


@dataclass(frozen=True)
class Measured:
    """Upper bounds of the norms of one matrix (or vector), None where not requested.

    Attributes:
        shape: (d, k) of x -> x W; (n,) of a vector.
        op: spectral norm; l2 norm of a vector.
        fro: Frobenius norm.
        two_one: sum of the l2 norms of the columns.
        two_one_t: sum of the l2 norms of the rows.
        one_one: sum of absolute entries.
        row: largest l2 norm of a row.
        column: largest l2 norm of a column.
        sup: largest absolute entry.
        rank: most that the rank can be.
        failure: chance that `op` is too small (0 unless it was found by random probes).
    """

    shape: tuple[int, ...]
    op: float | None = None
    fro: float | None = None
    two_one: float | None = None
    two_one_t: float | None = None
    one_one: float | None = None
    row: float | None = None
    column: float | None = None
    sup: float | None = None
    rank: int | None = None
    failure: float = 0.0

    @property
    def transpose(self) -> Measured:
        """The norms of the transposed matrix."""
        return replace(
            self,
            shape=self.shape[::-1],
            two_one=self.two_one_t,
            two_one_t=self.two_one,
            row=self.column,
            column=self.row,
        )

    @property
    def finite(self) -> bool:
        """Whether every norm is a float."""
        return all(math.isfinite(v) for v in vars(self).values() if isinstance(v, float))

    @property
    def widened(self) -> Measured:
        """The norms of a matrix whose entries were each rounded once: op is then off by u |W|_F."""
        fro = self.fro if self.fro is not None else self.op
        op = None if self.op is None else up(self.op + 2 * UNIT * (fro or 0.0), 2)
        return replace(self.each(lambda norm: up(norm, 2)), op=op)

    def each(self, larger: Callable[[float], float]) -> Measured:
        """`larger` of every norm: of what grows in proportion to the matrix."""
        sizes = {name: larger(value) for name in _SIZES if (value := getattr(self, name)) is not None}
        return replace(self, **sizes)  # type: ignore[arg-type]

    def times(self, factor: float) -> Measured:
        """The norms of the matrix times a constant above 0."""
        return self.each(lambda norm: up(norm * factor, 1))

    def unscaled(self, *scales: float) -> Measured:
        """The norms of the matrix itself, these being of its multiple by some powers of two."""
        shift = sum(1 - math.frexp(scale)[1] for scale in scales)
        return self if shift == 0 else self.each(lambda norm: unscaled(norm, shift))

    @property
    def budget(self) -> Budget:
        """The budget that these norms just fit."""
        return Budget(
            op=self.op,
            fro=_at_least(self.fro, self.op),
            two_one=_at_least(self.two_one, self.fro, self.op),
            two_one_t=_at_least(self.two_one_t, self.fro, self.op),
            one_one=_at_least(self.one_one, self.two_one, self.two_one_t, self.fro, self.op),
            rank=self.rank,
            sup=self.sup,
            row=self.row,
        )


def _at_least(value: float | None, *floors: float | None) -> float | None:
    """Rounding up may put equal norms out of order (|W|_op <= |W|_F <= ...); larger is still an upper bound."""
    return None if value is None else max([value, *(floor for floor in floors if floor is not None)])


def check_finite(values: NDArray[Any], name: str) -> None:
    """One clear line for a model whose training blew up. A sum is finite only if every term is."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.sum(values, dtype=np.float64)
    if not np.isfinite(whole) and not np.isfinite(values).all():
        bad = "NaN" if np.isnan(values).any() else "Inf"
        count = int((~np.isfinite(values)).sum())
        raise NotFinite(f"{name} has {count} entries that are {bad}: no norm of it is finite")


@dataclass(frozen=True)
class Stored:
    """A matrix as stored: its shape and a way to cut blocks of it, as native floats (not checked to be finite)."""

    shape: tuple[int, int]
    block: Callable[[slice, slice], Native]
    name: str = "matrix"
    base: Stored | None = None
    """What this is the transpose of."""

    @property
    def turned(self) -> Stored:
        """The transpose."""
        return self.base or Stored(
            (self.shape[1], self.shape[0]), lambda rows, columns: self.block(columns, rows).T, self.name, self
        )

    def finite(self, rows: slice, columns: slice) -> Native:
        """A block, checked."""
        values = self.block(rows, columns)
        check_finite(values, self.name)
        return values

    def slabs(self, scale: float = 1.0, thick: int = 128) -> Iterator[tuple[int, Native]]:
        """Slabs along the longer side, each with the shorter side last, times a power of two."""
        long, short = max(self.shape), min(self.shape)
        step = max(thick, min(long, (1 << 15) // max(short, 1)))
        whole = slice(None)
        for low in range(0, long, step):
            part = slice(low, low + step)
            slab = self.block(part, whole) if self.shape[0] == long else self.block(whole, part).T
            yield low, slab if scale == 1.0 else slab.astype(np.float64) * scale


def as_stored(array: Native, name: str = "matrix") -> Stored:
    """An array at hand."""
    return Stored(array.shape, lambda rows, columns: array[rows, columns], name)  # type: ignore[arg-type]


def measure(matrix: Stored, rng: np.random.Generator, *, op: bool = True, exact: bool = False) -> Measured:
    """The norms of a matrix.

    `exact` takes the Gram matrix whatever the size; else matrices whose shorter side exceeds `EXACT_SIDE` get their
    spectral norm from random probes.
    """
    if matrix.base is not None:  # read as it is stored
        return measure(matrix.base, rng, op=op, exact=exact).transpose
    if 0 in matrix.shape:
        return Measured(matrix.shape, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    by_gram = op and (exact or min(matrix.shape) <= spectral.EXACT_SIDE)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is scaled and summed again
        sums = _Sums(matrix, 1.0, by_gram)
    if sums.largest > _LARGE or 0 < sums.largest < _SMALL:
        sums = _Sums(matrix, scale_for(sums.largest), by_gram)
    return sums.finish(rng, op=op)


class _Sums:
    """One pass over a matrix: sums of squares by row and column, of absolute values, and perhaps the Gram matrix."""

    def __init__(self, matrix: Stored, scale: float, by_gram: bool) -> None:
        self.matrix = matrix
        self.scale = scale
        self.short = min(matrix.shape)
        self.gram = spectral.Grams(self.short) if by_gram else None
        self.largest = 0.0
        along: list[Floats] = []
        absolute: list[Floats] = []
        across = np.zeros(self.short)
        longest = slabs = 0
        ones = np.ones(self.short)
        for _, slab in matrix.slabs(scale, _SLAB):
            wide = slab.astype(np.float64, order="K")
            squares = np.einsum("ij,ij->i", wide, wide)
            if not np.isfinite(squares).all():  # or they overflow, and the matrix will be scaled
                check_finite(slab, matrix.name)
            along.append(squares)
            sizes = np.abs(wide)
            self.largest = max(self.largest, float(sizes.max()))
            absolute.append(sizes @ ones)
            if self.gram is None:
                across += np.einsum("ij,ij->j", wide, wide)
            else:
                self.gram.add(wide)
            longest, slabs = max(longest, len(wide)), slabs + 1
        if self.gram is not None:
            across = self.gram.matrix.diagonal().copy()
        self.along = ups(np.concatenate(along), self.short + 1)
        self.across = ups(across, longest + slabs + 1)
        self.absolute = ups(np.concatenate(absolute), self.short)

    def finish(self, rng: np.random.Generator, *, op: bool) -> Measured:
        """The norms of the matrix as it was stored."""
        square = total(self.along)
        fro = root(square)
        by_long, by_short = roots(self.along), roots(self.across)
        top, failure = None, 0.0
        if self.gram is not None:
            guess = max(float(np.linalg.eigvalsh(self.gram.matrix)[-1]), 0.0)
            top = root(spectral.cholesky_upper(self.gram.matrix, guess) + self.gram.error * square)
        elif op:
            top = spectral.chebyshev_upper(lambda: self.matrix.slabs(self.scale), self.short, square, rng)
            failure = spectral.FAILURE if square else 0.0
        if top is not None:
            top = min(top, fro)
        rows, columns = (by_long, by_short) if self.matrix.shape[0] >= self.matrix.shape[1] else (by_short, by_long)
        return Measured(
            self.matrix.shape,
            op=top,
            fro=fro,
            two_one=total(columns),
            two_one_t=total(rows),
            one_one=total(self.absolute),
            row=float(rows.max()),
            column=float(columns.max()),
            sup=self.largest,
            rank=min(self.matrix.shape) if self.largest > 0 else 0,
            failure=failure,
        ).unscaled(self.scale)


def vector(values: Native, name: str = "vector") -> Measured:
    """The norms of an offset or a gain."""
    check_finite(values, name)
    sizes = np.abs(np.asarray(values, np.float64)).ravel()
    sup = float(sizes.max(initial=0.0))
    if sup == 0:
        return Measured((sizes.size,), op=0.0, one_one=0.0, sup=0.0)
    scale = scale_for(sup)
    scaled = sizes * scale
    length = unscaled(up(root(total(ups(scaled**2, 1))), 1), 1 - math.frexp(scale)[1])
    return Measured((sizes.size,), op=max(length, sup), one_one=max(total(sizes), length), sup=sup)


def outer(u: Measured, v: Measured) -> Measured:
    """The norms of u v^T, a matrix of rank 1, from those of two vectors."""

    def times(x: float | None, y: float | None) -> float:
        return up((x or 0.0) * (y or 0.0), 1)

    length = times(u.op, v.op)
    return Measured(
        (*u.shape, *v.shape),
        op=length,
        fro=length,
        two_one=times(u.op, v.one_one),
        two_one_t=times(u.one_one, v.op),
        one_one=times(u.one_one, v.one_one),
        row=times(u.sup, v.op),
        column=times(u.op, v.sup),
        sup=times(u.sup, v.sup),
        rank=1,
    )
