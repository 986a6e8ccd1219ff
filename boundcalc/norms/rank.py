"""The rank of an explicit matrix of floats, exactly."""

from __future__ import annotations

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

_MOST_EXACT = 10**5
"""Entries of a matrix whose rank is computed in whole numbers."""


def upper_rank(matrix: _Floats) -> int:
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


def _distinct(matrix: _Floats) -> _Floats:
    """The rows that are not 0 and differ by more than their sign."""
    rows = matrix[np.any(matrix != 0, axis=1)]
    if not len(rows):
        return rows
    first = (rows != 0).argmax(1)
    rows = rows * np.sign(rows[np.arange(len(rows)), first])[:, None] + 0.0  # + 0.0 turns -0 into 0
    return np.unique(rows, axis=0)
