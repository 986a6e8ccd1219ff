"""Certified upper values of the norms of explicit float matrices."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import wraps

import numpy as np
from flint import fmpz_mat

from boundcalc.setting import Budget

_UNIT = 2.0**-53
_MOST_EXACT = 10**5
"""Entries of a matrix whose rank is computed in whole numbers."""


def _up(x: float, terms: int) -> float:
    """More than the exact value of a sum of so many non-negative terms, each off by a few roundings."""
    return float(x) * (1 + (terms + 16) * _UNIT) if x else 0.0


def _scaled(norm: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
    """The same norm where squares leave the range of floats: the largest entry is brought near 1 by a power of 2.

    Entries that vanish on the way, and squares that do, are far below what `_up` allows for rounding.
    """

    @wraps(norm)
    def scaled(matrix: np.ndarray) -> float:
        largest = float(np.abs(matrix).max(initial=0.0))
        if largest == 0:
            return 0.0
        exponent = math.frexp(largest)[1]
        value, power = math.frexp(norm(np.ldexp(matrix, -exponent)))
        if power + exponent > sys.float_info.max_exp:
            return math.inf
        value = math.ldexp(value, power + exponent)
        return value if value >= sys.float_info.min else math.nextafter(value, math.inf)

    return scaled


@_scaled
def upper_fro(matrix: np.ndarray) -> float:
    """|W|_F."""
    return _up(math.sqrt(_up(float((matrix**2).sum()), matrix.size)), 4)


@_scaled
def upper_two_one(matrix: np.ndarray) -> float:
    """|W|_21: columns' l2 norms, added."""
    columns = np.sqrt((matrix**2).sum(0)) * (1 + (matrix.shape[0] + 16) * _UNIT)
    return _up(float(columns.sum()), matrix.shape[1])


@_scaled
def upper_one_one(matrix: np.ndarray) -> float:
    """|W|_11."""
    return _up(float(np.abs(matrix).sum()), matrix.size)


@_scaled
def upper_op(matrix: np.ndarray) -> float:
    """|W|_op: t^2 I - W^T W is shown to be positive semidefinite by a Cholesky factorisation.

    If the factorisation of a symmetric A of order k runs through in floats, the least eigenvalue of A is at least
    -(k+1) u trace(A) / (1 - 2 (k+1) u) (Demmel; Rump), u the unit roundoff; forming W^T W costs rows * u * |W|_F^2 more.
    """
    rows = matrix[np.any(matrix != 0, axis=1)]
    rows = rows[:, np.any(rows != 0, axis=0)]
    if rows.size == 0:
        return 0.0
    if min(rows.shape) == 1:
        return upper_fro(rows)
    gram = rows.T @ rows if rows.shape[1] <= rows.shape[0] else rows @ rows.T
    k = gram.shape[0]
    fro = upper_fro(rows)
    formed = 2 * (max(rows.shape) + 2) * _UNIT * fro**2
    square = float(np.linalg.eigvalsh(gram)[-1])
    for guard in (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-6):
        candidate = square * (1 + guard) + formed
        shifted = candidate * np.eye(k) - gram
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        slack = 2 * (k + 2) * _UNIT * (abs(float(np.trace(shifted))) + k * candidate) + formed
        return min(fro, _up(math.sqrt(candidate + slack), 8))
    return fro


def upper_rank(matrix: np.ndarray) -> int:
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


def _distinct(matrix: np.ndarray) -> np.ndarray:
    """The rows that are not 0 and differ by more than their sign."""
    rows = matrix[np.any(matrix != 0, axis=1)]
    if not len(rows):
        return rows
    first = (rows != 0).argmax(1)
    rows = rows * np.sign(rows[np.arange(len(rows)), first])[:, None] + 0.0  # + 0.0 turns -0 into 0
    return np.unique(rows, axis=0)


def budget(matrix: np.ndarray) -> Budget:
    """Every norm of a matrix, rounded up and put in order."""
    op, fro = upper_op(matrix), upper_fro(matrix)
    two_one = upper_two_one(matrix)
    return ordered(op, fro, two_one, upper_two_one(matrix.T), upper_one_one(matrix), upper_rank(matrix))


def ordered(op: float, fro: float, two_one: float, two_one_t: float, one_one: float, rank: int | None) -> Budget:
    """A budget whose roundings do not contradict |W|_op <= |W|_F <= |W|_21 <= |W|_11."""
    fro = max(op, fro)
    two_one, two_one_t = max(fro, two_one), max(fro, two_one_t)
    return Budget(op, fro, two_one, two_one_t, max(two_one, two_one_t, one_one), rank)
