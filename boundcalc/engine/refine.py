"""Which scales to chain through where a level may refine the one before: a shortest path over pairs. Not trusted.

What one allocation adds to another does not depend on the number of samples: it is counted once for every pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count, repeat
from typing import NamedTuple

from boundcalc.engine.allocate import Point, covers_of
from boundcalc.engine.options import Item
from boundcalc.proof.certificate import Choice, Cover
from boundcalc.statements.covers import LEMMAS, REFINING

_FARTHEST = 3.0
"""Log of the largest ratio of neighbouring scales that is tried with refinements."""
_FINEST = 1e-4
"""Scales below this part of the least value found so far are of no use."""
_MOST_COUNT = 600.0
_ALIKE = 1e-12
"""Shares that differ by less are one."""


class _Residual(NamedTuple):
    """How an item is refined: on which target of each member, and (how many, parameters of each) of the balls."""

    choices: tuple[Choice, ...]
    balls: tuple[tuple[float, int, str], ...]

    def cost(self, log_ratio: float) -> float:
        """Log count of a refinement e^log_ratio times as fine."""
        if log_ratio <= 0:
            return 0.0
        y = math.exp(log_ratio)
        total = 0.0
        for weight, n, lemma in self.balls:
            if lemma == "T9":
                total += weight * n * math.log(math.ceil(y))
            else:
                t = min(0.5, 1 / n)
                drawn = n * math.log1p(y / (1 - t)) + math.log(n * math.log1p(2 * y / t))
                total += weight * min(drawn + math.log1p(math.exp(-drawn)), n * math.log1p(2 * y))
        return total


class _Common(NamedTuple):
    """What items of one kind have in common at a point: a share, and the least of their log counts."""

    share: float
    least: float


class _Seen(NamedTuple):
    """A point with each item's log count by itself, their sum, which items a finer level may refine, and kinds at one share."""

    point: Point
    scale: float
    counts: list[float]
    total: float
    ready: list[bool]
    common: list[_Common | None]


class Link(NamedTuple):
    """One level of a chain: where its point stands, the items that refine what the level before left, what it adds."""

    at: int
    point: Point
    refined: frozenset[int]
    adds: float


