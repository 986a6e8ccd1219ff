"""The search for the least gap: chains through allocations, one cover alone. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from boundcalc.base.numbers import FLOAT, log_sum
from boundcalc.engine.allocate import Point, allocate, closer, covers_of, recount, slack
from boundcalc.engine.chain import Chains, best_chain
from boundcalc.engine.closed import closed_form
from boundcalc.engine.ground import Found, Ground
from boundcalc.engine.options import Item
from boundcalc.engine.stored import beside_counted
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.statements import gap
from boundcalc.statements.strategies import GHOSTS, ChainStrategy, Known, SingleStrategy, Strategy

_MOST_COUNT = 600.0
"""A cover of e^600 nats is of no use."""
_EQUAL = 1e-12
"""Conditions that hold by less than this (relative) are not left to the checker's rounding."""
_GLANCES = (-4.0, -8.0)
"""Logs of the scales that are tried where any cover will do."""


class _Way(NamedTuple):
    """A chain through some points and the first of them that covers anything, or one point alone."""

    found: Found
    strategy: Strategy
    items: Sequence[Item]
    points: Sequence[Point]
    alpha: int
    first: int | None


def gaps(ground: Ground, only: str | None = None) -> Iterator[Found]:
    """Candidate certificates for the gap; perhaps of one strategy alone."""
    yield from beside_counted(ground, "gap", only, _covering)


def _covering(ground: Ground, only: str | None) -> Iterator[Found]:
    """Those by covers."""
    if ground.closed is not None:
        yield closed_form(ground, ground.closed)
        return
    least = math.inf
    if ground.met is not None:
        for found in gaps(ground.met, only):
            least = min(least, found.log_value)
            yield found
    chains = [each for each in ground.strategies(ChainStrategy) if only in (None, each.name)]
    chains = [each for each in chains if ground.policy.refining or not each.refines]
    singles = [each for each in ground.strategies(SingleStrategy) if only in (None, each.name)]
    ways: list[_Way] = []
    for uniform in (True, False):
        kind = [each for each in (*chains, *singles) if each.uniform == uniform]
        if not kind:
            continue
        found = list(_of_kind(ground, kind, least))
        ways += found
        least = min([least, *(each.found.log_value for each in found)])
        yield from (each.found for each in found)
    best = min(ways, key=lambda way: way.found.log_value, default=None)
    if best is not None and best.first is not None and ground.policy.polish and ground.beside is None:
        points = closer(best.items, best.points, best.first)
        if isinstance(best.strategy, ChainStrategy):
            polished = _way(ground, best.strategy, best.items, points, best.alpha)
        else:
            polished = _single(ground, best.strategy, best.items, points, [point.log_count for point in points])
        if polished is not None:
            yield polished.found


def _of_kind(ground: Ground, strategies: Sequence[Strategy], least: float) -> Iterator[_Way]:
    """What strategies find that look at the same allocations: all uniform, or all on counted points."""
    refines = any(each.refines for each in strategies)  # what refinements add may be little at any scale
    may_gain = None if refines else _Prospect(ground, strategies, least)
    items, points, counts = ground.points(may_gain, uniform=strategies[0].uniform)
    hopeful = counts[0] < math.log(2 * ground.m)  # else even the first link costs more than it gains
    for strategy in strategies:
        if not isinstance(strategy, ChainStrategy):
            alone = _single(ground, strategy, items, points, counts)
            if alone is not None:
                yield alone
            continue
        for alpha in (1,) if "alpha" not in strategy.parameters else GHOSTS[1:] if hopeful else ():
            way = _way(ground, strategy, items, points, alpha)
            if way is not None:
                yield way


class _Prospect:
    """Whether allocations finer than a vertex may gain: what all that go to it or beyond cost at least, and the least found.

    Counts rise from vertex to vertex, and with the ghosts; a chain of several ghosts is never below one of the least factor.
    """

    def __init__(self, ground: Ground, strategies: Sequence[Strategy], least: float) -> None:
        self._ground = ground
        factors = [
            each.factor(FLOAT, max(GHOSTS)) / math.sqrt(2) for each in strategies if isinstance(each, ChainStrategy)
        ]
        known = [each for each in strategies if isinstance(each, ChainStrategy) and "alpha" not in each.parameters]
        start = math.exp(ground.log_start)
        self._deviation = gap.deviation(FLOAT, ground.log_inverse_delta, ground.m)
        self._beyond = Chains(start, min(factors, default=math.inf))
        self._within = Chains(start, min((each.factor(FLOAT, 1) / math.sqrt(2) for each in known), default=math.inf))
        self._singles = [each for each in strategies if isinstance(each, SingleStrategy)]
        self._least = math.exp(min(least, 0.0))
        self._counted = None
        if ground.beside is not None and not strategies[0].uniform:
            self._counted = ground.curve(uniform=False).items
        self._seen = 0

    def __call__(self, point: Point) -> bool:
        """Asked of every vertex in turn, coarse to fine."""
        ground = self._ground
        count = point.log_count if self._counted is None else recount(self._counted, point, ground.m)
        scale = math.exp(min(point.log_scale, ground.log_start))
        over_m = math.exp(min(count - math.log(ground.m), 200.0))
        beyond = 2 * self._beyond.add(scale, over_m) + self._deviation
        self._within.add(scale, over_m)
        self._least = min(self._least, 2 * self._within.least + self._deviation)
        for strategy in self._singles:
            beyond = min(beyond, strategy.value(FLOAT, ground.known(-math.inf, count)))
        self._seen += 1
        return beyond < self._least or self._within.last == self._seen - 1


