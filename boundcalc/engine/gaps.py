"""The search for the least gap: chains through allocations, one cover alone. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from boundcalc.base.numbers import FLOAT, log_sum
from boundcalc.engine.allocate import Item, Point, allocate, closer, covers_of, recount, slack
from boundcalc.engine.chain import best_chain
from boundcalc.engine.closed import closed_form
from boundcalc.engine.ground import Found, Ground
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.statements import gap
from boundcalc.statements.strategies import GHOSTS, ChainStrategy, Known, SingleStrategy, Strategy

_MOST_COUNT = 600.0
"""A cover of e^600 nats is of no use."""
_GLANCES = (-4.0, -8.0)
"""Logs of the scales that are tried where any cover will do."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A chain through some points, and the first of them."""

    found: Found
    strategy: ChainStrategy
    items: Sequence[Item]
    points: Sequence[Point]
    alpha: int
    first: int | None


def gaps(ground: Ground, only: str | None = None) -> Iterator[Found]:
    """Candidate certificates for the gap; perhaps of one strategy alone."""
    if ground.closed is not None:
        yield closed_form(ground, ground.closed)
        return
    if ground.met is not None:
        yield from gaps(ground.met, only)
    ways: list[_Way] = []
    for strategy in ground.strategies(ChainStrategy):
        if only not in (None, strategy.name) or (strategy.refines and not ground.policy.refining):
            continue
        items, points, counts = ground.points(uniform=strategy.uniform)
        hopeful = counts[0] < math.log(2 * ground.m)  # else even the first link costs more than it gains
        for alpha in (1,) if "alpha" not in strategy.parameters else GHOSTS[1:] if hopeful else ():
            way = _way(ground, strategy, items, points, alpha)
            if way is not None:
                ways.append(way)
                yield way.found
    best = min(ways, key=lambda way: way.found.log_value, default=None)
    if best is not None and best.first is not None and ground.policy.polish and ground.beside is None:
        points = closer(best.items, best.points, best.first)
        polished = _way(ground, best.strategy, best.items, points, best.alpha)
        if polished is not None:
            yield polished.found
    for strategy in ground.strategies(SingleStrategy):
        if only in (None, strategy.name):
            items, points, counts = ground.points(uniform=strategy.uniform)
            yield from _single(ground, strategy, items, points, counts)


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
        item.total + min((o.log_a for o in options if not o.power), default=0.0)
        for item in items
        for _, options in item.members[:1]
    ]
    points = [allocate(items, log_sum(sizes) - log_scale) for log_scale in _GLANCES]
    points = [point for point in points if -math.inf < point.log_count and point.log_scale < ground.log_start]
    counts = [point.log_count for point in points]
    found = [each for strategy in strategies for each in _single(ground, strategy, items, points, counts)]
    return min(found, key=lambda each: each.log_value, default=None)


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
    return _Way(found, strategy, items, points, alpha, chain[0] if chain else None)


def _refined(ground: Ground, strategy: ChainStrategy, items: Sequence[Item], points: Sequence[Point]) -> _Way | None:
    """G12, where some level refines another."""
    room = slack(items)
    start = math.exp(ground.log_start)
    chain = ground.refinements.best(start, points, ground.m)
    if not any(link.refined for link in chain):
        return None
    scales = [math.exp(min(link.point.log_scale + room, ground.log_start)) for link in chain]
    counts = [link.count for link in chain]
    known = Known(start, scales, counts, ground.log_inverse_delta, ground.m, ground.setting.sample.train_error)
    if any(less > more for less, more, _ in strategy.conditions(FLOAT, known)):
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
) -> Iterator[Found]:
    room = slack(items)
    best: tuple[float, Point] | None = None
    for point, log_count in zip(points, log_counts, strict=True):
        if log_count > _MOST_COUNT:
            continue
        value = strategy.value(FLOAT, ground.known(point.log_scale + room, log_count))
        if best is None or value < best[0]:
            best = value, point
    if best is not None:
        value, chosen = best

        def write() -> Certificate:
            level = Level(chosen.log_scale + room, covers_of(items, chosen))
            return ground.certificate(strategy, (level,))

        yield Found(math.log(value), strategy.name, write)
