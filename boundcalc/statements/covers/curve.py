"""The shape of a cost that no formula gives: tabulated over log y as it is asked for, for the optimiser alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from boundcalc.base.numbers import log_add

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
        try:
            near, far = self._values[low], self._values[low + 1]
        except KeyError:
            near, far = self._node(low), self._node(low + 1)
        return (1 - part) * near + part * far

    def best(self, u: float) -> float:
        """The log y that minimises cost + e^(u - log y); linear between nodes of u."""
        place = u / STEP
        low = math.floor(place)
        part = place - low
        try:  # a search asks thousands of times, at few places
            near, far = self._best[low], self._best[low + 1]
        except KeyError:
            near, far = self._best_at(low), self._best_at(low + 1)
        return (1 - part) * near + part * far

    def _node(self, i: int) -> float:
        found = self._values.get(i)
        if found is None:
            found = self._values[i] = self._exact(i * STEP)
        return found

    def _best_at(self, place: int) -> float:
        found = self._best.get(place)
        if found is None:
            found = self._best[place] = self._search(place * STEP)
        return found

    def _search(self, u: float) -> float:
        beyond = u - math.log(self._dimension)
        if beyond >= LAST * STEP:
            return beyond
        i = max(0, round(beyond / STEP))  # where it would be if the cost grew by its dimension alone
        least = self._value(i, u)
        for step in (1, -1):
            while 0 <= i + step <= LAST and (there := self._value(i + step, u)) < least:
                i, least = i + step, there
        if i in (0, LAST):
            return i * STEP
        before, after = self._value(i - 1, u), self._value(i + 1, u)
        bend = before - 2 * least + after
        return STEP * (i + (max(-0.5, min(0.5, (before - after) / (2 * bend))) if bend > 0 else 0.0))

    def _value(self, i: int, u: float) -> float:
        return log_add(self._node(i), u - i * STEP)