def glance(ground: Ground) -> Found | None:
    """A gap certificate of one uniform cover at a few multipliers: not the least, but found in a few passes.

    Covers of n parameters cost about n log(1/share), so at the multiplier n/e shares sum to about e.
    """
    if ground.met is not None:
        return glance(ground.met)
    strategies = [each for each in ground.strategies(SingleStrategy) if each.uniform]
    if ground.closed is not None or not strategies:
        return None
    items = ground.items(ground.m, uniform=True)
    sizes = [
        item.total + min((o.log_a for o in options if not o.power and o.curve is None), default=0.0)
        for item in items
        for _, options in item.members[:1]
    ]
    points = [allocate(items, log_sum(sizes) - log_scale) for log_scale in _GLANCES]
    points = [point for point in points if -math.inf < point.log_count and point.log_scale < ground.log_start]
    counts = [point.log_count for point in points]
    ways = [_single(ground, strategy, items, points, counts) for strategy in strategies]
    return min((way.found for way in ways if way is not None), key=lambda each: each.log_value, default=None)


def _way(
    ground: Ground, strategy: ChainStrategy, items: Sequence[Item], points: Sequence[Point], alpha: int
) -> _Way | None:
    """The best chain of a strategy through some points, if there is one of its kind."""
    if strategy.refines:
        return _refined(ground, strategy, items, points)
    samples = strategy.samples(ground.m, alpha)
    known = strategy.uniform or (alpha == 1 and ground.beside is None)
    counts = [point.log_count if known else recount(items, point, samples) for point in points]
    return _chain(ground, strategy, items, points, counts, alpha)


def _chain(
    ground: Ground,
    strategy: ChainStrategy,
    items: Sequence[Item],
    points: Sequence[Point],
    log_counts: Sequence[float],
    alpha: int,
) -> _Way:
    """G1+G2: 2 e_J + factor * (sum of links) + deviation."""
    room = slack(items)
    log_m = math.log(ground.m)
    scales = [math.exp(min(point.log_scale + room, ground.log_start)) for point in points]
    counts = [math.exp(count - log_m) if count - log_m < 200 else math.inf for count in log_counts]
    factor = strategy.factor(FLOAT, alpha)
    value, chain = best_chain(math.exp(ground.log_start), scales, counts, factor / 2 * math.sqrt(2))
    total = 2 * value + gap.deviation(FLOAT, ground.log_inverse_delta, ground.m)

    def write() -> Certificate:
        levels = tuple(
            Level(min(points[i].log_scale + room, ground.log_start), covers_of(items, points[i])) for i in chain
        )
        return replace(ground.certificate(strategy, levels), alpha=alpha)

    found = Found(math.log(total), strategy.name, write)
    paid = next((i for i in chain if points[i].log_count > -math.inf), None)
    return _Way(found, strategy, items, points, alpha, paid)


def _refined(ground: Ground, strategy: ChainStrategy, items: Sequence[Item], points: Sequence[Point]) -> _Way | None:
    """A chain in which some level refines another."""
    chain = ground.refinements.best(math.exp(ground.log_start), points, ground.m)
    if not any(link.refined for link in chain):
        return None
    room, start = slack(items), math.exp(ground.log_start)
    scales = [math.exp(min(link.point.log_scale + room, ground.log_start)) for link in chain]
    added = [link.adds for link in chain]
    known = Known(start, scales, added, ground.log_inverse_delta, ground.m, ground.setting.sample.train_error)
    if any(less > more * (1 - _EQUAL) for less, more, _ in strategy.conditions(FLOAT, known)):
        return None
    value = strategy.value(FLOAT, known)

    def write() -> Certificate:
        levels = tuple(
            Level(min(link.point.log_scale + room, ground.log_start), ground.refinements.covers(link)) for link in chain
        )
        return ground.certificate(strategy, levels)

    return _Way(Found(math.log(value), strategy.name, write), strategy, items, points, 1, chain[0].at)


def _single(
    ground: Ground, strategy: Strategy, items: Sequence[Item], points: Sequence[Point], log_counts: Sequence[float]
) -> _Way | None:
    room = slack(items)
    values = [
        math.inf if count > _MOST_COUNT else strategy.value(FLOAT, ground.known(point.log_scale + room, count))
        for point, count in zip(points, log_counts, strict=True)
    ]
    at = min(range(len(points)), key=values.__getitem__, default=0)
    if not points or values[at] == math.inf:
        return None
    chosen = points[at]

    def write() -> Certificate:
        level = Level(chosen.log_scale + room, covers_of(items, chosen))
        return ground.certificate(strategy, (level,))

    found = Found(math.log(values[at]), strategy.name, write)
    return _Way(found, strategy, items, points, 1, at)
