"""Which scales to chain through, where a level may refine the one before (G12): a shortest path over pairs.

Not trusted.

What one allocation adds to another does not depend on the number of samples: it is counted once for every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from boundcalc.engine._allocate import Point
from boundcalc.engine._items import Cost, Item, Option, cost_of
from boundcalc.proof.certificate import Choice, Cover
from boundcalc.statements.covers import LEMMAS, REFINING

_FARTHEST = 3.0
"""Log of the largest ratio of neighbouring scales that is tried with refinements."""
_FINEST = 1e-4
"""Scales below this part of the smallest value so far are of no use."""
_MOST_COUNT = 600.0


class _Residual(NamedTuple):
    """How an item is refined: on which target of each member, and how many balls of which cost."""

    choices: tuple[Choice, ...]
    balls: tuple[tuple[float, Cost], ...]

    def left_by(self, options: Sequence[Option | None]) -> bool:
        """Whether covers leave these balls."""
        pairs = zip(options, self.choices, strict=True)
        return all(option is not None and option.index == choice.target for option, choice in pairs)

    def cost(self, log_ratio: float, *, exact: bool = False) -> float:
        """Log count of a refinement e^log_ratio times as fine."""
        if log_ratio <= 0:
            return 0.0
        count = 0.0
        for weight, cost in self.balls:
            count += weight * math.exp(cost.exact(log_ratio) if exact else cost(log_ratio))
        return count


class Link(NamedTuple):
    """One level of a chain: its point, the pieces that refine what the level before left, and what it adds."""

    point: Point
    refined: frozenset[int]
    adds: float


class Chains:
    """The best chains through allocations of the same items."""

    def __init__(self, items: Sequence[Item], *, refining: bool) -> None:
        self._items = items
        self._residuals = [_residual(item) if refining else None for item in items]
        self._added, self._refinable, self._fresh = cache(self._adds), cache(self._may_refine), cache(_fresh)

    def best(self, start: float, points: Sequence[Point], m: int) -> list[Link]:
        """The chain from a scale that makes the smallest bound."""
        root = math.sqrt(2 / m)
        scales = [math.exp(point.log_scale) for point in points]
        fresh = [math.exp(min(point.log_count, _MOST_COUNT)) for point in points]
        values: list[float] = []
        backs: list[int] = []
        least, last = 2 * start, -1
        for j, here in enumerate(points):
            whole = math.sqrt(fresh[j]) * root
            best, back = start * whole, -1
            if scales[j] >= start or scales[j] < _FINEST * least:
                best = math.inf
            for i in range(j - 1, -1, -1) if best < math.inf else ():
                bound = values[i] + scales[i] * whole
                if values[i] < best and points[i].log_scale - here.log_scale <= _FARTHEST:
                    bound = values[i] + scales[i] * math.sqrt(self._added(points[i], here)) * root
                if bound < best:
                    best, back = bound, i
            values.append(best)
            backs.append(back)
            if best + 2 * scales[j] < least:
                least, last = best + 2 * scales[j], j
        path: list[Point] = []
        while last >= 0:
            path.append(points[last].exact())
            last = backs[last]
        path.reverse()
        return [self.link(before, here) for before, here in zip([None, *path], path, strict=False)]

    def link(self, before: Point | None, here: Point) -> Link:
        """One level of a chain, behind another, with exact counts."""
        counts, refined = self._counts(before, here, _fresh(here), exact=True)
        return Link(here, frozenset(refined), sum(counts))

    def covers(self, link: Link) -> dict[str, Cover]:
        """A level's covers, some of them of what the level before has left."""
        covers = link.point.covers()
        for k in link.refined:
            residual, key = self._residuals[k], self._items[k].key
            assert residual is not None  # noqa: S101 - only items with one are refined
            covers[key] = Cover(covers[key].log_eps, residual.choices)
        return covers

    def _adds(self, before: Point, here: Point) -> float:
        """The log count that a point adds to another, about."""
        return sum(self._counts(before, here, self._fresh(here))[0])

    def _counts(
        self, before: Point | None, here: Point, fresh: Sequence[float], *, exact: bool = False
    ) -> tuple[list[float], list[int]]:
        """The log count of every item behind another point, and which items refine what that one has left."""
        counts, refined = list(fresh), list[int]()
        for k, residual in () if before is None else self._refinable(before):
            if counts[k] and before is not None:
                more = residual.cost(before.shares[k] - here.shares[k], exact=exact)
                if more < counts[k]:
                    counts[k] = more
                    refined.append(k)
        return counts, refined

    def _may_refine(self, before: Point) -> list[tuple[int, _Residual]]:
        """The items that a finer level may refine: those that are covered in the metric of their residual."""
        ready: list[tuple[int, _Residual]] = []
        for k, (item, residual) in enumerate(zip(self._items, self._residuals, strict=True)):
            if residual is not None and residual.left_by(item.cheapest(before.shares[k])):
                ready.append((k, residual))
        return ready


def _fresh(point: Point) -> list[float]:
    return [math.exp(min(cost, _MOST_COUNT)) for cost in point.costs]


def _residual(item: Item) -> _Residual | None:
    """The balls that an item's residual lies in; None where its covers are of several metrics that may change."""
    choices: list[Choice] = []
    balls: list[tuple[float, Cost]] = []
    for log_multiplicity, options in item.members:
        index, target = options[-1].index, options[-1].target
        name = next((name for name in REFINING if LEMMAS[name].applies(target) is None), None)
        if name is None:
            return None
        lemma = LEMMAS[name]
        choices.append(Choice(name, index, lemma.params(0.0, target, 1), refines=True))
        balls.append((math.exp(log_multiplicity), cost_of(lemma, target, 1)))
    return _Residual(tuple(choices), tuple(balls))
