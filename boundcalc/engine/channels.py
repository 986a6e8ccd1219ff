"""Which levels a chain of channels has, and how much noise they carry (G14). Not trusted.

What levels tell of a map together hangs on all of them. The path is found as if it hung on the last two, in totals that are
counted once for every allocation; the noise on that path is chosen map by map, and what it tells is then counted anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import NamedTuple

from boundcalc.base.numbers import FLOAT, log_add
from boundcalc.engine.allocate import Point
from boundcalc.engine.options import Item
from boundcalc.engine.refine import Link, Refinements
from boundcalc.proof.certificate import Choice, Cover
from boundcalc.statements import channels
from boundcalc.statements.covers import LEMMAS, Params
from boundcalc.statements.covers.curve import Curve
from boundcalc.statements.covers.tuning import tuning
from boundcalc.statements.noises import NOISES, Noise
from boundcalc.statements.targets import Target

_FARTHEST = 3.0
"""Log of the largest ratio of neighbouring scales that is tried."""
_FINEST = 1e-4
"""Scales below this part of the least value found so far are of no use."""
_LARGEST = 300.0
"""Log of a budget over the size of noise whose square floats can hold."""
_CENTRES = {"V2": "T13", "V2t": "T13", "V3": "T14"}
"""Whose centres have the law that a noise is compared with: their parameters serve it too."""
_MOST_EXPONENT = 30
_STRIDES = (4, 1)
_BEFORE = 0.05
"""How much the levels before the last add to its precision, about."""


class _Told(Curve):
    """What Gaussian noise tells of a map at most, by the log of budget over size: of one law."""

    def __init__(self, law: Noise, d: int, k: int) -> None:
        super().__init__(d * k, lambda log_z: math.log(max(self.exactly(log_z, self.params(log_z)), 1e-9)))
        self._law = law
        self._sides = d, k
        self._tuned = tuning(LEMMAS[_CENTRES[law.name]], d, k, 1) if law.names else None  # type: ignore[arg-type]

    def params(self, log_z: float) -> Params:
        """Near-optimal ones: those of centres reached through noise of that size."""
        if self._tuned is None:
            return {}
        least = sum(self._sides) + 1.0
        found = self._tuned.params(log_z - math.log(least) / 2)
        found = self._tuned.params(log_z - math.log(least + 2 * found["a"]) / 2)
        return {name: found[name] for name in self._law.names}

    def exactly(self, log_z: float, params: Params) -> float:
        """As the checker counts it."""
        return self._law.missed(FLOAT, math.exp(min(log_z, _LARGEST)), *self._sides, params)

    def nearly(self, log_z: float) -> float:
        """Off the curve, where there is one."""
        if self._tuned is None or log_z <= 0:
            return self.exactly(log_z, self.params(log_z))
        return math.exp(self.log_cost(log_z))


@lru_cache(maxsize=4096)
def _told(law: str, d: int, k: int) -> _Told:
    """One per law and shape."""
    return _Told(NOISES[law], d, k)


class _Noise(NamedTuple):
    """Noise with the exponent a: log of its precision, and its excess."""

    a: float
    log_precision: float
    excess: float


@lru_cache(maxsize=65536)
def _noise(d: int, k: int, at: int) -> _Noise:
    """Noises on the spectral ball of d x k, from uniform to nearly Gaussian: the exponents that centres try."""
    sides = channels.Shape(d, k, 1)
    a = 0.0 if at == 0 else (d + k + 1) / 128 * _POWERS[at - 1]
    return _Noise(a, math.log(channels.precision(FLOAT, sides, a)), channels.excess(FLOAT, sides, a))


_POWERS = [math.sqrt(2) ** j for j in range(_MOST_EXPONENT)]
_FIRST = 7
"""Which of them is tried first."""


class Said(NamedTuple):
    """What a member says at one level, seen one way: its noise, the law of its outputs so far, and what they tell."""

    target: int
    law: str
    params: Params
    told: float


class _Map:
    """One member of an item, as channels see it: at least one law."""

    def __init__(self, weight: float, index: int, target: Target, log_gain: float, laws: Container[str]) -> None:
        self.weight = weight
        self.index = index
        self.copies = channels.shape(target).copies
        self._sides = channels.shape(target)[:2]
        self._laws = [
            (law.reach(target).log + log_gain, name, _told(name, *law.sides(target)))
            for name, law in NOISES.items()
            if name in laws and channels.refuses(law, target) is None and _promising(name, target)
        ]
        self._slopes: dict[float, float] = {}  # chains through the same points ask again
        self._exact: dict[float, tuple[float, str, Params]] = {}
        self._chose: dict[tuple[float, ...], int] = {}
        self.farthest = max((reach for reach, _, _ in self._laws), default=math.inf)

    def noise(self, at: int) -> _Noise:
        """One of the noises to choose from."""
        return _noise(*self._sides, at)

    def told(self, log_total: float) -> float:
        """The least that a law gives at a sum of precisions, nearly."""
        return min([told.nearly(reach + log_total / 2) for reach, _, told in self._laws])

    def slope(self, log_total: float) -> float:
        """How fast that grows with the log of the sum."""
        if log_total not in self._slopes:
            self._slopes[log_total] = (self.told(log_total + _STEP) - self.told(log_total)) / _STEP
        return self._slopes[log_total]

    def exactly(self, log_total: float) -> tuple[float, str, Params]:
        """What the least of them gives, as the checker counts it; by which law."""
        if log_total not in self._exact:
            _, reach, name, told = min(
                ((told.nearly(reach + log_total / 2), reach, name, told) for reach, name, told in self._laws),
                key=itemgetter(0),
            )
            params = told.params(reach + log_total / 2)
            self._exact[log_total] = told.exactly(reach + log_total / 2, params), name, params
        return self._exact[log_total]

    def said(self, log_shares: Sequence[float], weights: Sequence[float]) -> list[Said]:
        """What it says at falling shares; a nat of level j weighs weights[j]."""
        found: list[Said] = []
        log_total = -math.inf
        excess = 0.0
        for log_share, noise in zip(log_shares, self._chosen(log_shares, weights), strict=True):
            log_total = log_add(log_total, noise.log_precision - 2 * log_share)
            excess += self.copies * noise.excess
            told, law, params = self.exactly(log_total)
            found.append(Said(self.index, law, {"a": noise.a, **params}, self.weight * (told + excess)))
        return found

    def _chosen(self, log_shares: Sequence[float], weights: Sequence[float]) -> list[_Noise]:
        """The noise of every level: less of it tells more, now and for all levels to come, but costs less entropy.

        All levels together tell told(total), which is taken as linear in the log of the total around where it is.
        """
        chosen: list[_Noise] = []
        at = _FIRST
        slopes: list[float] = []
        log_total = -math.inf
        for j, log_share in enumerate(log_shares):
            log_total = log_add(log_total, self.noise(_FIRST).log_precision - 2 * log_share)
            later = weights[j + 1] if j + 1 < len(weights) else 0.0
            slopes.append(max(0.0, weights[j] - later) * self.slope(log_total))
        log_total = -math.inf
        for j, log_share in enumerate(log_shares):
            key = log_total, *log_shares[j : j + 2], weights[j], *slopes[j : j + 2]
            if key not in self._chose:
                cost = partial(self._cost, log_total, log_shares[j : j + 2], weights[j], slopes[j : j + 2])
                self._chose[key] = _least(cost, at, _MOST_EXPONENT)
            at = self._chose[key]
            chosen.append(self.noise(at))
            log_total = log_add(log_total, chosen[-1].log_precision - 2 * log_share)
        return chosen

    def _cost(
        self, log_total: float, log_shares: Sequence[float], weight: float, slopes: Sequence[float], at: int
    ) -> float:
        """What a noise costs at a level, and does to what is told there and at the next."""
        noise = self.noise(at)
        now = log_add(log_total, noise.log_precision - 2 * log_shares[0])
        value = weight * self.copies * noise.excess + slopes[0] * now
        if len(slopes) > 1:
            value += slopes[1] * log_add(now, self.noise(_FIRST).log_precision - 2 * log_shares[1])
        return value


_STEP = 0.25
"""Over how much of a log of precision a slope is taken."""


def _least(cost: Callable[[int], float], start: int, last: int) -> int:
    """Where a cost is least, downhill from a start."""
    best, value = start, cost(start)
    for stride in _STRIDES:
        for way in (stride, -stride):
            while 0 <= best + way <= last and (other := cost(best + way)) < value:
                best, value = best + way, other
    return best


def _promising(name: str, target: Target) -> bool:
    """Whether a law may give less than the others on a target."""
    norms = target.norms
    if name == "V1":
        return target.kind in channels.PARTS or min(target.d, target.k) == 1 or norms.fro < norms.two_one
    if name in ("V2", "V5"):
        return target.k > 1
    if name == "V2t":
        return target.d > 1 and norms.two_one_t < norms.two_one
    if name == "V3":
        return min(target.d, target.k) > 1 and norms.nuclear < norms.two_one
    return True


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
        self._maps = [_maps(item, laws) for item in items]
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
                if maps is None or any(each.farthest - share > _LARGEST for each in maps):
                    fixed += math.exp(min(cost, _LARGEST))
                    continue
                for each in maps:
                    noise = each.noise(_FIRST)
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
        self, k: int, maps: Sequence[_Map], points: Sequence[Point], weights: Sequence[float]
    ) -> list[Sequence[Said] | None] | None:
        """What an item says at every level, None where it is left out; None where its noise is too small for floats."""
        at: list[int] = []
        finest = math.inf
        for j, point in enumerate(points):
            if point.costs[k] > -math.inf and point.shares[k] < finest:
                at.append(j)
                finest = point.shares[k]
        if not at or any(each.farthest - finest > _LARGEST for each in maps):
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


def _maps(item: Item, laws: Container[str]) -> Sequence[_Map] | None:
    """The members of an item as channels see them; None where some member has no such way."""
    found: list[_Map] = []
    for log_multiplicity, options in item.members:
        seen = {option.index: option.target for option in options if channels.seen(option.target)}
        ways = [_Map(math.exp(log_multiplicity), i, target, item.log_gain, laws) for i, target in seen.items()]
        if not ways or any(way.farthest == math.inf for way in ways):
            return None
        found.append(ways[0])
    return found
