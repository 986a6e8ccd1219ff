"""How fast formulas are: against NumPy written by hand, and from a cold start.

pytest tests/benchmarks/test_symbolic_speed.py -s
"""

from __future__ import annotations

import numpy as np
import pytest

from boundcalc.statements.gap import CLOSED_OFFSET
from boundcalc.theorems import edelman2022
from tests.benchmarks.timing import fresh, least

POINTS = 10**6
pytestmark = pytest.mark.benchmark


def by_hand(C: np.ndarray, T: np.ndarray, m: np.ndarray, D: np.ndarray, d: float, delta: float) -> np.ndarray:
    """The closed form of preset edelman2022 (one head, margin 1) as one would write it for a sweep."""

    def lam(N: np.ndarray) -> np.ndarray:
        w = 2 * N * d + 1
        log = np.log(w)
        rho = 1 + 1 / log
        return rho * np.log(w * rho**2 * log)

    def block(N: np.ndarray, score: np.ndarray) -> np.ndarray:
        width = lam(N)
        return C ** (2 / 3) * (
            C ** (4 / 3) * np.minimum(score, width) ** (1 / 3) + (C ** (2 / 3) + 1) * width ** (1 / 3)
        )

    n = 17 * m
    r = C**2 * (C + np.sqrt(1 + C**2))
    q = r ** (2 / 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        G = np.where(r == 1, D - 1, (q**D - q) / (q - 1))
    S_1, S_T = block(n, np.log(2 * n * T + 1)), block(n * T, np.log(2 * n * T**2 + 1))
    C_F = C**2 * (np.log(2 * n + 1) ** (1 / 3) + S_1 + S_T * G) ** 3
    k = 17 / 32 * np.e * np.sqrt(2 * C_F / m)
    return 2 * k * (CLOSED_OFFSET + np.maximum(0, np.log(1 / (2 * k)))) + np.sqrt(np.log(1 / delta) / (2 * m))


def test_a_sweep_of_the_closed_form_keeps_up_with_numpy_written_by_hand() -> None:
    sweep = edelman2022.gap.lambdify("C", "T", "m", "depth", d=64, heads=1, delta=0.05, gamma=1)
    rng = np.random.default_rng(0)
    C, D = rng.uniform(0.3, 3, POINTS), rng.integers(1, 12, POINTS).astype(float)
    T, m = rng.integers(1, 5000, POINTS).astype(float), rng.uniform(1e3, 1e12, POINTS)
    np.testing.assert_allclose(sweep(C, T, m, D), by_hand(C, T, m, D, 64.0, 0.05), rtol=1e-9)
    ours, theirs = least(lambda: sweep(C, T, m, D), lambda: by_hand(C, T, m, D, 64.0, 0.05))
    print(f"\n10^6 points: generated {ours:.3f} s, by hand {theirs:.3f} s, ratio {ours / theirs:.2f}")
    assert ours <= 1.25 * theirs


def test_derive_in_symbolic_depth_is_quick_from_cold() -> None:
    (seconds,) = least(fresh("-m", "boundcalc", "derive", "--depth", "D", "--T", "T"), rounds=3)
    print(f"\nboundcalc derive --depth D --T T: {seconds:.2f} s")
    assert seconds < 3


def test_importing_the_theorems_is_quick() -> None:
    (seconds,) = least(fresh("-c", "import boundcalc.theorems"), rounds=3)
    print(f"\nimport boundcalc.theorems: {seconds:.2f} s")
    assert seconds < 0.5
