"""A6: norms of products, and of a matrix with a row below it and a column beside it, held against such matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.statements.targets import MatrixNorms, product
from boundcalc.statements.targets import with_corner as corner_norms
from boundcalc.statements.targets import with_row as row_norms

NORMS = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")


def norms(matrix: np.ndarray) -> MatrixNorms:
    values = np.linalg.svd(matrix, compute_uv=False)
    return MatrixNorms(
        op=float(values[0]),
        fro=float(np.linalg.norm(matrix)),
        two_one=float(np.linalg.norm(matrix, axis=0).sum()),
        two_one_t=float(np.linalg.norm(matrix, axis=1).sum()),
        one_one=float(np.abs(matrix).sum()),
        nuclear=float(values.sum()),
        rank=int(np.linalg.matrix_rank(matrix)),
    )


def with_row(matrix: np.ndarray, row: np.ndarray | None) -> tuple[np.ndarray, MatrixNorms] | None:
    if row is None:
        return None
    return np.vstack([matrix, row]), row_norms(FLOAT, norms(matrix), float(np.linalg.norm(row)), len(row))


def with_border(matrix: np.ndarray, row: np.ndarray | None) -> tuple[np.ndarray, MatrixNorms]:
    rows, columns = matrix.shape
    size = None if row is None else float(np.linalg.norm(row))
    foot = np.zeros(columns) if row is None else row
    made = np.block([[matrix, np.zeros((rows, 1))], [foot[None, :], np.ones((1, 1))]])
    return made, corner_norms(FLOAT, norms(matrix), size, columns)


def cases() -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Random ones; and a matrix near 0 beside an even row, where sums over columns are as large as they can be."""
    rng = np.random.default_rng(0)
    for index in range(300):
        rows, columns = rng.integers(1, 6, 2)
        matrix = rng.normal(size=(rows, columns)) * 10 ** rng.uniform(-2, 1)
        row = rng.normal(size=columns) * 10 ** rng.uniform(-2, 1)
        if index % 4 == 0:
            matrix, row = 1e-9 * matrix, np.full(columns, rng.uniform(0.1, 3))
        yield matrix, None if index % 4 == 1 else row


@pytest.mark.parametrize("made", [with_row, with_border])
def test_norms_with_a_border_are_met_and_never_exceeded(
    made: Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, MatrixNorms] | None],
) -> None:
    share = dict.fromkeys(NORMS, 0.0)
    for pair in filter(None, (made(matrix, row) for matrix, row in cases())):
        true, claimed = norms(pair[0]), pair[1]
        for name in NORMS:
            share[name] = max(share[name], getattr(true, name) / getattr(claimed, name))
    assert max(share.values()) <= 1 + 1e-9, share
    assert min(share.values()) >= 1 - 1e-6, share  # so a constant cannot be smaller


def test_norms_of_products_are_met_and_never_exceeded() -> None:
    """Random factors; orthogonal ones, which meet every bound of the nuclear norm; flat and single ones."""
    rng = np.random.default_rng(1)
    share = dict.fromkeys(NORMS, 0.0)
    for index in range(300):
        d, n, k = rng.integers(1, 6, 3)
        a, b = rng.normal(size=(d, n)), rng.normal(size=(n, k))
        if index % 3 == 0:
            a = np.linalg.qr(rng.normal(size=(n, n)))[0]
            b = a.T * 10 ** rng.uniform(-2, 2)
        elif index % 3 == 1:
            a, b = np.eye(d, n), np.outer(np.eye(n)[0], np.eye(k)[0])
        claimed, true = product(FLOAT, norms(a), norms(b)), norms(a @ b)
        for name in NORMS:
            share[name] = max(share[name], getattr(true, name) / getattr(claimed, name))
        assert true.rank <= claimed.rank
    assert max(share.values()) <= 1 + 1e-9, share
    assert min(share.values()) >= 1 - 1e-6, share
