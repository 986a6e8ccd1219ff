"""Which scales to chain through (G1): a shortest path. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence


class Chains:
    """Least e_J + weight * sum of e_(j-1) sqrt(count_j) over falling subsequences of the scales added so far.

    Scales fall from below `start` = e_0, counts are over m and rise (inf where out of range). The empty chain costs e_0.

    Reaching j from i costs cost_i + e_i x, x = weight sqrt(count_j): a line in x, flatter for later i. As x rises the
    least line is never an earlier one again, so one pass over the lower envelope serves every j.
    """

    def __init__(self, start: float, weight: float) -> None:
        self._weight = weight
        self._slopes, self._costs, self._ends = [start], [0.0], [-1]
        """The envelope's lines; those before `at` are done with."""
        self._at = 0
        self._backs: list[int] = []
        self._x = 0.0
        self.least, self.last = start, -1

    def add(self, scale: float, count: float) -> float:
        """One more scale; what a chain costs at least that goes to it or beyond."""
        self._x = x = max(self._x, self._weight * math.sqrt(count))
        if x == math.inf:
            return x
        slopes, costs, ends, at = self._slopes, self._costs, self._ends, self._at
        while at + 1 < len(ends) and costs[at + 1] + slopes[at + 1] * x < costs[at] + slopes[at] * x:
            at += 1
        cost = costs[at] + slopes[at] * x
        self._at = at
        self._backs.append(ends[at])
        if cost + scale < self.least:
            self.least, self.last = cost + scale, len(self._backs) - 1
        while len(ends) > at + 1 and _never_least(slopes, costs, scale, cost):
            slopes.pop()
            costs.pop()
            ends.pop()
        slopes.append(scale)
        costs.append(cost)
        ends.append(len(self._backs) - 1)
        return cost

    def path(self) -> list[int]:
        """The scales of the least chain."""
        chain: list[int] = []
        last = self.last
        while last >= 0:
            chain.append(last)
            last = self._backs[last]
        return chain[::-1]


def best_chain(
    start: float, scales: Sequence[float], counts: Sequence[float], weight: float
) -> tuple[float, list[int]]:
    """The least chain through some of the scales, and their indices."""
    chains = Chains(start, weight)
    for scale, count in zip(scales, counts, strict=True):
        if chains.add(scale, count) == math.inf:
            break
    return chains.least, chains.path()


def _never_least(slopes: Sequence[float], costs: Sequence[float], slope: float, cost: float) -> bool:
    """Whether the last line lies above the one before it or above a new, flatter one, everywhere."""
    reached = (costs[-1] - costs[-2]) * (slopes[-2] - slope)
    return reached >= (cost - costs[-2]) * (slopes[-2] - slopes[-1])
