"""A2: how to split an error among pieces, and which lemma covers which piece. Not trusted: the checker decides.

For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace the lower convex hull of
(error, log count), so each is the best allocation for the error it happens to spend. One pass over multipliers
therefore serves every scale of a chain. `engine.exact` meets one given error, between vertices.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boundcalc.base.numbers import log_add, log_sum
from boundcalc.engine.options import Item, Option, choices_at, cost_at
from boundcalc.proof.certificate import ZERO, Choice, Cover
from boundcalc.statements.covers import LEMMAS, Params

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
    counted: tuple[float, list[tuple[float, Option, float, Params]]] | None = None
    """What `recount` takes apart once: the costs that stay, and the covers that count points."""
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
        share = option.snapped(rough)
        if share >= log_zero:
            continue
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

    def floor(self, items: Sequence[Item], log_scale: float) -> float:
        """About the log of what allocations of an error cost at least, by duality; -inf where pieces bend, which it ignores."""
        if any(item.log_bend < math.inf for item in items):
            return -math.inf
        inside = self.inside
        dual = log_add(inside.log_count, self.log_lambda + inside.log_scale)
        spent = self.log_lambda + log_scale
        return dual + math.log1p(-math.exp(spent - dual)) - _SLACK if spent < dual else -math.inf


_SLACK = 1.0
"""What minimisers of shapes may miss of the least cost (log): in narrow networks covers cost few steps, each whole."""


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


_PARTS = (0.3, 0.6)
"""Where a curve looks closer on the way from a vertex to a neighbour."""


def closer(items: Sequence[Item], points: Sequence[Point], at: int) -> list[Point]:
    """The vertices of a curve, with a few more on both sides of one."""
    middle = points[at].log_lambda
    near = [points[i].log_lambda for i in (at - 1, at + 1) if 0 <= i < len(points)]
    more = [allocate(items, middle + part * (other - middle)) for other in near for part in _PARTS]
    found = [*points, *(point for point in more if point.log_count > -math.inf)]
    return sorted(found, key=lambda point: -point.log_scale)


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

    def until(self, log_m: float, may_gain: Callable[[Point], bool] = lambda _: True) -> list[Point]:
        """Vertices down to where counting costs more than the scale gains with so many samples (log).

        A last link costs at least e sqrt(2 log N/m) and gains less than 2 e. `may_gain` is asked of every vertex in
        turn, whether finer ones are of any use: none is looked for behind one where they are not.
        """
        most = log_m + math.log(2)
        many = _MOST_POINTS + math.ceil(max(0.0, log_m - _LOG_MANY) / (2 * _SPACING))  # scales fall like 1/sqrt(m)
        at = 0
        while at < len(self._points) and may_gain(self._points[at]):
            at += 1
            wanted = self._points[-1].log_count < most and len(self._points) < many
            while at == len(self._points) and wanted and not self._exhausted:
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


def recount(items: Sequence[Item], point: Point, samples: int) -> float:
    """Log of the log count of the same covers on another number of samples (only empirical covers change)."""
    if point.counted is None:
        point.counted = _counted(items, point)
    settled, counted = point.counted
    if not counted:
        return settled
    return log_sum([settled, *(weight + o.log_cost(s, p, samples) for weight, o, s, p in counted)])


def _counted(items: Sequence[Item], point: Point) -> tuple[float, list[tuple[float, Option, float, Params]]]:
    """What does not depend on the number of samples, summed; and what does."""
    settled: list[float] = []
    counted: list[tuple[float, Option, float, Params]] = []
    for item, share, cost, choices in zip(items, point.shares, point.costs, point.choices(items), strict=True):
        if all(choice is ZERO or LEMMAS[choice.lemma].uniform for choice in choices):
            settled.append(cost)
            continue
        for (log_multiplicity, options), choice in zip(item.members, choices, strict=True):
            option = next((o for o in options if o.lemma.name == choice.lemma and o.index == choice.target), None)
            if option is not None:
                counted.append((log_multiplicity, option, share, choice.params))
    return log_sum(settled), counted


def covers_of(items: Sequence[Item], point: Point) -> dict[str, Cover]:
    """A point of the trade-off as it stands in a certificate."""
    room = slack(items)
    covers: dict[str, Cover] = {}
    for item, share, choices in zip(items, point.shares, point.choices(items), strict=True):
        dropped = all(choice is ZERO for choice in choices)
        covers[item.key] = Cover(share - item.log_gain + (room if dropped else 0.0), choices)
    return covers
