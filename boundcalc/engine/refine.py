"""Which scales to chain through where a level may refine the one before (G12): a shortest path over pairs. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boundcalc.engine.allocate import Item, Point, covers_of
from boundcalc.proof.certificate import Choice, Cover
from boundcalc.statements.covers import LEMMAS, REFINING

_FARTHEST = 3.0
"""Log of the largest ratio of neighbouring scales that is tried with refinements."""
_FINEST = 1e-4
"""Scales below this part of the least value found so far are of no use."""


@dataclass(frozen=True, slots=True)
class _Residual:
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


def best_refined(
    start: float, items: Sequence[Item], points: Sequence[Point], m: int
) -> tuple[list[int], list[frozenset[int]]]:
    """Points to chain through, and for each the items that refine what the point before has."""
    residuals = [_residual(item) for item in items]
    fresh = [[math.exp(min(cost, 600.0)) if cost > -math.inf else 0.0 for cost in point.costs] for point in points]
    ready = [_ready(residuals, point) for point in points]
    scales = [math.exp(point.log_scale) for point in points]
    root = math.sqrt(2 / m)
    values: list[float] = []
    backs: list[int] = []
    least, last = 2 * start, -1
    for j, point in enumerate(points):
        whole = math.sqrt(sum(fresh[j])) * root
        best, back = start * whole, -1
        if scales[j] >= start or (back < 0 and scales[j] < _FINEST * least):
            best = math.inf
        for i in range(j - 1, -1, -1) if best < math.inf else ():
            bound = values[i] + scales[i] * whole
            if points[i].log_scale - point.log_scale <= _FARTHEST and values[i] < best:
                counts = sum(_counts(residuals, fresh[j], ready[i], points[i], point))
                bound = values[i] + scales[i] * math.sqrt(counts) * root
            if bound < best:
                best, back = bound, i
        values.append(best)
        backs.append(back)
        if best + 2 * scales[j] < least:
            least, last = best + 2 * scales[j], j
    chain: list[int] = []
    while last >= 0:
        chain.append(last)
        last = backs[last]
    chain.reverse()
    return chain, [_refined(residuals, fresh, ready, points, pair) for pair in zip([-1, *chain], chain, strict=False)]


def log_counts(
    items: Sequence[Item], points: Sequence[Point], chain: Sequence[int], refined: Sequence[frozenset[int]]
) -> list[float]:
    """The log count that each level of a chain adds."""
    residuals = [_residual(item) for item in items]
    counts: list[float] = []
    for before, at, which in zip([-1, *chain], chain, refined, strict=False):
        here = points[at]
        counts.append(
            sum(
                residual.cost(points[before].shares[k] - here.shares[k])
                if k in which and residual is not None
                else math.exp(min(here.costs[k], 600.0))
                for k, residual in enumerate(residuals)
            )
        )
    return counts


def refined_covers(items: Sequence[Item], point: Point, which: frozenset[int]) -> dict[str, Cover]:
    """A level's covers, some of them of what the level before has left."""
    covers = covers_of(items, point)
    for k in which:
        residual = _residual(items[k])
        assert residual is not None  # noqa: S101 - only items with one are refined
        covers[items[k].key] = Cover(covers[items[k].key].log_eps, residual.choices)
    return covers


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


def _ready(residuals: Sequence[_Residual | None], point: Point) -> list[bool]:
    """Which items a later level may refine: those that are covered on the targets of their residuals."""
    return [
        residual is not None
        and all(
            mine.lemma != "zero" and mine.target == theirs.target
            for mine, theirs in zip(choices, residual.choices, strict=True)
        )
        for residual, choices in zip(residuals, point.choices, strict=True)
    ]


def _counts(
    residuals: Sequence[_Residual | None], fresh: Sequence[float], ready: Sequence[bool], before: Point, point: Point
) -> Iterator[float]:
    """The log count of each item at a point, from another."""
    for k, count in enumerate(fresh):
        residual = residuals[k]
        if count and ready[k] and residual is not None:
            yield min(count, residual.cost(before.shares[k] - point.shares[k]))
        else:
            yield count


def _refined(
    residuals: Sequence[_Residual | None],
    fresh: Sequence[Sequence[float]],
    ready: Sequence[Sequence[bool]],
    points: Sequence[Point],
    pair: tuple[int, int],
) -> frozenset[int]:
    i, j = pair
    if i < 0:
        return frozenset()
    counts = list(_counts(residuals, fresh[j], ready[i], points[i], points[j]))
    return frozenset(k for k, count in enumerate(counts) if count < fresh[j][k])
