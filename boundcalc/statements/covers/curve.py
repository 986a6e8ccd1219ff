"""The shape of a cost that no formula gives: tabulated over log y as it is asked for, for the optimiser alone."""

from __future__ import annotations

import math
from collections.abc import Callable

STEP = 0.5
"""Distance of neighbouring nodes in log y."""
LAST = 80
"""Beyond e^40 a cost grows by its dimension times log y."""


class Curve:
    """log cost as a function of log y >= 0, and where cost(y) + e^u / y is least. Values at nodes are kept."""

    def __init__(self, dimension: float, log_cost: Callable[[float], float]) -> None:
        self._dimension = dimension
        self._exact = log_cost
        self._values: dict[int, float] = {}
        self._best: dict[int, float] = {}

    def log_cost(self, log_y: float) -> float:
        """Near the cost: linear between nodes."""
        place = max(0.0, log_y / STEP)
        if place >= LAST:
            grown = self._dimension * (log_y - LAST * STEP)
            return math.log(math.exp(self._node(LAST)) + grown)
        low = int(place)
        part = place - low
        return (1 - part) * self._node(low) + part * self._node(low + 1)

    def best(self, u: float) -> float:
        """The log y that minimises cost + e^(u - log y); linear between nodes of u."""
        place = u / STEP
        low = math.floor(place)
        part = place - low
        return (1 - part) * self._best_at(low) + part * self._best_at(low + 1)

    def _node(self, i: int) -> float:
        if i not in self._values:
            self._values[i] = self._exact(i * STEP)
        return self._values[i]

    def _best_at(self, place: int) -> float:
        if place not in self._best:
            self._best[place] = self._search(place * STEP)
        return self._best[place]

    def _search(self, u: float) -> float:
        beyond = u - math.log(self._dimension)
        if beyond >= LAST * STEP:
            return beyond
        low, high = 0, LAST

        def value(i: int) -> float:
            first, second = self._node(i), u - i * STEP
            top = max(first, second)
            return top + math.log1p(math.exp(min(first, second) - top))

        while high - low > 2:
            middle = (low + high) // 2
            if value(middle) < value(middle + 1):
                high = middle + 1
            else:
                low = middle
        i = min(range(low, high + 1), key=value)
        if i in (0, LAST):
            return i * STEP
        before, at, after = value(i - 1), value(i), value(i + 1)
        bend = before - 2 * at + after
        return STEP * (i + (max(-0.5, min(0.5, (before - after) / (2 * bend))) if bend > 0 else 0.0))
