"""A2: how to split an error among pieces, at every scale; G12: which scales to chain through, one refining another.

Not trusted: the checker decides. For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace
the lower convex hull of (error, log count), so each is the best allocation for the error it happens to spend, and one
pass over multipliers serves every scale. What one allocation adds to another does not depend on the number of samples:
it is counted once for every pair, and a chain is a shortest path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from boundcalc.base.numbers import log_sum
from boundcalc.engine._items import Cost, Item, Option, cost_of
from boundcalc.proof.certificate import ZERO, Choice, Cover
from boundcalc.statements.covers import LEMMAS, REFINING

_BISECTIONS, _CLOSE = 60, 0.02
"""A vertex that spends within 2% of an error is near enough."""
_SPACING = 0.25
"""Ratio of neighbouring scales of a chain, in logs."""
_MOST_POINTS = 60
"""Vertices down to the scales that matter for 10^9 samples; more samples need finer ones."""
_LOG_MANY = math.log(1e9)
_LONGEST_STEP = 50.0
"""A multiplier e^50 times as large that changes nothing will not change anything."""


def slack(items: Sequence[Item]) -> float:
    """Relative room left in every error budget for the rounding of logs (it grows with the number of products)."""
    return 1e-9 * (1 + len(items) / 50)


@dataclass(eq=False, slots=True)
class Point:
    """An allocation: logs of each piece's share of the error and cost, of the error spent and of the log count."""

    items: Sequence[Item]
    shares: Sequence[float]
    costs: list[float]
    log_scale: float = field(init=False)
    log_count: float = field(init=False)

    def __post_init__(self) -> None:
        self.log_count = log_sum(self.costs)
        pairs = zip(self.items, self.shares, strict=True)
        self.log_scale = log_sum([item.saturated(x) if item.log_bend < math.inf else x for item, x in pairs])

    @classmethod
    def of(cls, items: Sequence[Item], shares: Sequence[float]) -> Point:
        """With costs computed, not read off tables."""
        return cls(items, shares, []).exact()

    def exact(self) -> Point:
        """The same, whose costs are computed from now on."""
        self.costs = [item.log_cost(share, exact=True) for item, share in zip(self.items, self.shares, strict=True)]
        self.log_count = log_sum(self.costs)
        return self

    def covers(self) -> dict[str, Cover]:
        """How every piece is covered, as it stands in a certificate."""
        covers: dict[str, Cover] = {}
        for item, share in zip(self.items, self.shares, strict=True):
            chosen = [ZERO if option is None else option.choice(share) for option in item.cheapest(share)]
            dropped = all(choice is ZERO for choice in chosen)
            covers[item.key] = Cover(share - item.log_gain + (slack(self.items) if dropped else 0.0), tuple(chosen))
        return covers


def lemmas_at(point: Point) -> frozenset[str]:
    """The lemmas that cover pieces somewhere."""
    choices = (choice for cover in point.covers().values() for choice in cover.choices)
    return frozenset(choice.lemma for choice in choices if choice is not ZERO)


def allocate(items: Sequence[Item], log_lambda: float) -> Point:
    """The Lagrangian minimiser: a vertex of the hull of (error, log count).

    Piece by piece the share that minimises cost + lambda * share; where a cover is not worth it, there is none.
    """
    shares: list[float] = []
    costs: list[float] = []
    for item in items:
        zero, total = item.log_zero, item.total
        share, cost, least = zero, -math.inf, log_lambda + zero
        for option in item.widest:
            reach, counting = option.log_reach, option.cost
            log_y = counting.best(log_lambda + reach - total)
            finer, price = reach - log_y, log_lambda + reach - log_y
            if finer < zero and price < least:
                counted = total + counting(log_y)
                if counted < least:
                    value = max(counted, price) + math.log1p(math.exp(-abs(counted - price)))
                    if value < least:
                        share, cost, least = finer, counted, value
        shares.append(share)
        costs.append(cost if len(item.members) == 1 or share == zero else item.log_cost(share))
    return Point(items, shares, costs)


