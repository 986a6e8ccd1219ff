"""How each piece may be covered: lemmas on its targets, and what their covers cost.

Not trusted: the checker decides.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.base.numbers import FLOAT, log_sum
from boundcalc.layers.facts import Target
from boundcalc.proof.certificate import ZERO, Choice
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.network import Network, Piece

_STEP = 0.25
"""Distance of neighbouring nodes in log y."""
_LAST = 160
"""From y = e^40 on costs are powers of y, or straight in log y."""
_FAR = 300.0
"""From here on squares of y leave the range of floats: costs are read off here and twice as far."""
_POWER = 5.0
"""log y grows by a factor of 2 between them where a power of y grows by more than this (log)."""
_NOTHING = -80.0
"""The log of what costs nothing, in the table."""


class Cost:
    """What a lemma's covers of targets of one shape cost, by log y = log(reach/eps), also tabulated."""

    def __init__(self, lemma: CoverLemma, target: Target, n: int) -> None:
        self._lemma, self._target, self._n = lemma, target, n
        self._node, self._slope, self._best = cache(self._at_node), cache(self._slope_at), cache(self._search)

    def exact(self, log_y: float) -> float:
        """The log of the cost, at near-optimal parameters."""
        if log_y <= 0:
            return -math.inf
        return self._computed(log_y) if log_y <= _FAR else self._beyond(log_y)

    def __call__(self, log_y: float) -> float:
        """The same, linear between nodes."""
        place = log_y / _STEP
        if place >= _LAST:
            return self._beyond(log_y)
        if place < 0:
            return -math.inf
        low = int(place)
        near = self._node(low)
        return near + (place - low) * (self._node(low + 1) - near)

    def best(self, u: float) -> float:
        """The log y that minimises cost + e^(u - log y); linear between nodes of u."""
        _, _, _, offset, factor = self._far
        far = (u - offset) * factor
        if far >= _LAST * _STEP:
            return far
        low = math.floor(u / _STEP)
        near = self._best(low)
        return near + (u / _STEP - low) * (self._best(low + 1) - near)

    def _computed(self, log_y: float) -> float:
        lemma, target, n = self._lemma, self._target, self._n
        params = lemma.params(log_y, target, n)
        try:
            cost = lemma.sharp(FLOAT, math.exp(log_y), target, n, params)
            return math.log(cost) if cost > 0 else -math.inf
        except OverflowError:
            return upper_log(lemma.sharp(INTERVAL, arb(log_y).exp(), target, arb(n), params))

    @cached_property
    def _far(self) -> tuple[bool, float, float, float, float]:
        """Far out: whether the cost is a power, its log, how fast that (or the cost) grows, and how to find the best y.

        Its log is (u - offset) * factor: e^c y^p costs p e^(c + p log y) = e^(u - log y) there.
        """
        near = self._computed(_FAR)
        more = self._computed(2 * _FAR) - near
        if more > _POWER:
            return True, near, more, near - more + math.log(more / _FAR), 1 / (1 + more / _FAR)
        return False, near, math.expm1(more), near + math.log(math.expm1(more) / _FAR), 1.0

    def _beyond(self, log_y: float) -> float:
        power, near, more, _, _ = self._far
        part = (log_y / _FAR - 1) * more
        return near + (part if power else math.log1p(part))

    def _at_node(self, i: int) -> float:
        return max(_NOTHING, self._computed(max(i * _STEP, 1e-9)))

    def _slope_at(self, i: int) -> float:
        """The u above which node i + 1 is better than node i: e^u e^-y falls by more than the cost rises."""
        low, high = self._node(i), self._node(i + 1)
        return i * _STEP + high + math.log(-math.expm1(low - high) / -math.expm1(-_STEP)) if high > low else -math.inf

    def _search(self, place: int) -> float:
        """The log y that minimises cost + e^(u - log y) at a node of u, by a parabola through three nodes."""
        u, slope, (_, _, _, offset, factor) = place * _STEP, self._slope, self._far
        i = min(_LAST, max(0, round((u - offset) * factor / _STEP)))
        while i < _LAST and slope(i) < u:
            i += 1
        while i > 0 and slope(i - 1) > u:
            i -= 1
        if i in (0, _LAST):
            return i * _STEP
        pairs = ((self._node(j), u - j * _STEP) for j in (i - 1, i, i + 1))
        before, least, after = [max(a, b) + math.log1p(math.exp(-abs(a - b))) for a, b in pairs]
        bend = before - 2 * least + after
        return _STEP * (i + (max(-0.5, min(0.5, (before - after) / (2 * bend))) if bend > 0 else 0.0))


_COSTS: dict[tuple[CoverLemma, Hashable], Cost] = {}


