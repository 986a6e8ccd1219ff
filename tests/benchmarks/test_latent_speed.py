"""Speed of CME attention against the bare Cholesky solve: a ratio measured in one run.

    pytest tests/benchmarks/test_latent_speed.py -s

One BLAS thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from boundcalc.lab.latent.attention import attend
from boundcalc.lab.latent.kernels import RBF
from tests.benchmarks.timing import least

pytestmark = pytest.mark.benchmark
KEYS, QUERIES, BATCH, WIDTH, VALUES = 4096, 64, 32, 16, 64


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of one call."""
    return least(work, rounds=1, clock=time.process_time)[0]


def test_half_the_speed_of_the_bare_solve() -> None:
    """The same number of factorisations and solves on both sides, alternating, so that both see the same machine."""
    rng = np.random.default_rng(0)
    k = rng.standard_normal((BATCH, KEYS, WIDTH))
    q, v = rng.standard_normal((BATCH, QUERIES, WIDTH)), rng.standard_normal((BATCH, KEYS, VALUES))
    gram = RBF(2.0).gram(k[0], k[0]) + 0.5 * np.eye(KEYS)
    bare = whole = 0.0
    attend(q[0], k[0], v[0], lam=0.5, kernel=RBF(2.0))
    for start in range(0, BATCH, 4):
        part = slice(start, start + 4)
        bare += seconds(lambda: [cho_solve(cho_factor(gram), one) for one in v[part]])  # noqa: B023 - called at once
        whole += seconds(lambda: attend(q[part], k[part], v[part], lam=0.5, kernel=RBF(2.0)))  # noqa: B023
    print(
        f"\n{BATCH} x {KEYS} keys: attention {whole:.1f} s, bare Cholesky solve {bare:.1f} s, ratio {bare / whole:.2f}"
    )
    assert bare / whole >= 0.5


def test_linear_memory_where_features_are_few() -> None:
    rng = np.random.default_rng(1)
    k, v = rng.standard_normal((10**6, 8)), rng.standard_normal((10**6, 1))
    tracemalloc.start()
    spent = seconds(lambda: attend(k[:QUERIES], k, v, lam=1.0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"\n10^6 keys in the features: {spent:.2f} s, peak {peak / 2**20:.0f} MiB (a Gram matrix has 7.3 TiB)")
    assert peak < 2**30
