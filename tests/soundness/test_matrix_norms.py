"""A5 and A6 on matrices: norms that follow from others, and norms of products, against those of random matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import MatrixNorms
from boundcalc.setting import Budget, Norms, Weight
from boundcalc.statements.weights import Weights, matrix_norms, product
from boundcalc.testing._drawing import Array

NORMS = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
GIVEN = ("op", "fro", "two_one", "two_one_t", "one_one", "op two_one", "op rank", "fro one_one rank")
GIVEN += ("nuclear", "op nuclear", "two_one nuclear rank")


def norms(matrix: Array) -> MatrixNorms:
    values = np.linalg.svd(matrix, compute_uv=False)
    columns, rows = (float(np.linalg.norm(matrix, axis=axis).sum()) for axis in (0, 1))
    fro, entries, rank = np.linalg.norm(matrix), np.abs(matrix).sum(), np.linalg.matrix_rank(matrix)
    return MatrixNorms(float(values[0]), float(fro), columns, rows, float(entries), float(values.sum()), int(rank))


def largest_shares(pairs: Iterable[tuple[MatrixNorms, MatrixNorms]]) -> dict[str, float]:
    """The largest share that each norm of a matrix has of what is claimed of it, which is never above 1."""
    share: dict[str, float] = dict.fromkeys((*NORMS, "rank"), 0.0)
    for true, claimed in pairs:
        for name in share:
            share[name] = max(share[name], getattr(true, name) / getattr(claimed, name))
    assert max(share.values()) <= 1 + 1e-9, share
    return share


@pytest.mark.parametrize("given", GIVEN)
def test_norms_that_follow_are_above_those_of_random_matrices(given: str) -> None:
    rng = np.random.default_rng(12)

    def drawn() -> Iterator[tuple[MatrixNorms, MatrixNorms]]:
        for _ in range(150):
            d, k = (int(v) for v in rng.integers(1, 6, 2))
            w = rng.standard_normal((d, k)) * np.exp(2 * rng.standard_normal(k))
            if rng.random() < 0.5:
                w = w * (rng.random((d, k)) < 0.4)
            if rng.random() < 0.2 or not w.any():
                w = np.eye(d, k)
            true = norms(w)
            limits, least = {name: getattr(true, name) for name in given.split()}, 0.0
            for name in ("op", "fro", "two_one", "one_one"):  # computed norms may contradict each other by a bit
                if name in limits:
                    limits[name] = least = max(least, limits[name])
            follows = matrix_norms(FLOAT, Budget(**limits), d, k)
            assert follows is not None
            yield true, follows

    share = largest_shares(drawn())
    assert all(share[name] >= 1 - 1e-9 for name in given.split()), share


@pytest.mark.parametrize("role", ["scores", "values"])
@pytest.mark.parametrize("given", ["own", "own fro", "own nuclear", "fro nuclear"])
def test_norms_of_tables_are_above_those_of_random_ones(role: Literal["scores", "values"], given: str) -> None:
    """Of a table that heads look up its own limit is the largest entry, or the longest value (of one head a row)."""
    rng, own = np.random.default_rng(3), {"scores": "sup", "values": "heads"}[role]

    def drawn() -> Iterator[tuple[MatrixNorms, MatrixNorms]]:
        for index in range(200):
            d, k = rng.integers(1, 6, 2)
            w = rng.standard_normal((d, k)) if index % 2 else np.linalg.qr(rng.standard_normal((6, 6)))[0][:d, :k]
            w = rng.choice([-1.0, 1.0], (d, k)) if index % 3 == 0 else w
            size = float(np.abs(w).max() if role == "scores" else np.linalg.norm(w, axis=1).max())
            true = norms(w)
            limits: dict[str, Any] = {name: getattr(true, name) for name in given.split() if name != "own"}
            weights = Weights(FLOAT, Norms(budgets={"W": Budget(**({own: size} if "own" in given else {}), **limits)}))
            yield true, weights.read(Weight("W", role, (int(d), int(k))))[1]

    share = largest_shares(drawn())
    assert min(share["fro"], share["nuclear"]) >= 1 - 1e-6


def test_norms_of_products_are_met_and_never_exceeded() -> None:
    """Random factors; orthogonal ones, which meet every bound of the nuclear norm; flat and single ones."""
    rng = np.random.default_rng(1)

    def drawn() -> Iterator[tuple[MatrixNorms, MatrixNorms]]:
        for index in range(300):
            d, n, k = rng.integers(1, 6, 3)
            a, b = rng.normal(size=(d, n)), rng.normal(size=(n, k))
            if index % 3 == 0:
                a = np.linalg.qr(rng.normal(size=(n, n)))[0]
                b = a.T * 10 ** rng.uniform(-2, 2)
            elif index % 3 == 1:
                a, b = np.eye(d, n), np.outer(np.eye(n)[0], np.eye(k)[0])
            yield norms(a @ b), product(FLOAT, norms(a), norms(b))

    assert min(largest_shares(drawn()).values()) >= 1 - 1e-6
