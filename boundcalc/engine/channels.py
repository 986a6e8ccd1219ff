"""Which levels a chain of channels has, and how much noise they carry (G14). Not trusted.

What levels tell of a map together hangs on all of them. The path is found as if it hung on the last two, in totals that are
counted once for every allocation; the noise on that path is chosen map by map, and what it tells is then counted anew.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from boundcalc.engine.allocate import Point
from boundcalc.engine.heard import FIRST, LARGEST, Map, Said, maps_of
from boundcalc.engine.options import Item
from boundcalc.engine.refine import Link, Refinements
from boundcalc.proof.certificate import Choice, Cover

_FARTHEST = 3.0
"""Log of the largest ratio of neighbouring scales that is tried."""
_FINEST = 1e-4
"""Scales below this part of the least value found so far are of no use."""
_BEFORE = 0.05
"""How much the levels before the last add to its precision, about."""


class _Totals(NamedTuple):
    """What all items that channels may serve tell at one point by themselves; their excess, and the counts of others."""

    told: float
    fixed: float


_NOTHING = _Totals(0.0, 0.0)


class Level(NamedTuple):
    """One level of a chain: its covers and where its point stands, what items say instead, what it adds in all.

    `mixed`: whether some map stays covered in the whole chain.
    """

    link: Link
    said: Sequence[Sequence[Said] | None]
    adds: float
    mixed: bool


class Channels:
    """What allocations of the same items tell where maps are seen through noise."""

    def __init__(self, items: Sequence[Item], laws: Container[str], refinements: Refinements) -> None:
        """`refinements`: those of the same items, for the maps that stay covered."""
        self._items = items
        self._maps = [maps_of(item, laws) for item in items]
        self._refinements = refinements
        self._known: dict[int, tuple[Point, _Totals]] = {}  # by id: the point is kept

    def best(self, start: float, points: Sequence[Point], m: int) -> list[Level]:
        """A chain of little cost through some of the points; none where no map is better seen through noise."""
        if not any(self._maps):
            return []
        found = self._along(start, points, self._path(start, points, m))
        if found and not any(level.mixed for level in found):
            return found
        other = self._along(start, points, [link.at for link in self._refinements.best(start, points, m)])
        return min((each for each in (found, other) if each), key=lambda each: _cost(start, each, m), default=[])

    def _along(self, start: float, points: Sequence[Point], path: Sequence[int]) -> list[Level]:
        """The levels of a chain; none where every map is better covered."""
        levels = self._levels(start, [points[i] for i in path])
        return [level._replace(link=level.link._replace(at=i)) for i, level in zip(path, levels, strict=False)]

    def covers(self, level: Level) -> dict[str, Cover]:
        """How a certificate says it."""
        covers = self._refinements.covers(level.link)
        for item, said in zip(self._items, level.said, strict=True):
            if said is not None:
                choices = tuple(Choice(each.law, each.target, each.params) for each in said)
                covers[item.key] = Cover(covers[item.key].log_eps, choices)
        return covers

    # -- the path

    def _totals(self, point: Point) -> _Totals:
        if id(point) not in self._known:
            told = fixed = 0.0
            for maps, share, cost in zip(self._maps, point.shares, point.costs, strict=True):
                if cost == -math.inf:
                    continue
                if maps is None or any(each.farthest - share > LARGEST for each in maps):
                    fixed += math.exp(min(cost, LARGEST))
                    continue
                for each in maps:
                    noise = each.noise(FIRST)
                    told += each.weight * each.told(noise.log_precision + _BEFORE - 2 * share)
                    fixed += each.weight * each.copies * noise.excess
            self._known[id(point)] = point, _Totals(told, fixed)
        return self._known[id(point)][1]

    def _path(self, start: float, points: Sequence[Point], m: int) -> list[int]:
        """Least cost where each level knows of the one before it alone."""
        root = math.sqrt(2 / m)
        logs = [point.log_scale for point in points]
        scales = [math.exp(log_scale) for log_scale in logs]
        told: list[float] = []
        values: list[float] = []
        backs: list[int] = []
        least, last = 2 * start, -1
        for j, scale in enumerate(scales):
            best, back = math.inf, -1
            totals = _NOTHING
            if start > scale > _FINEST * least:
                totals = self._totals(points[j])
                best, back = start * math.sqrt(max(0.0, totals.told + totals.fixed)) * root, -1
                farthest, here = logs[j] + _FARTHEST, logs[j]
                i = j - 1
                while i >= 0 and logs[i] <= farthest:
                    if values[i] < best:
                        apart = 2 * (logs[i] - here)
                        adds = totals.told - told[i]
                        if (
                            apart > 0
                        ):  # precisions add up: as much is told as at the finer level's and its log(1 + e^-apart)
                            adds *= 1 + math.log1p(math.exp(-apart)) / apart
                        bound = values[i] + scales[i] * math.sqrt(max(0.0, adds + totals.fixed)) * root
                        if bound < best:
                            best, back = bound, i
                    i -= 1
            told.append(totals.told)
            values.append(best)
            backs.append(back)
            if best + 2 * scale < least:
                least, last = best + 2 * scale, j
        path: list[int] = []
        while last >= 0:
            path.append(last)
            last = backs[last]
        return path[::-1]

    # -- the levels

    def _levels(self, start: float, points: Sequence[Point]) -> Iterator[Level]:
        scales = [start, *(math.exp(point.log_scale) for point in points)]
        covered = self._refinements.along(points)
        weights = _weights(scales, [self._totals(point) for point in points])
        spoken: list[list[Sequence[Said] | None] | None] = []
        for k, maps in enumerate(self._maps):
            said = None if maps is None else self._said(k, maps, points, weights)
            if said is not None:
                heard = sum(w * (b - a) for w, a, b in zip(weights, [0.0, *_sums(said)], _sums(said), strict=False))
                if heard >= sum(w * counts[k] for w, (_, counts) in zip(weights, covered, strict=True)):
                    said = None
            spoken.append(said)
        if not any(spoken):
            return
        before = [0.0] * len(self._items)
        for j, (link, counts) in enumerate(covered):
            adds = 0.0
            for k, said in enumerate(spoken):
                level = None if said is None else said[j]
                if said is None:
                    adds += counts[k]
                elif level is not None:
                    now = sum(each.told for each in level)
                    adds += now - before[k]
                    before[k] = now
            yield Level(link, [None if said is None else said[j] for said in spoken], adds, None in spoken)

    def _said(
        self, k: int, maps: Sequence[Map], points: Sequence[Point], weights: Sequence[float]
    ) -> list[Sequence[Said] | None] | None:
        """What an item says at every level, None where it is left out; None where its noise is too small for floats."""
        at: list[int] = []
        finest = math.inf
        for j, point in enumerate(points):
            if point.costs[k] > -math.inf and point.shares[k] < finest:
                at.append(j)
                finest = point.shares[k]
        if not at or any(each.farthest - finest > LARGEST for each in maps):
            return None
        shares = [points[j].shares[k] for j in at]
        parts = [each.said(shares, [weights[j] for j in at]) for each in maps]
        found: list[Sequence[Said] | None] = []
        level: Sequence[Said] | None = None
        for j, point in enumerate(points):
            if j in at:
                level = [part[at.index(j)] for part in parts]
            found.append(level if point.costs[k] > -math.inf else None)
        return found


def _cost(start: float, levels: Sequence[Level], m: int) -> float:
    """What a chain comes to, but for its deviation."""
    scales = [start, *(math.exp(level.link.point.log_scale) for level in levels)]
    links = (scale * math.sqrt(2 * max(level.adds, 0.0) / m) for scale, level in zip(scales, levels, strict=False))
    return 2 * scales[-1] + sum(links)


def _weights(scales: Sequence[float], totals: Sequence[_Totals]) -> list[float]:
    """What a nat weighs at each level, about: the slopes of the links; they must not rise."""
    found: list[float] = []
    before = 0.0
    for coarser, each in zip(scales, totals, strict=False):
        adds = max(each.told - before, 0.0) + each.fixed
        weight = coarser / math.sqrt(max(adds, 1e-9))
        found.append(min([weight, *found[-1:]]))
        before = each.told
    return found


def _sums(said: Sequence[Sequence[Said] | None]) -> list[float]:
    """What an item has told by each level."""
    found: list[float] = []
    for level in said:
        found.append(found[-1] if level is None and found else sum(each.told for each in level or ()))
    return found
