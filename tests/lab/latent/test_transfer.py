"""X6: equality where it must be reached, violations where a factor is left out, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boundcalc.base.errors import Unsupported
from boundcalc.lab.latent.transfer import condition, transfer_bound

M = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.1], [1.0, 1.0, 1.0]])
W = np.array([1.0, -1.0, 2.0])


def test_the_condition_number() -> None:
    assert condition(np.diag([2.0, 0.5]), [1.0, 1.0]).kappa == pytest.approx(math.hypot(0.5, 2.0))
    assert condition(M, W).head @ M == pytest.approx(W)
    assert condition(np.zeros((2, 2)), [0.0, 0.0]).kappa == 0.0


def test_x6_is_reached_by_errors_along_the_head_and_not_survived_by_a_smaller_constant() -> None:
    rng = np.random.default_rng(0)
    h = rng.standard_normal((1000, 3))
    head = condition(M, W).head
    along = rng.standard_normal((1000, 1)) * head / np.linalg.norm(head)
    e_pre = float(np.square(along).sum(-1).mean())
    error = float(np.square((h @ M.T + along) @ head - h @ W).mean())
    bound = transfer_bound(M, W, e_pre).value
    assert error <= bound * (1 + 1e-9)
    assert error == pytest.approx(bound, rel=1e-9)
    assert error > 0.99 * bound
    anyhow = 0.3 * rng.standard_normal((1000, 4))
    e_pre = float(np.square(anyhow).sum(-1).mean())
    assert float(np.square(anyhow @ head).mean()) < transfer_bound(M, W, e_pre).value


def test_w_outside_the_row_space_is_refused_with_the_quantity() -> None:
    blind = np.diag([1.0, 1.0, 0.0])
    for call in (lambda: condition(blind, W), lambda: transfer_bound(blind, W, 0.1)):
        with pytest.raises(Unsupported) as caught:
            call()
        text = str(caught.value)
        assert "0.816 of its length outside the row space" in text
        assert "rank 2 of 3" in text
        assert "kappa = |w M^+| is infinite" in text
    assert condition(blind, [1.0, 1.0, 0.0]).kappa == pytest.approx(math.sqrt(2))
    # in the row space of a singular M the bound is there
    inside = np.array([1.0, 1.0, 0.0])
    assert 0.2 <= transfer_bound(blind, inside, 0.1).value <= 0.2 * (1 + 1e-8)


def test_kappa_is_exact_where_w_lies_in_the_row_space_exactly() -> None:
    """Without full column rank too: then the value is a theorem.

    Where only rounding speaks for it, it is an estimate.
    """
    rng = np.random.default_rng(8)
    seen = {True: 0, False: 0}
    for _ in range(200):
        n, p, r = (int(x) for x in rng.integers(1, 6, 3))
        m = (rng.integers(-5, 6, (n, r)) @ rng.integers(-5, 6, (r, p))).astype(float)
        w = (rng.integers(-3, 4, n) @ m if rng.random() < 0.7 else rng.integers(-3, 4, p)).astype(float)
        inside = np.linalg.matrix_rank(np.vstack([m, w])) == np.linalg.matrix_rank(m)
        seen[bool(inside)] += 1
        if not inside:
            with pytest.raises(Unsupported, match="row space"):
                transfer_bound(m, w, 0.1)
            continue
        found = transfer_bound(m, w, 0.1)
        assert found.kind == "bound"
        assert found.value == pytest.approx(0.1 * np.linalg.norm(w @ np.linalg.pinv(m)) ** 2, rel=1e-6, abs=1e-12)
    assert min(seen.values()) > 20
    rounded = rng.standard_normal((2, 4))
    assert transfer_bound(rounded, rng.standard_normal(2) @ rounded, 0.1).kind == "estimate"
    assert transfer_bound(rounded, rounded[0], 0.1).kind == "bound"
