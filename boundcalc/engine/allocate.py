"""A2: how to split an error among pieces, and which lemma covers which piece. Not trusted: the checker decides.

For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace the lower convex hull of
(error, log count), so each is the best allocation for the error it happens to spend. One pass over multipliers
therefore serves every scale of a chain. `engine.exact` meets one given error, between vertices.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from boundcalc.base.numbers import log_add, log_sum
from boundcalc.engine.options import Item, Option, choices_at, cost_at
from boundcalc.proof.certificate import ZERO, Choice, Cover

_BISECTIONS, _CLOSE = 60, 0.02
"""A vertex that spends within 2% of an error is near enough to start from."""
_TRIED = 4
"""Options whose true cost is computed, the best few by their shape."""
_BY_ESTIMATE = operator.itemgetter(0)
_FAR = 37.0
"""log y from where 1 + y is y, in floats."""
_NEAR = 0.01
"""An option whose shape is a floor is not tried where its estimate is this much (log) above what is found."""


def slack(items: Sequence[Item]) -> float:
    """Relative room left in every error budget for the rounding of logs (it grows with the number of products)."""
    return 1e-9 * (1 + len(items) / 50)


@dataclass(slots=True)
class Point:
    """An allocation: log of the error spent, log of the log count, and what each piece got."""

    log_scale: float
    log_count: float
    shares: list[float]
    costs: list[float]
    options: list[Option | None]
    log_lambda: float = math.nan
    """log of the multiplier that it is the minimiser for, if it is one."""
    _choices: list[tuple[Choice, ...]] | None = None

    def choices(self, items: Sequence[Item]) -> list[tuple[Choice, ...]]:
        """How every piece is covered, for certificates: few points get into one."""
        if self._choices is None:
            parts = zip(items, self.shares, self.options, strict=True)
            self._choices = [choices_at(item, share, option) for item, share, option in parts]
        return self._choices


def _best_share(item: Item, log_lambda: float) -> tuple[float, float, Option | None]:
    """(log share, log cost, option) minimising cost + lambda * share."""
    best: tuple[float, float, Option | None] = (item.log_zero, -math.inf, None)
    value = log_lambda + item.log_zero
    options = item.heaviest
    total, log_zero = item.total, item.log_zero
    if len(options) > _TRIED:
        aims = [(aim, option) for option in options if (aim := option.aim(total, log_lambda))[1] < log_zero]
        aims.sort(key=_BY_ESTIMATE)
        del aims[_TRIED:]
    else:
        aims = [((-math.inf, option.minimiser(total, log_lambda)), option) for option in options]
    for (estimate, rough), option in aims:
        if rough >= log_zero or (option.floor and estimate > value + _NEAR):
            continue
        share = rough
        cost = option.log_cost(share)
        if cost == -math.inf:
            continue
        cost += total
        candidate = log_add(cost, log_lambda + share)
        if candidate < value:
            value, best = candidate, (share, cost, option)
    share, cost, option = best
    if option is not None and len(item.members) > 1:
        cost, dearest = cost_at(item, share)
        return share, cost, dearest or option
    return best


def _best_shares(items: Sequence[Item], log_lambda: float) -> list[tuple[float, float, Option | None]]:
    """The best share of every item, last item first.

    Among items that are alike, what is best for one far out is best for those that reach farther: there a cover by volume
    costs its dimension times log y and a constant, no cover of the same body grows more slowly, and steps grow faster.
    """
    best: dict[int, tuple[float, int]] = {}
    found: list[tuple[float, float, Option | None]] = []
    for item in reversed(items):
        like, options = item.like, item.heaviest
        known = None if like is None else best.get(like)
        if known is not None and known[0] <= options[0].log_reach:
            option = options[known[1]]
            share = option.minimiser(item.total, log_lambda)
            cost = option.log_cost(share) + item.total
            least = share < item.log_zero and log_add(cost, log_lambda + share) < log_lambda + item.log_zero
            found.append((share, cost, option) if least else (item.log_zero, -math.inf, None))
            continue
        found.append(_best_share(item, log_lambda))
        share, _, option = found[-1]
        if like is not None and option is not None and option.log_reach - share > _FAR and _slowest(option, options):
            best[like] = options[0].log_reach, options.index(option)
    return found[::-1]


def _slowest(option: Option, options: Sequence[Option]) -> bool:
    """Whether far out none of the options grows more slowly: a cover by volume, of the least dimension."""
    if option.power or option.curve is not None:
        return False
    return all(
        other.power or option.log_a <= (other.log_a if other.curve is None else math.log(other.target.size))
        for other in options
    )


def allocate(items: Sequence[Item], log_lambda: float) -> Point:
    """The Lagrangian minimiser: a vertex of the hull of (error, log count)."""
    found = _best_shares(items, log_lambda)
    point = point_of(items, found)
    point.log_lambda = log_lambda
    return point


def point_of(items: Sequence[Item], found: Sequence[tuple[float, float, Option | None]]) -> Point:
    """An allocation from (log share, log cost, option) of every piece."""
    return Point(
        log_sum([item.bent(f[0]) for item, f in zip(items, found, strict=True)]),
        log_sum([f[1] for f in found]),
        [f[0] for f in found],
        [f[1] for f in found],
        [f[2] for f in found],
    )


@dataclass(slots=True)
class Bracket:
    """Two neighbouring vertices of the hull: one that spends at most a given error, and the next, which spends more."""

    log_scale: float
    """log of the error."""
    inside: Point
    outside: Point | None
    log_lambda: float
    """log of the multiplier of `inside`."""


def bracket(items: Sequence[Item], log_scale: float) -> Bracket:
    """The hull around an error of e^log_scale, by bisection in the log of the multiplier."""
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
    return Bracket(log_scale, inside, outside, high)


_SPACING = 0.25
"""Ratio of neighbouring scales of a chain, in logs."""
_MOST_POINTS = 60
"""Vertices down to the scales that matter for 10^9 samples; more samples need finer ones."""
_LOG_MANY = math.log(1e9)
_LONGEST_STEP = 50.0
"""A multiplier e^50 times as large that changes nothing will not change anything."""


class TradeOff:
    """Hull vertices from the scale e^log_start downwards, found as they are asked for."""

    def __init__(self, items: Sequence[Item], log_start: float) -> None:
        self.items = items
        self.hull = found = bracket(items, log_start)
        first, self._log_lambda = found.inside, found.log_lambda
        first.log_lambda = found.log_lambda
        self._points = [first]
        self._step = 3 * _SPACING
        self._exhausted = False

    @property
    def first(self) -> float:
        """Log of the log count of the coarsest vertex that covers anything."""
        while self._points[-1].log_count == -math.inf and not self._exhausted:
            self._extend()
        return next((point.log_count for point in self._points if point.log_count > -math.inf), 0.0)

    def until(self, log_m: float) -> list[Point]:
        """Vertices down to where counting costs more than the scale gains with so many samples (log).

        A last link costs at least e sqrt(2 log N/m) and gains less than 2 e.
        """
        most = log_m + math.log(2)
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


def covers_of(items: Sequence[Item], point: Point) -> dict[str, Cover]:
    """A point of the trade-off as it stands in a certificate."""
    room = slack(items)
    covers: dict[str, Cover] = {}
    for item, share, choices in zip(items, point.shares, point.choices(items), strict=True):
        dropped = all(choice is ZERO for choice in choices)
        covers[item.key] = Cover(share - item.log_gain + (room if dropped else 0.0), choices)
    return covers
