"""k of n exchangeable bits are within k(k-1)/(2n) of bits that are independent given a latent variable (X1).

Urns are the hardest case: k draws without replacement from n bits. Computed: X1. Measured: the total variation from the
law of the draws to the nearest mixture of independent bits on a grid of probabilities, found by a linear programme.

    python examples/zhang2022/exchangeable.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from common import Array, Values, run
from scipy.optimize import linprog
from scipy.stats import binom, hypergeom

QUICK = {"n": (6, 10)}


def x1(k: int, n: int) -> float:
    """Total variation between k of n exchangeable tokens and a mixture of independent ones is at most this."""
    return min(1.0, k * (k - 1) / (2 * n))


def urn(ones: int, n: int, k: int) -> Array:
    """The law of the number of ones among k bits drawn without replacement from n bits with so many ones."""
    return hypergeom.pmf(np.arange(k + 1), n, ones, k)


def mixture_distance(law: Sequence[float] | Array, points: int = 150) -> float:
    """Total variation to the nearest mixture of i.i.d. bits whose probabilities lie on a grid: an upper bound.

    The mixture that the solver found is measured, not its objective.
    """
    p = np.asarray(law, dtype=float)
    bits = len(p) - 1
    z = (1 - np.cos(np.linspace(0, math.pi, points))) / 2
    laws = binom.pmf(np.arange(bits + 1)[:, None], bits, z)
    cost = np.concatenate([np.zeros(points), np.full(2 * len(p), 0.5)])
    equal = np.block([[laws, np.eye(len(p)), -np.eye(len(p))], [np.ones((1, points)), np.zeros((1, 2 * len(p)))]])
    solution = linprog(cost, A_eq=equal, b_eq=np.append(p, 1.0), method="highs")
    if not solution.success:
        raise ArithmeticError(f"the linear programme failed: {solution.message}")
    mixture = np.maximum(solution.x[:points], 0.0)
    return 0.5 * float(np.abs(p - laws @ (mixture / mixture.sum())).sum())


def main(n: tuple[int, ...] = (6, 10, 20), k: tuple[int, ...] = (2, 3, 4, 5)) -> tuple[Values, Values]:
    """X1 and the largest distance among urns of n bits, by k and n."""
    computed: Values = {}
    measured: Values = {}
    for total in n:
        for drawn in k:
            key = f"k = {drawn} of n = {total}"
            computed[key] = x1(drawn, total)
            measured[key] = max(mixture_distance(urn(ones, total, drawn)) for ones in range(1, total))
    return computed, measured


if __name__ == "__main__":
    run(main)
