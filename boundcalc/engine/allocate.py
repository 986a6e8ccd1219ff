"""A2: how to split an error among pieces, and which lemma covers which piece. Not trusted: the checker decides.

For every multiplier the Lagrangian is minimised piece by piece; the minimisers trace the lower convex hull of
(error, log count), so each is the best allocation for the error it happens to spend. One pass over multipliers
therefore serves every scale of a chain. `engine.exact` meets one given error, between vertices.
"""

from __future__ import annotations

import math
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
_SNAP = 60.0
"""Perceptron covers cost whole steps; below this many it pays to end on a whole one."""
_BISECTIONS, _CLOSE = 60, 0.02
"""A vertex that spends within 2% of an error is near enough to start from."""
_TRIED = 3
"""Options whose true cost is computed, the best few by their shape."""
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
    """Added to a volume's cost."""
    floor: bool = False
    """Whether the cost is never below its shape (by more than a curve's interpolation)."""
    curve: Curve | None = None
    """The shape, where it is neither."""

    def minimiser(self, log_weight: float, log_lambda: float) -> float:
        """Log of the share s that minimises weight * cost(reach/s) + lambda * s, for the cost's shape."""
        if self.power:
            return (math.log(2) + log_weight + self.log_a + 2 * self.log_reach - log_lambda) / 3
        if self.curve is not None:
            return self.log_reach - self.curve.best(log_lambda + self.log_reach - log_weight)
        ratio = log_weight + self.log_a - log_lambda  # log(w n / lambda)
        q = math.log(4) + ratio - self.log_c - self.log_reach
        root = 0.5 * q if q > 60 else 0.5 * math.log1p(math.exp(q)) if q > -700 else 0.0
        return math.log(2) + ratio - math.log1p(math.exp(root)) if root < 700 else math.log(2) + ratio - root

    def estimate(self, log_share: float) -> float:
        """The cost's shape at a share: cheap, and near enough to rank options by (log)."""
        log_y = self.log_reach - log_share
        if self.power:
            return self.log_a + 2 * log_y
        if self.curve is not None:
            return self.curve.log_cost(log_y)
        inside = self.log_c + log_y
        growth = inside if inside > 40 else math.log1p(math.exp(inside))
        return self.log_a + math.log(growth + self.offset * math.exp(-self.log_a))

    def snapped(self, log_share: float) -> float:
        """The smallest share of the same whole number of steps (power costs only)."""
        log_steps = 2 * (self.log_reach - log_share)
        if not self.power or log_steps > 4.1 or log_steps <= 0:
            return log_share
        steps = math.exp(log_steps)
        if steps > _SNAP:
            return log_share
        return self.log_reach - 0.5 * math.log(math.ceil(steps) * (1 - 4e-12))

    def log_cost(
        self, log_share: float, params: Params | None = None, samples: int | None = None
    ) -> tuple[float, Choice]:
        """Log of the cost at a share, perhaps on another number of samples, and the choice to record."""
        log_y = self.log_reach - log_share
        if log_y <= 0:
            return -math.inf, ZERO
        n = self.n if samples is None else self.target.points.count(samples)
        if params is None:
            params = self.lemma.params(log_y, self.target, n)
        if self.curve is not None and log_y >= LAST * STEP:
            return self.curve.log_cost(log_y), Choice(self.lemma.name, self.index, params)
        if log_y < _FLOAT_RANGE:
            try:
                cost = self.lemma.sharp(FLOAT, math.exp(log_y), self.target, n, params)
                log_cost = math.log(cost) if cost > 0 else -math.inf
                return log_cost, Choice(self.lemma.name, self.index, params)
            except OverflowError:
                pass
        cost = LogFloat.of(self.lemma.sharp(LOG, LogFloat(log_y), self.target, LogFloat.of(n), params))
        return (cost.log if cost.sign > 0 else -math.inf), Choice(self.lemma.name, self.index, params)


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
    return Option(lemma, index, target, n, log_reach, False, log_n, log_c, profile.offset, profile.floor)


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
        best, best_choice, best_option = math.inf, ZERO, None
        for option in options:
            cost, choice = option.log_cost(log_share)
            if cost < best:
                best, best_choice, best_option = cost, choice, option
        costs.append(best + log_multiplicity)
        chosen.append(best_choice)
        if best + log_multiplicity > highest:  # whichever is listed first would make the order of heads matter
            dearest, highest = best_option, best + log_multiplicity
    return log_sum(costs), tuple(chosen), dearest


def _best_share(
    item: Item, log_lambda: float, *, zero: bool = True
) -> tuple[float, float, tuple[Choice, ...], Option | None]:
    """(log share, log cost, choices, option) minimising cost + lambda * share."""
    best = (item.log_zero, -math.inf, (ZERO,) * len(item.members), None)
    value = log_lambda + item.log_zero if zero else math.inf
    single = len(item.members) == 1
    log_multiplicity, options = (
        item.members[0]
        if single
        else max(item.members, key=lambda member: max((o.log_reach for o in member[1]), default=-math.inf))
    )
    ranked: list[tuple[float, float, Option]] = []
    for option in options:
        share = option.minimiser(item.total, log_lambda)
        if share < item.log_zero:
            ranked.append((log_add(item.total + option.estimate(share), log_lambda + share), share, option))
    ranked.sort(key=lambda entry: entry[0])
    for estimate, rough, option in ranked[:_TRIED]:
        share = option.snapped(rough)
        if share >= item.log_zero or (option.floor and estimate > value + _NEAR):
            continue
        if single:
            cost, choice = option.log_cost(share)
            cost += log_multiplicity
            found = (share, cost, (choice,), option)
        else:
            cost = option.log_cost(share)[0] + item.total
            found = (share, cost, (), option)
        if cost == -math.inf:
            continue
        candidate = log_add(cost, log_lambda + share)
        if candidate < value:
            value, best = candidate, found
    if not single and best[3] is not None:
        cost, choices, dearest = cost_at(item, best[0])
        return best[0], cost, choices, dearest or best[3]
    return best


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
    return log_sum([settled, *(weight + o.log_cost(s, p, samples)[0] for weight, o, s, p in counted)])


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
