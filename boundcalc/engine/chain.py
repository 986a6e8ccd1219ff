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

    Reaching j from i costs cost_i + e_i x, x = weight sqrt(count_j): a line in x, flatter for later i. As x rises the
    least line is never an earlier one again, so one pass over the lower envelope serves every j.
    """
    slopes, costs, ends = [start], [0.0], [-1]
    """The envelope's lines; those before `at` are done with."""
    at = 0
    best, last = start, -1
    backs: list[int] = []
    x = 0.0
    for j, (scale, count) in enumerate(zip(scales, counts, strict=True)):
        x = max(x, weight * math.sqrt(count))
        if x == math.inf:
            break
        while at + 1 < len(ends) and costs[at + 1] + slopes[at + 1] * x < costs[at] + slopes[at] * x:
            at += 1
        cost = costs[at] + slopes[at] * x
        backs.append(ends[at])
        if cost + scale < best:
            best, last = cost + scale, j
        while len(ends) > at + 1 and _never_least(slopes, costs, scale, cost):
            slopes.pop()
            costs.pop()
            ends.pop()
        slopes.append(scale)
        costs.append(cost)
        ends.append(j)
    chain: list[int] = []
    while last >= 0:
        chain.append(last)
        last = backs[last]
    return best, chain[::-1]


def _never_least(slopes: Sequence[float], costs: Sequence[float], slope: float, cost: float) -> bool:
    """Whether the last line lies above the one before it or above a new, flatter one, everywhere."""
    reached = (costs[-1] - costs[-2]) * (slopes[-2] - slope)
    return reached >= (cost - costs[-2]) * (slopes[-2] - slopes[-1])