class Refinements:
    """What allocations of the same items leave to finer ones."""

    def __init__(self, items: Sequence[Item], *, refining: bool) -> None:
        self._items = items
        self._residuals = [_residual(item) if refining else None for item in items]
        kinds: dict[object, list[int]] = {}
        for k, residual in enumerate(self._residuals):
            kinds.setdefault(None if residual is None else residual.balls, []).append(k)
        self._kinds = list(kinds.values())
        """Items whose residuals lie in the same balls."""
        self._known: dict[int, _Seen] = {}  # by id: the point is kept
        self._pairs: dict[tuple[int, int], float] = {}

    def best(self, start: float, points: Sequence[Point], m: int) -> list[Link]:
        """The chain of least cost through some of the points."""
        seen = [self._seen(point) for point in points]
        root = math.sqrt(2 / m)
        values: list[float] = []
        backs: list[int] = []
        least, last = 2 * start, -1
        for j, here in enumerate(seen):
            whole = math.sqrt(here.total) * root
            best, back = start * whole, -1
            if here.scale >= start or here.scale < _FINEST * least:
                best = math.inf
            for i in range(j - 1, -1, -1) if best < math.inf else ():
                bound = values[i] + seen[i].scale * whole
                if values[i] < best and seen[i].point.log_scale - here.point.log_scale <= _FARTHEST:
                    bound = values[i] + seen[i].scale * math.sqrt(self._pair(seen[i], here)) * root
                if bound < best:
                    best, back = bound, i
            values.append(best)
            backs.append(back)
            if best + 2 * here.scale < least:
                least, last = best + 2 * here.scale, j
        chain: list[int] = []
        while last >= 0:
            chain.append(last)
            last = backs[last]
        chain.reverse()
        ends = zip([-1, *chain], chain, strict=False)
        links = [(at, self._link(None if before < 0 else seen[before], seen[at])) for before, at in ends]
        return [link._replace(at=at) for at, link in links]

    def covers(self, link: Link) -> dict[str, Cover]:
        """A level's covers, some of them of what the level before has left."""
        covers = covers_of(self._items, link.point)
        for k in link.refined:
            residual = self._residuals[k]
            assert residual is not None  # noqa: S101 - only items with one are refined
            key = self._items[k].key
            covers[key] = Cover(covers[key].log_eps, residual.choices)
        return covers

    def _link(self, before: _Seen | None, here: _Seen) -> Link:
        """One level of a chain, behind another."""
        counts = here.counts if before is None else list(self._counts(before, here))
        refined = frozenset(k for k, count in enumerate(counts) if count < here.counts[k])
        return Link(0, here.point, refined, sum(counts))

    def _seen(self, point: Point) -> _Seen:
        if id(point) not in self._known:
            counts = [math.exp(min(cost, _MOST_COUNT)) if cost > -math.inf else 0.0 for cost in point.costs]
            ready = _ready(self._residuals, point.choices(self._items))
            common = [_common(kind, point.shares, counts, ready) for kind in self._kinds]
            self._known[id(point)] = _Seen(point, math.exp(point.log_scale), counts, sum(counts), ready, common)
        return self._known[id(point)]

    def _pair(self, before: _Seen, here: _Seen) -> float:
        """The log count that a point adds to another."""
        key = (id(before.point), id(here.point))
        if key not in self._pairs:
            self._pairs[key] = sum(map(self._kind_counts, self._kinds, repeat(before), repeat(here), count()))
        return self._pairs[key]

    def _kind_counts(self, kind: Sequence[int], before: _Seen, here: _Seen, at: int) -> float:
        """The log count of the items of a kind at a point, from another."""
        one, other = before.common[at], here.common[at]
        residual = self._residuals[kind[0]]
        if one is not None and other is not None and residual is not None:
            cost = residual.cost(one.share - other.share)
            if cost <= other.least:
                return len(kind) * cost
        return sum(self._count(before, here, k) for k in kind)

    def _counts(self, before: _Seen, here: _Seen) -> Iterator[float]:
        """The log count of each item at a point, from another."""
        return (self._count(before, here, k) for k in range(len(self._items)))

    def _count(self, before: _Seen, here: _Seen, k: int) -> float:
        count, residual = here.counts[k], self._residuals[k]
        if not count or not before.ready[k] or residual is None:
            return count
        return min(count, residual.cost(before.point.shares[k] - here.point.shares[k]))


def _common(
    kind: Sequence[int], shares: Sequence[float], counts: Sequence[float], ready: Sequence[bool]
) -> _Common | None:
    """What the items of a kind have in common, if all may be refined and have one share."""
    share = shares[kind[0]]
    if len(kind) > 1 and all(ready[k] and counts[k] and abs(shares[k] - share) < _ALIKE for k in kind):
        return _Common(share, min(counts[k] for k in kind))
    return None


def _residual(item: Item) -> _Residual | None:
    """The balls that an item's residual lies in; None where its covers are of several metrics that may change."""
    choices: list[Choice] = []
    balls: list[tuple[float, int, str]] = []
    for log_multiplicity, options in item.members:
        index = options[-1].index
        target = options[-1].target
        lemma = next((name for name in REFINING if LEMMAS[name].applies(target) is None), None)
        if lemma is None:
            return None
        copies, n = (target.d, target.k) if target.kind == "table" else (1, target.size)
        params = LEMMAS[lemma].params(0.0, target, 1)
        choices.append(Choice(lemma, index, params, refines=True))
        balls.append((math.exp(log_multiplicity) * copies, n, lemma))
    return _Residual(tuple(choices), tuple(balls))


def _ready(residuals: Sequence[_Residual | None], covers: Sequence[tuple[Choice, ...]]) -> list[bool]:
    """Which items a finer level may refine: those that are covered on the targets of their residuals."""
    return [
        residual is not None
        and all(
            mine.lemma != "zero" and mine.target == theirs.target
            for mine, theirs in zip(choices, residual.choices, strict=True)
        )
        for residual, choices in zip(residuals, covers, strict=True)
    ]
