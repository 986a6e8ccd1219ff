"""The condition number kappa = |w M^+| decides what a pretext task is worth downstream (X6).

z ~ N(0, I_p); a sequence is L tokens z + noise, so h = E[z | X] is the shrunken mean. The pretext tasks predict M z
from X, by least squares on m labelled sequences; the downstream task is w z, through the head w M^+ on the pretext
outputs. As the law is known, all errors are exact. Computed: X6. Measured: the downstream error of the head, by the
least singular value of M (the greatest is 1).

    python examples/zhang2022/transfer.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from common import Array, Values, run

from boundcalc.lab.latent.transfer import condition, transfer_bound

QUICK: dict[str, Any] = {"repetitions": 4}
TASKS = 6
"""Rows of M."""


def pretext_matrix(p: int, diversity: float, rng: np.random.Generator) -> Array:
    """M with singular values from 1 down to `diversity`, evenly in logs."""
    left = np.linalg.qr(rng.standard_normal((TASKS, p)))[0]
    right = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return left * np.geomspace(1.0, diversity, p) @ right.T


def means(rng: np.random.Generator, n: int, p: int, L: int) -> tuple[Array, Array]:
    """z, and the means of the tokens of n sequences."""
    z = rng.standard_normal((n, p))
    return z, z + rng.standard_normal((n, p)) / math.sqrt(L)


def main(
    diversity: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
    p: int = 4,
    L: int = 32,
    m: int = 2000,
    labels: int = 100,
    repetitions: int = 50,
    seed: int = 0,
) -> tuple[Values, Values]:
    """X6 and exact downstream errors, means over repetitions, by diversity; the largest ratio under "worst"."""
    computed, measured = Values(), Values({"worst": 0.0})
    variance = 1 + 1 / L  # of the mean of the tokens, in each coordinate
    c = 1 / variance  # h = c times that mean
    for index, least in enumerate(diversity):
        rows: list[tuple[float, ...]] = []
        for repetition in range(repetitions):
            rng = np.random.default_rng([seed, index, repetition])
            M = pretext_matrix(p, least, rng)
            w = np.linalg.svd(M)[2].sum(0) / math.sqrt(p)  # an equal part of every right singular direction
            z, seen = means(rng, m, p, L)
            learned = np.linalg.lstsq(seen, z @ M.T + rng.standard_normal((m, TASKS)), rcond=None)[0].T
            pretext = float(np.square(learned - c * M).sum()) * variance
            kappa, head, _ = condition(M, w)
            bound = transfer_bound(M, w, pretext).value
            z, seen = means(rng, labels, p, L)
            other = np.linalg.lstsq(seen @ learned.T, z @ w + rng.standard_normal(labels), rcond=1e-10)[0]
            errors = [float(np.square(one @ learned - c * w).sum()) * variance for one in (head, other)]
            rows.append((kappa, pretext, errors[0], bound, errors[1]))
            measured["worst"] = max(measured["worst"], errors[0] / bound)
        kappa, pretext, error, bound, fitted = np.mean(rows, axis=0)
        key = f"least singular value {least:g}"
        computed[key], measured[key] = float(bound), float(error)
        print(f"{key}: kappa {kappa:.4g}, pretext error {pretext:.3g}, a head fitted to {labels} labels {fitted:.3g}")
    computed["worst"] = 1.0  # no run may exceed its own bound
    return computed, measured


if __name__ == "__main__":
    run(main)
