"""How each piece may be covered: lemmas on its targets, and the shape of their costs. Not trusted: the checker decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from boundcalc.base.numbers import FLOAT, LOG, LogFloat, log_add, log_sum
from boundcalc.proof.certificate import ZERO, Choice
from boundcalc.statements.covers import LEMMAS, CoverLemma, Params, Power
from boundcalc.statements.covers.curve import Curve
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.targets import Target

_FLOAT_RANGE = 300.0
"""Above y = e^300 squares leave the range of floats and costs are computed in logs."""
_FEW_POINTS = 1e100
"""So many that what holds of them far beyond the range of floats holds of all."""
_POWER = 5.0
"""log y grows by a factor of 2 where a power of y grows by more than this (log)."""
_MANY = 60
"""Items from which on it pays to look for those that are alike."""
_LOG_2, _LOG_3_2 = math.log(2), math.log(1.5)


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
    far: list[float] = field(default_factory=list)
    """Logs of its costs at two places beyond floats, once they were asked for: the same whatever the reach."""

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
        if self.power:
            share = (_LOG_2 + log_weight + self.log_a + 2 * self.log_reach - log_lambda) / 3
            return log_lambda + share + _LOG_3_2, share  # the cost is half of lambda * s
        share = self.minimiser(log_weight, log_lambda)
        inside = self.log_c + self.log_reach - share
        growth = inside if inside > 40 else math.log1p(math.exp(inside))
        if growth + self.offset <= 0:  # far beyond where no cover is needed
            return math.inf, share
        log_cost = self.log_a + math.log(growth + self.offset)
        return log_add(log_weight + log_cost, log_lambda + share), share

    def choice(self, log_share: float) -> Choice:
        """What a certificate records of the cover at a share."""
        log_y = self.log_reach - log_share
        return (
            ZERO if log_y <= 0 else Choice(self.lemma.name, self.index, self.lemma.params(log_y, self.target, self.n))
        )

    def log_cost(self, log_share: float, params: Params | None = None) -> float:
        """Log of the cost at a share."""
        log_y = self.log_reach - log_share
        if log_y <= 0:
            return -math.inf
        if params is None and log_y > _FLOAT_RANGE and self.n < _FEW_POINTS:
            return self._far_cost(log_y)
        n = self.n
        if params is None:
            params = self.lemma.params(log_y, self.target, n)
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
        if not self.far:
            places = (_FLOAT_RANGE, 2 * _FLOAT_RANGE)
            self.far += [
                self.log_cost(self.log_reach - at, self.lemma.params(at, self.target, self.n)) for at in places
            ]
        near, far = self.far
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
            self.far,
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
    like: int | None = None
    """Items of a list that share this number have the same options, but for how far they all reach."""
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


def build_items(lowered: Network, samples: int, allowed: Callable[[CoverLemma], bool]) -> list[Item]:
    """The options of every piece under some rule about lemmas, on so many samples."""
    items = [_item(piece, samples, allowed) for piece in lowered.pieces]
    if len(items) >= _MANY:
        _compare(items)
    return items


def _compare(items: Sequence[Item]) -> None:
    """Notes which items are alike; what their options cost beyond floats is found once."""
    firsts: dict[tuple[object, ...], Item] = {}
    numbers: dict[int, int] = {}
    for item in items:
        if len(item.members) > 1 or not item.heaviest:
            continue
        first = firsts.setdefault(_shape(item), item)
        item.like = numbers.setdefault(id(first), len(numbers))
        for option, known in zip(item.heaviest, first.heaviest, strict=True):
            option.far = known.far


def _shape(item: Item) -> tuple[object, ...]:
    """What costs depend on, beside the reach of the first option."""
    first = item.heaviest[0].log_reach
    parts: list[object] = [item.total]
    for o in item.heaviest:
        target = o.target
        parts += (o.lemma.name, o.n, o.log_a, o.log_c, o.offset, id(o.curve), round(o.log_reach - first, 9))
        parts += (target.kind, target.d, target.k, target.norms.rank)
    return tuple(parts)


def _item(piece: Piece, samples: int, allowed: Callable[[CoverLemma], bool]) -> Item:
    log_gain = piece.gain.log
    members: list[tuple[float, list[Option]]] = []
    zero = -math.inf
    count = 0
    for member in piece.members:
        options: list[Option] = []
        for index, target in enumerate(member.targets):
            for lemma in LEMMAS.values():
                if allowed(lemma) and target.kind in lemma.kinds and lemma.applies(target) is None:
                    options.append(_option(lemma, index, target, samples, log_gain))
        members.append((math.log(member.multiplicity), options))
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


def cost_at(item: Item, log_share: float) -> tuple[float, Option | None]:
    """Least log cost of a piece at a share, member by member, and the option of the dearest."""
    if log_share >= item.log_zero:
        return -math.inf, None
    costs: list[float] = []
    dearest, highest = None, -math.inf
    for (log_multiplicity, _), (best, option) in zip(item.members, _cheapest(item, log_share), strict=True):
        costs.append(best + log_multiplicity)
        if best + log_multiplicity > highest:  # whichever is listed first would make the order of heads matter
            dearest, highest = option, best + log_multiplicity
    return log_sum(costs), dearest


def _cheapest(item: Item, log_share: float) -> Iterator[tuple[float, Option | None]]:
    """Of every member the least log cost at a share, and by what."""
    for _, options in item.members:
        best, found = math.inf, None
        for option in options:
            cost = option.log_cost(log_share)
            if cost < best:
                best, found = cost, option
        yield best, found


def choices_at(item: Item, log_share: float, option: Option | None) -> tuple[Choice, ...]:
    """What a certificate records of a piece that is covered by an option, or by nothing."""
    if option is None:
        return (ZERO,) * len(item.members)
    if len(item.members) == 1:
        return (option.choice(log_share),)
    return tuple(ZERO if found is None else found.choice(log_share) for _, found in _cheapest(item, log_share))
