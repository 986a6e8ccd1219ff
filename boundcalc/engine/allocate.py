"""A2: how to split an error among pieces, and which lemma covers which piece. Not trusted: the checker decides.

For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace the lower convex hull of
(error, log count), so each is the best allocation for the error it happens to spend. One pass over multipliers
therefore serves every scale of a chain. `engine.exact` meets one given error, between vertices.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from boundcalc.base.numbers import FLOAT, LOG, LogFloat, log_add, log_sum
from boundcalc.proof.certificate import ZERO, Choice, Cover
from boundcalc.statements.compose import Lowered, Piece
from boundcalc.statements.covers import LEMMAS, CoverLemma, Curve, Params, Power
from boundcalc.statements.covers.curve import LAST, STEP
from boundcalc.statements.targets import Target

_FLOAT_RANGE = 300.0
"""Above y = e^300 squares leave the range of floats and costs are computed in logs."""
_FEW_POINTS = 1e100
"""So many that what holds of them far beyond the range of floats holds of all."""
_POWER = 5.0
"""log y grows by a factor of 2 where a power of y grows by more than this (log)."""
_SNAP = 60.0
"""Perceptron covers cost whole steps; below this many it pays to end on a whole one."""
_BISECTIONS, _CLOSE = 60, 0.02
"""A vertex that spends within 2% of an error is near enough to start from."""
_TRIED = 3
"""Options whose true cost is computed, the best few by their shape."""
_BY_ESTIMATE = operator.itemgetter(0)
_LOG_2, _LOG_3_2 = math.log(2), math.log(1.5)
_NEAR = 0.01
"""An option whose shape is a floor is not tried where its estimate is this much (log) above what is found."""


def slack(items: Sequence[Item]) -> float:
    """Relative room left in every error budget for the rounding of logs (it grows with the number of products)."""
    return 1e-9 * (1 + len(items) / 50)


@dataclass(slots=True)
class Option:
    """One lemma on one target of one member: log of its reach (on the loss) and the shape of its cost."""

    lemma: CoverLemma
    index: int
    target: Target
    n: int
    log_reach: float
    power: bool
    log_a: float
    """log coefficient (power) or log dimension (volume)."""
    log_c: float
    """log factor inside the logarithm (volume)."""
    offset: float = 0.0
    """Added to the logarithm (volume)."""
    floor: bool = False
    """Whether the cost is never below its shape (by more than a curve's interpolation)."""
    curve: Curve | None = None
    """The shape, where it is neither."""
    _far: tuple[float, float] | None = field(default=None, init=False)

    def minimiser(self, log_weight: float, log_lambda: float) -> float:
        """Log of the share s that minimises weight * cost(reach/s) + lambda * s, for the cost's shape."""
        if self.power:
            return (_LOG_2 + log_weight + self.log_a + 2 * self.log_reach - log_lambda) / 3
        if self.curve is not None:
            return self.log_reach - self.curve.best(log_lambda + self.log_reach - log_weight)
        ratio = log_weight + self.log_a - log_lambda  # log(w n / lambda)
        q = 2 * _LOG_2 + ratio - self.log_c - self.log_reach
        root = 0.5 * q if q > 60 else 0.5 * math.log1p(math.exp(q)) if q > -700 else 0.0
        return _LOG_2 + ratio - math.log1p(math.exp(root)) if root < 700 else _LOG_2 + ratio - root

    def aim(self, log_weight: float, log_lambda: float) -> tuple[float, float]:
        """Log of the least weight * cost(reach/s) + lambda * s, for the cost's shape, and log of the share s."""
        if self.curve is not None:
            log_y = self.curve.best(log_lambda + self.log_reach - log_weight)
            share = self.log_reach - log_y
            return log_add(log_weight + self.curve.log_cost(log_y), log_lambda + share), share
        share = self.minimiser(log_weight, log_lambda)
        if self.power:
            return log_lambda + share + _LOG_3_2, share  # the cost is half of lambda * s
        inside = self.log_c + self.log_reach - share
        growth = inside if inside > 40 else math.log1p(math.exp(inside))
        if growth + self.offset <= 0:  # far beyond where no cover is needed
            return math.inf, share
        log_cost = self.log_a + math.log(growth + self.offset)
        return log_add(log_weight + log_cost, log_lambda + share), share

    def snapped(self, log_share: float) -> float:
        """The smallest share of the same whole number of steps (power costs only)."""
        log_steps = 2 * (self.log_reach - log_share)
        if not self.power or log_steps > 4.1 or log_steps <= 0:
            return log_share
        steps = math.exp(log_steps)
        if steps > _SNAP:
            return log_share
        return self.log_reach - 0.5 * math.log(math.ceil(steps) * (1 - 4e-12))

    def choice(self, log_share: float) -> Choice:
        """What a certificate records of the cover at a share."""
        log_y = self.log_reach - log_share
        return (
            ZERO if log_y <= 0 else Choice(self.lemma.name, self.index, self.lemma.params(log_y, self.target, self.n))
        )

    def log_cost(self, log_share: float, params: Params | None = None, samples: int | None = None) -> float:
        """Log of the cost at a share, perhaps on another number of samples."""
        log_y = self.log_reach - log_share
        if log_y <= 0:
            return -math.inf
        if params is None and log_y > _FLOAT_RANGE and self.n < _FEW_POINTS:
            return self._far_cost(log_y)
        n = self.n if samples is None else self.target.points.count(samples)
        if params is None:
            params = self.lemma.params(log_y, self.target, n)
        if self.curve is not None and log_y >= LAST * STEP:
            return self.curve.log_cost(log_y)
        if log_y < _FLOAT_RANGE:
            try:
                cost = self.lemma.sharp(FLOAT, math.exp(log_y), self.target, n, params)
                return math.log(cost) if cost > 0 else -math.inf
            except OverflowError:
                pass
        cost = LogFloat.of(self.lemma.sharp(LOG, LogFloat(log_y), self.target, LogFloat.of(n), params))
        return cost.log if cost.sign > 0 else -math.inf

    def _far_cost(self, log_y: float) -> float:
        """Beyond floats a cost is a power of y, or grows like log y: it is read off two places."""
        if self._far is None:
            places = (_FLOAT_RANGE, 2 * _FLOAT_RANGE)
            near, far = (
                self.log_cost(self.log_reach - at, self.lemma.params(at, self.target, self.n)) for at in places
            )
            self._far = near, far
        near, far = self._far
        part = log_y / _FLOAT_RANGE - 1
        if far - near > _POWER:
            return near + part * (far - near)
        return near + math.log1p(part * math.expm1(far - near))

    def farther(self, log_factor: float) -> Option:
        """The same with another reach."""
        return Option(
            self.lemma,
            self.index,
            self.target,
            self.n,
            self.log_reach + log_factor,
            self.power,
            self.log_a,
            self.log_c,
            self.offset,
            self.floor,
            self.curve,
        )


@dataclass(slots=True)
class Item:
    """A piece with its options: per member, what may cover it."""

    key: str
    log_gain: float
    log_zero: float
    """log of the share at which the piece needs no cover at all."""
    members: list[tuple[float, list[Option]]]
    """(log multiplicity, options)."""
    total: float = 0.0
    """log of the number of maps."""
    log_bend: float = math.inf
    """log of the error on the loss towards which that of wrong maps bends (S5)."""
    _heaviest: list[Option] | None = field(default=None, init=False)

    @property
    def heaviest(self) -> list[Option]:
        """The options of the member that reaches farthest, which stand for all."""
        if self._heaviest is None:
            members = (options for _, options in self.members)
            self._heaviest = max(members, key=lambda options: max((o.log_reach for o in options), default=-math.inf))
        return self._heaviest

    def beside(self, more: Sequence[list[Option]]) -> Item:
        """The same piece with more options for each member."""
        members = [(weight, [*options, *others]) for (weight, options), others in zip(self.members, more, strict=True)]
        return Item(self.key, self.log_gain, self.log_zero, members, self.total, self.log_bend)

    def bent(self, log_share: float) -> float:
        """What a share leaves of the error it is counted with (S5)."""
        if self.log_bend == math.inf or log_share >= self.log_zero:
            return log_share
        return self.log_bend + math.log(math.tanh(math.exp(log_share - self.log_bend)))


@dataclass(slots=True)
class Point:
    """An allocation: log of the error spent, log of the log count, and what each piece got."""

    log_scale: float
    log_count: float
    shares: list[float]
    costs: list[float]
    choices: list[tuple[Choice, ...]]
    options: list[Option | None] = field(default_factory=list[Option | None])
    counted: tuple[float, list[tuple[float, Option, float, Params]]] | None = None
    """What `recount` takes apart once: the costs that stay, and the covers that count points."""
    log_lambda: float = math.nan
    """log of the multiplier that it is the minimiser for, if it is one."""


def build_items(lowered: Lowered, samples: int, allowed: Callable[[CoverLemma], bool]) -> list[Item]:
    """The options of every piece under some rule about lemmas, on so many samples."""
    return [_item(piece, samples, allowed) for piece in lowered.pieces]


def _item(piece: Piece, samples: int, allowed: Callable[[CoverLemma], bool]) -> Item:
    log_gain = piece.gain.log
    members: list[tuple[float, list[Option]]] = []
    zero = -math.inf
    count = 0
    for member in piece.members:
        options: list[Option] = []
        spare: list[Option] = []
        for index, target in enumerate(member.targets):
            for lemma in LEMMAS.values():
                if allowed(lemma) and target.kind in lemma.kinds and lemma.applies(target) is None:
                    made = _option(lemma, index, target, samples, log_gain)
                    (options if lemma.promising(target) else spare).append(made)
        members.append((math.log(member.multiplicity), options or spare))
        count += member.multiplicity
        zero = max(zero, min(target.radius.log + target.norms.op.log for target in member.targets) + log_gain)
    if piece.cap is not None:
        zero = min(zero, piece.cap.log)
    bend = piece.cap.log if piece.saturates and piece.cap is not None else math.inf
    return Item(piece.key, log_gain, zero, members, math.log(count), bend)


def _option(lemma: CoverLemma, index: int, target: Target, samples: int, log_gain: float) -> Option:
    n = target.points.count(samples)
    profile = lemma.profile(target, n)
    log_reach = lemma.reach(target).log + log_gain
    if isinstance(profile, Power):
        return Option(lemma, index, target, n, log_reach, True, math.log(profile.coefficient), 0.0)
    if isinstance(profile, Curve):
        return Option(lemma, index, target, n, log_reach, False, 0.0, 0.0, 0.0, True, profile)
    log_n, log_c = math.log(profile.dimension), math.log(profile.factor)
    return Option(
        lemma, index, target, n, log_reach, False, log_n, log_c, profile.offset / profile.dimension, profile.floor
    )


def uncoverable(items: Sequence[Item]) -> str | None:
    """The first piece that no allowed lemma covers."""
    for item in items:
        if any(not options for _, options in item.members):
            return item.key
    return None


def lemmas_of(items: Sequence[Item]) -> frozenset[str]:
    """The lemmas that are options anywhere: equal sets give equal allocations."""
    return frozenset(option.lemma.name for item in items for _, options in item.members for option in options)


def cost_at(item: Item, log_share: float) -> tuple[float, tuple[Choice, ...], Option | None]:
    """Least log cost of a piece at a share, member by member."""
    if log_share >= item.log_zero:
        return -math.inf, (ZERO,) * len(item.members), None
    costs: list[float] = []
    chosen: list[Choice] = []
    dearest, highest = None, -math.inf
    for log_multiplicity, options in item.members:
        best, best_option = math.inf, None
        for option in options:
            cost = option.log_cost(log_share)
            if cost < best:
                best, best_option = cost, option
        costs.append(best + log_multiplicity)
        chosen.append(ZERO if best_option is None else best_option.choice(log_share))
        if best + log_multiplicity > highest:  # whichever is listed first would make the order of heads matter
            dearest, highest = best_option, best + log_multiplicity
    return log_sum(costs), tuple(chosen), dearest


def _best_share(item: Item, log_lambda: float) -> tuple[float, float, tuple[Choice, ...], Option | None]:
    """(log share, log cost, choices, option) minimising cost + lambda * share."""
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
    if option is None:
        return share, cost, (ZERO,) * len(item.members), None
    if len(item.members) == 1:
        return share, cost, (option.choice(share),), option
    cost, choices, dearest = cost_at(item, share)
    return share, cost, choices, dearest or option


def allocate(items: Sequence[Item], log_lambda: float) -> Point:
    """The Lagrangian minimiser: a vertex of the hull of (error, log count)."""
    found = [_best_share(item, log_lambda) for item in items]
    point = point_of(items, found)
    point.log_lambda = log_lambda
    return point


def point_of(items: Sequence[Item], found: Sequence[tuple[float, float, tuple[Choice, ...], Option | None]]) -> Point:
    """An allocation from (log share, log cost, choices, option) of every piece."""
    return Point(
        log_sum([item.bent(f[0]) for item, f in zip(items, found, strict=True)]),
        log_sum([f[1] for f in found]),
        [f[0] for f in found],
        [f[1] for f in found],
        [f[2] for f in found],
        [f[3] for f in found],
    )


@dataclass(slots=True)
class Bracket:
    """Two neighbouring vertices of the hull: one that spends at most a given error, and the next, which spends more."""

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
    return Bracket(inside, outside, high)


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
        found = bracket(items, log_start)
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
    for item, share, cost, choices in zip(items, point.shares, point.costs, point.choices, strict=True):
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
    for item, share, choices in zip(items, point.shares, point.choices, strict=True):
        dropped = all(choice is ZERO for choice in choices)
        covers[item.key] = Cover(share - item.log_gain + (room if dropped else 0.0), choices)
    return covers
