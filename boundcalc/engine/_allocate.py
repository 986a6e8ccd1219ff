"""A2: how to split an error among pieces, and which lemma covers which piece. Not trusted: the checker decides.

For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace the lower convex hull of
(error, log count), so each is the best allocation for the error it happens to spend. One pass over multipliers
therefore serves every scale of a chain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from boundcalc.base.numbers import log_sum
from boundcalc.engine._items import Item
from boundcalc.proof.certificate import ZERO, Cover

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
