"""Products of heads: the same norms as of the d x d matrices that are never formed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc.norms.heads import Heads, products
from boundcalc.norms.matrix import Measured, as_stored, measure

Floats = NDArray[np.float64]
Q = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]


def draw(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


GRADED = 10.0 ** -np.arange(8.0)[:, None]
PAIRS: dict[str, tuple[Floats, Floats]] = {
    "random": (draw(1, 3, 8, 60), draw(2, 3, 8, 50)),
    "with a further row": (draw(3, 2, 8, 61), draw(4, 2, 8, 60)),
    "wider than long": (draw(5, 2, 9, 5), draw(6, 2, 9, 4)),
    "low rank": (draw(9, 2, 8, 1) * draw(10, 2, 1, 40), draw(11, 2, 8, 40)),
    "one head zero": (draw(12, 2, 4, 20) * np.array([0.0, 1.0])[:, None, None], draw(13, 2, 4, 20)),
    "orthogonal": (Q[None, :8], Q[None, 8:16]),
    "tiny and huge": (1e-200 * draw(14, 2, 4, 20), 1e200 * draw(15, 2, 4, 20)),
}


def disagreements(found: list[Measured], a: Floats, b: Floats, close: float = 1e-10) -> list[str]:
    """Norms below LAPACK's of the formed product (but for the rounding of forming it), or far above."""
    wrong: list[str] = []
    for m, x, y in zip(found, a, b, strict=True):
        sx, sy = np.abs(x).max() or 1.0, np.abs(y).max() or 1.0
        w = (x / sx).T @ (y / sy)
        blur = 1e-14 * np.linalg.norm(x / sx) * np.linalg.norm(y / sy)
        want = {
            "op": np.linalg.svd(w, compute_uv=False)[0],
            "fro": np.linalg.norm(w),
            "two_one": np.linalg.norm(w, axis=0).sum(),
            "two_one_t": np.linalg.norm(w, axis=1).sum(),
            "row": np.linalg.norm(w, axis=1).max(),
            "column": np.linalg.norm(w, axis=0).max(),
        }
        for name, value in want.items():
            got = getattr(m, name) / sx / sy
            room = blur * (len(w) + w.shape[1] if name.startswith("two") else 1)
            if not value - room <= got <= value * (1 + close) + 100 * room:
                wrong.append(f"{name}: {got!r} for {value!r}")
    return wrong


@pytest.mark.parametrize("name", PAIRS)
def test_products_agree_with_the_formed_matrices(name: str) -> None:
    a, b = PAIRS[name]
    found = products(Heads.of(a), Heads.of(b))
    assert disagreements(found, a, b) == []


def test_the_checker_rejects_the_product_of_norms_and_less() -> None:
    a, b = PAIRS["random"]
    good = products(Heads.of(a), Heads.of(b))
    pairs = zip(good, Heads.of(a).measured(), Heads.of(b).measured(), strict=True)
    loose = [replace(m, op=(x.op or 0) * (y.op or 0)) for m, x, y in pairs]
    assert disagreements(loose, a, b)
    low = [replace(m, fro=(m.fro or 0) * (1 - 1e-9)) for m in good]
    assert disagreements(low, a, b)


@pytest.mark.parametrize(("power", "close"), [(0.5, 1e-6), (1.0, 1.0)])
def test_factors_that_nearly_cancel_stay_close(power: float, close: float) -> None:
    """A graded against B graded the other way: op(A) op(B) is 10^3.5 or 10^7 times op(A B^T)."""
    graded = GRADED**power
    found = products(Heads.of((graded * Q[:8])[None]), Heads.of((Q[:8] / graded)[None]))[0]
    assert 1 <= (found.op or 0) <= 1 + close


def test_single_heads_agree_with_whole_matrices() -> None:
    a = draw(20, 4, 6, 30)
    for m, w in zip(Heads.of(a).measured(), a, strict=True):
        whole = measure(as_stored(np.ascontiguousarray(w.T)), np.random.default_rng(0))
        assert m.shape == whole.shape == (30, 6)
        for name in ("op", "fro", "two_one", "two_one_t", "one_one", "row", "column", "sup"):
            assert getattr(m, name) == pytest.approx(getattr(whole, name), rel=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e-320, 1e200])
def test_products_beyond_the_floats_are_not_zero(scale: float) -> None:
    """Scaled back, a norm may have few digits left, or none: it is rounded up, not to nearest."""
    (found,) = products(Heads.of(scale * draw(22, 1, 3, 10)), Heads.of(scale * draw(23, 1, 3, 10)))
    for name in ("op", "fro", "two_one", "two_one_t", "row", "column"):
        assert getattr(found, name) == (5e-324 if scale < 1 else math.inf)
    (own,) = Heads.of(np.full((1, 2, 3), 5e-324)).measured()
    assert (own.op or 0) >= 3 * 5e-324  # above sqrt(6)
    assert (own.fro or 0) >= 3 * 5e-324