def cost_of(lemma: CoverLemma, target: Target, n: int) -> Cost:
    """What a lemma's covers of a target cost; targets of one shape share it, where no points are counted."""
    if not lemma.uniform or target.most is not None:
        return Cost(lemma, target, n)
    key = (lemma, lemma.shape(target))
    if key not in _COSTS:
        _COSTS[key] = Cost(lemma, target, 1)
    return _COSTS[key]


@dataclass(slots=True)
class Option:
    """One lemma on one target of one member, and the log of its reach on the loss."""

    lemma: CoverLemma
    index: int
    target: Target
    n: int
    log_reach: float
    cost: Cost

    def choice(self, log_share: float) -> Choice:
        """What a certificate records of the cover at a share."""
        log_y = self.log_reach - log_share
        params = {} if log_y <= 0 else self.lemma.params(log_y, self.target, self.n)
        return ZERO if log_y <= 0 else Choice(self.lemma.name, self.index, params)


@dataclass(slots=True)
class Item:
    """A piece with its options: per member its log multiplicity, and what may cover it.

    Attributes:
        key: of the piece.
        log_gain: log of the error of the loss per eps.
        log_zero: log of the share at which the piece needs no cover at all.
        members: log of how many maps a member stands for, and its options.
        total: log of the number of maps.
        log_bend: log of the error on the loss towards which that of wrong maps bends (S5).
        widest: the options of the member that reaches farthest, which stand for all.
    """

    key: str
    log_gain: float
    log_zero: float
    members: list[tuple[float, list[Option]]]
    log_bend: float = math.inf
    total: float = field(init=False)
    widest: list[Option] = field(init=False)

    def __post_init__(self) -> None:
        self.total = log_sum([weight for weight, _ in self.members])
        self.widest = max((options for _, options in self.members), key=_reach)

    def saturated(self, log_share: float) -> float:
        """What a share leaves of the error it is counted with (S5)."""
        if log_share >= self.log_zero:
            return log_share
        return self.log_bend + math.log(math.tanh(math.exp(log_share - self.log_bend)))

    def cheapest(self, log_share: float) -> list[Option | None]:
        """Of every member the option that costs least at a share; None where none is needed."""
        if log_share >= self.log_zero:
            return [None] * len(self.members)
        cheapest: list[Option | None] = []
        for _, options in self.members:
            costs = [option.cost(option.log_reach - log_share) for option in options] if len(options) > 1 else [0.0]
            cheapest.append(options[costs.index(min(costs))])
        return cheapest

    def log_cost(self, log_share: float, *, exact: bool = False) -> float:
        """Log of about the cost at a share, or of the cost itself."""
        chosen = zip(self.members, self.cheapest(log_share), strict=True)
        return log_sum(
            [
                weight + (option.cost.exact if exact else option.cost)(option.log_reach - log_share)
                for (weight, _), option in chosen
                if option is not None
            ]
        )


def _reach(options: Sequence[Option]) -> float:
    return max([option.log_reach for option in options], default=-math.inf)


def build_items(network: Network, samples: int, names: Container[str]) -> list[Item]:
    """The options of every piece among some lemmas, on so many samples."""
    lemmas = [lemma for name, lemma in LEMMAS.items() if name in names]
    return [_item(piece, samples, lemmas) for piece in network.pieces]


def _item(piece: Piece, samples: int, lemmas: Sequence[CoverLemma]) -> Item:
    log_gain = upper_log(piece.gain)
    zero = max(
        min(upper_log(target.radius * target.norms.op) for target in member.targets) + log_gain
        for member in piece.members
    )
    members = [
        (math.log(member.multiplicity), options_of(member.targets, samples, log_gain, lemmas))
        for member in piece.members
    ]
    if piece.cap is not None:
        zero = min(zero, upper_log(piece.cap))
    bend = upper_log(piece.cap) if piece.saturates and piece.cap is not None else math.inf
    return Item(piece.key, log_gain, zero, members, bend)


def options_of(targets: Sequence[Target], samples: int, log_gain: float, lemmas: Sequence[CoverLemma]) -> list[Option]:
    """The lemmas that apply to targets of a member."""
    options: list[Option] = []
    for index, target in enumerate(targets):
        n = target.points.count(samples)
        for lemma in lemmas:
            if target.kind in lemma.kinds and lemma.applies(target) is None:
                reach = upper_log(lemma.reach(target)) + log_gain
                options.append(Option(lemma, index, target, n, reach, cost_of(lemma, target, n)))
    return options


def uncoverable(items: Sequence[Item]) -> str | None:
    """The first piece that no allowed lemma covers."""
    return next((item.key for item in items if any(not options for _, options in item.members)), None)


def lemmas_of(items: Sequence[Item]) -> frozenset[str]:
    """The lemmas that are options anywhere: equal sets give equal allocations."""
    return frozenset(option.lemma.name for item in items for _, options in item.members for option in options)