def bracket(items: Sequence[Item], log_scale: float) -> tuple[float, Point, Point | None]:
    """Neighbouring vertices that spend at most an error, and more.

    The log of the multiplier of the first before them.
    """
    low, high = -math.inf, math.inf
    log_lambda = 2.0 - log_scale
    inside: Point | None = None
    outside: Point | None = None
    for _ in range(_BISECTIONS):
        point = allocate(items, log_lambda)
        excess = point.log_scale - log_scale
        if excess <= 0:
            high, inside = log_lambda, point
            if excess > -_CLOSE:
                break
        else:
            low, outside = log_lambda, point
        if math.isinf(low) or math.isinf(high):
            log_lambda += 2.2 * excess + (0.5 if excess > 0 else -0.5)
        elif high - low < _CLOSE:
            break
        else:
            log_lambda = (low + high) / 2
    if inside is None:
        high = log_lambda + 10
        inside = allocate(items, high)
    return high, inside, outside


def fill(items: Sequence[Item], log_scale: float) -> Point:
    """A cheap cover at the error e^log_scale: the better of two neighbouring vertices, scaled to spend it all."""
    budget = log_scale - 3 * slack(items)
    _, inside, outside = bracket(items, budget)
    filled = [_scaled(point, budget) for point in (inside, outside) if point is not None]
    return min((inside, *(point for point in filled if point is not None)), key=lambda point: point.exact().log_count)


def _scaled(point: Point, budget: float) -> Point | None:
    """A point whose covered pieces spend what those without covers leave of an error; None where that is 0."""
    pairs = list(zip(point.items, point.shares, strict=True))
    dropped = log_sum([share for item, share in pairs if share >= item.log_zero])
    spent = log_sum([share for item, share in pairs if share < item.log_zero])
    if dropped >= budget or spent == -math.inf:
        return None
    factor = budget + math.log1p(-math.exp(dropped - budget)) - spent
    shares = [share if share >= item.log_zero else min(item.log_zero, share + factor) for item, share in pairs]
    return Point.of(point.items, shares)


class TradeOff:
    """Hull vertices from the scale e^log_start downwards, found when they are needed."""

    def __init__(self, items: Sequence[Item], log_start: float) -> None:
        self.items = items
        self._log_start, self._log_lambda = log_start, 0.0
        self._points: list[Point] = []
        self._step = 3 * _SPACING
        self._exhausted = False

    @property
    def first(self) -> float:
        """Log of the log count of the coarsest vertex that covers anything."""
        self.until(-math.inf)
        while self._points[-1].log_count == -math.inf and not self._exhausted:
            self._extend()
        return next((point.log_count for point in self._points if point.log_count > -math.inf), 0.0)

    def until(self, log_m: float) -> list[Point]:
        """Vertices down to where counting costs more than the scale gains with so many samples (log).

        A last link costs at least e sqrt(2 log N/m) and gains less than 2 e.
        """
        most = log_m + math.log(2)
        if not self._points:
            self._log_lambda, first, _ = bracket(self.items, self._log_start)
            self._points.append(first)
        many = _MOST_POINTS + math.ceil(max(0.0, log_m - _LOG_MANY) / (2 * _SPACING))  # scales fall like 1/sqrt(m)
        while self._points[-1].log_count < most and len(self._points) < many and not self._exhausted:
            self._extend()
        end = next((i for i, point in enumerate(self._points) if point.log_count >= most), len(self._points))
        return self._points[: min(end + 1, many)]

    def _extend(self) -> None:
        self._log_lambda += self._step
        point = allocate(self.items, self._log_lambda)
        fallen = self._points[-1].log_scale - point.log_scale
        if fallen > 0:
            self._step *= min(2.0, max(0.5, _SPACING / fallen))
            self._points.append(point)
        else:
            self._step *= 2
            self._exhausted = self._step > _LONGEST_STEP


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
