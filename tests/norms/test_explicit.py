"""Budgets of arrays at hand, with exact ranks, and of outer products."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from boundcalc.norms.limits import _upper_rank, every, explicit
from boundcalc.norms.matrix import outer, vector


@pytest.mark.parametrize("scale", [1e-320, 1e-165, 1e-160, 1e155, 1e300])
def test_norms_near_the_ends_of_the_floats(scale: float) -> None:
    """Squares leave the range there; the norms do not."""
    matrix = scale * np.array([[3.0, 4.0], [0.0, 1.0]])
    exact = [Fraction(float(x)) for x in matrix.ravel()]
    least = max(sum(x * x for x in exact[:2]), sum(x * x for x in exact[1::2]))  # squared row or column norm
    found = explicit(matrix)
    assert found.op is not None
    assert found.fro is not None
    assert found.one_one is not None
    assert Fraction(found.fro) ** 2 >= sum(x * x for x in exact)
    assert Fraction(found.op) ** 2 >= least
    assert Fraction(found.one_one) >= sum(exact)
    assert found.one_one <= 9 * scale


def test_rank_is_exact() -> None:
    row = np.array([1.0, -2.0, 0.5])
    assert _upper_rank(np.stack([row, -row, row, np.zeros(3)])) == 1
    assert _upper_rank(np.zeros((3, 4))) == 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, k, r = (int(x) for x in rng.integers(1, 9, 3))
        left = rng.integers(-9, 10, (n, r)) * 2.0 ** rng.integers(-40, 40, (n, 1))
        matrix = left @ rng.integers(-9, 10, (r, k))
        assert _upper_rank(matrix) == np.linalg.matrix_rank(matrix / np.maximum(np.abs(matrix).max(1), 1e-300)[:, None])
    nearly = np.outer([1.0, 3.0], row)
    nearly[1, 2] *= 1 + 2.0**-52  # no numerical rank sees this, and T5 is not entitled to ignore it
    assert _upper_rank(nearly) == 2


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_outer_products_have_the_norms_of_the_formed_matrix(scale: float) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (1, 4), (30, 2)):
        u, v = scale * rng.normal(size=shape[0]), rng.normal(size=shape[1])
        found, formed = every(outer(vector(u), vector(v))), explicit(np.outer(u, v))
        for name in ("op", "fro", "two_one", "two_one_t", "one_one"):
            assert getattr(found, name) == pytest.approx(getattr(formed, name), rel=1e-12), name
        assert found.rank == 1
    exact = every(outer(vector(np.array([3.0, 4.0])), vector(np.array([1.0, -2.0, 2.0]))))
    known = {"op": 15, "fro": 15, "two_one": 25, "two_one_t": 21, "one_one": 35}
    for name, value in known.items():
        assert value <= getattr(exact, name) <= value * (1 + 1e-14)
