"""Which norms are read off trained weights, so that bounds are corrected for them: the one place that says.

It reads kinds and sizes, never values: the correction is a union bound over the values of limits fixed in advance. Few
are read, as each costs several nats: what A5 derives as well from those left is not. Read are |W|_op, which radii and
Lipschitz factors need, |W|_F and |W|_21, which covers use besides it; of (2,1) norms of transposes, (1,1) norms and
ranks the architecture's sizes say nearly as much (docs/theory.md, budgets after the fact).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from flint import fmpz_mat

from boundcalc.norms.matrix import Floats, Measured, as_stored, measure
from boundcalc.setting import Budget

Size = tuple[int, int, int]
"""Rows, columns, and the most that the rank can be, of a matrix; (n, 1, 1) of a vector."""

_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "embedding": ("row", "fro"),  # rare words may be longer than others
    "positions": ("row",),
    "segments": ("row",),
    "score_offsets": ("sup",),
}


def limits(kind: str, sizes: Iterable[Size]) -> tuple[str, ...]:
    """The limits read off every matrix of a kind, given the sizes of all of them."""
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    if kind.endswith(".gain"):
        return ("sup",)
    if kind.startswith("b_") or kind.endswith(".offset"):
        return ("op",)
    _, columns, ranks = zip(*sizes, strict=True)
    spread = ("fro",) if max(ranks) > 1 else ()  # of rank one: |W|_F = |W|_op
    return ("op", *spread, *(("two_one",) if max(columns) > 1 else ()))


def budget(measured: Measured, names: Iterable[str]) -> Budget:
    """The budget of these limits that some norms just fit."""
    fitting = measured.budget
    return Budget(**{name: getattr(fitting, name) for name in names})


def every(measured: Measured) -> Budget:
    """The budget of all that the calculus knows of a matrix: for weights fixed before the data, which pay nothing."""
    return budget(measured, ("op", "fro", "two_one", "two_one_t", "one_one", "rank"))


def explicit(matrix: Floats) -> Budget:
    """`every` of an array at hand, its rank exact; rows and columns of zeros cost no time."""
    core = matrix[np.any(matrix != 0, axis=1)]
    core = core[:, np.any(core != 0, axis=0)]
    core_norms = measure(as_stored(np.ascontiguousarray(core, np.float64)), np.random.default_rng(0), exact=True)
    return every(replace(core_norms, shape=matrix.shape, rank=_upper_rank(core)))


_MOST_EXACT = 10**5
"""Entries of a matrix whose rank is computed in whole numbers."""


def _upper_rank(matrix: Floats) -> int:
    """The exact rank of matrices of moderate size; else the number of distinct rows, or columns, but for their sign."""
    rows = _distinct(_distinct(matrix).T)
    least = min(rows.shape)
    if least <= 1 or rows.size > _MOST_EXACT:
        return least
    mantissa, exponent = np.frexp(rows)
    shift = exponent - np.where(rows == 0, np.iinfo(exponent.dtype).max, exponent).min(1, keepdims=True)
    if shift[rows != 0].max() > 1100:
        return least
    whole = (mantissa * 2.0**53).astype(np.int64)  # each row times a power of 2: the rank does not change
    entries = [int(w) << max(0, int(e)) for w, e in zip(whole.ravel(), shift.ravel(), strict=True)]
    return min(least, fmpz_mat(rows.shape[0], rows.shape[1], entries).rank())


def _distinct(matrix: Floats) -> Floats:
    """The rows that are not 0 and differ by more than their sign."""
    rows = matrix[np.any(matrix != 0, axis=1)]
    if not len(rows):
        return rows
    first = (rows != 0).argmax(1)
    rows = rows * np.sign(rows[np.arange(len(rows)), first])[:, None] + 0.0  # + 0.0 turns -0 into 0
    return np.unique(rows, axis=0)
