"""Which scales to chain through (G1): a shortest path. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence


def best_chain(
    start: float, scales: Sequence[float], counts: Sequence[float], weight: float
) -> tuple[float, list[int]]:
    """Least e_J + weight * sum of e_(j-1) sqrt(count_j) over falling subsequences, and their indices.

    scales fall from below `start` = e_0, counts are log counts over m and rise (inf where out of range). The empty
    chain costs e_0.
    """
    costs: list[float] = []
    backs: list[int] = []
    best, end = start, -1
    for j, count in enumerate(counts):
        root = weight * math.sqrt(count)
        cost, back = start * root, -1
        for i in range(j):
            through = costs[i] + scales[i] * root
            if through < cost:
                cost, back = through, i
        costs.append(cost)
        backs.append(back)
        if cost + scales[j] < best:
            best, end = cost + scales[j], j
    chain: list[int] = []
    while end >= 0:
        chain.append(end)
        end = backs[end]
    return best, chain[::-1]
