"""Certificates of one level: covers or noise at half the margin for the risk, and closed forms. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.base.numbers import golden, log_sum
from boundcalc.engine._allocate import Point, fill, lemmas_at, slack
from boundcalc.engine._items import Item, Option, lemmas_of, options_of, uncoverable
from boundcalc.proof.certificate import Choice, Cover, Level
from boundcalc.statements import gap
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.strategies import STRATEGIES, Known, MarginStrategy, Strategy, noise_chance

if TYPE_CHECKING:
    from boundcalc.engine.search import Candidate, Search

HALF = math.log(0.5) - 1e-12
"""Half the margin, on the loss: a float just below log(1/2)."""
_HOPELESS = 30.0
"""Nats per sample of a cover beyond which noise is not tried."""
_GOLDEN_STEPS = 40
_MOST_COUNT = 600.0
"""Logs of log counts that floats can hold."""
_FIXED_POINT_STEPS = 30
_LOG_ROUNDING = 16 * 2.0**-53
"""Relative error of a log after the few roundings between a weight and the log of its eps."""


def risk_candidates(search: Search) -> Iterator[Candidate]:
    """Certificates by covers and by noise at half the margin.

    Noise on a merged map is as good as on its parts, but for references, which products forget.
    """
    referred = any(budget.distance is not None for budget in search.setting.norms.budgets.values())
    for strategy in STRATEGIES.values():
        if not isinstance(strategy, MarginStrategy) or strategy.stored or strategy.refuses(search.setting) is not None:
            continue
        for part in search.classes if not strategy.noisy or referred else search.classes[:1]:
            point = _noise_half(part) if strategy.noisy else _uniform_half(part)
            if point is not None:
                inputs = part.known([math.exp(HALF)], [math.exp(min(point.log_count, _MOST_COUNT))])
                yield part.candidate(strategy, inputs, (Level(HALF, point.covers()),))


def least_mu(value: Callable[[float], float]) -> tuple[float, float]:
    """The least value over the parameter of the kl inverse, by golden section in its log; and the parameter."""
    mu = math.exp(golden(lambda x: value(math.exp(x)), -8.0, 8.0, _GOLDEN_STEPS))
    return value(mu), mu


def _uniform_half(search: Search) -> Point:
    """A cheap cover at half the margin: the same for every number of samples."""
    items = search.items()
    return search.once(("half", lemmas_of(items)), lambda: fill(items, HALF))


# -- noise (G11)


def _noise_half(search: Search) -> Point | None:
    """Noise, and covers besides it, at half the margin; None where noise is not allowed, or hopeless."""
    laws = search.policy.laws
    if not laws:
        return None
    beside = frozenset[str]()
    if search.has_uniform:
        point = _uniform_half(search)
        if point.log_count > math.log(_HOPELESS * search.m):
            return None
        beside = lemmas_at(point)
    covers, eta = search.covers(beside), noise_chance(search.m)
    every = sum(
        member.multiplicity * max(map(events, member.targets))
        for piece in search.network.pieces
        for member in piece.members
    )
    items = _noise_items(search.network, covers, laws, eta, every)
    if uncoverable(items) is not None:
        return None
    point = fill(items, HALF)
    seen = _noise_events(search.network, point)
    fewer = Point.of(_noise_items(search.network, covers, laws, eta, seen), point.shares)
    return fewer if _noise_events(search.network, fewer) <= seen else point


def _noise_items(network: Network, covers: Sequence[Item], laws: Container[str], eta: float, seen: int) -> list[Item]:
    """Laws of noise besides the covers of every piece, where so many events share a chance."""
    depth = gap.noise_depth(INTERVAL, eta, max(1, seen))
    chosen = [law for name, law in NOISES.items() if name in laws]
    items: list[Item] = []
    for item, piece in zip(covers, network.pieces, strict=True):
        members: list[tuple[float, list[Option]]] = []
        for (weight, options), member in zip(item.members, piece.members, strict=True):
            noise = options_of(member.targets, 1, item.log_gain, chosen)
            reaches = [option.log_reach + upper_log(spread(INTERVAL, option.target, depth)) for option in noise]
            noise = [replace(option, log_reach=reach) for option, reach in zip(noise, reaches, strict=True)]
            members.append((weight, [*options, *noise]))
        items.append(Item(item.key, item.log_gain, item.log_zero, members, item.log_bend))
    return items


def _noise_events(network: Network, point: Point) -> int:
    """How many events one example sees where pieces are covered, or carry noise, like this."""
    count = 0
    for piece, item, share in zip(network.pieces, point.items, point.shares, strict=True):
        for member, option in zip(piece.members, item.cheapest(share), strict=True):
            if option is not None and option.lemma.name in NOISES:
                count += member.multiplicity * events(option.target)
    return max(1, count)


# -- closed forms


def closed_form(search: Search, strategy: Strategy) -> tuple[float, Level]:
    """Log of a closed form's value (A4 + G1, PUB), and its level: of every piece the option of least coefficient."""
    items = search.items(strategy.samples(search.m), uniform=strategy.uniform)
    level, log_capacity = _split(search, strategy, items, 0.0)
    if strategy.follows_m:
        for _ in range(_FIXED_POINT_STEPS):
            start = 0.5 * (log_capacity - math.log(search.m)) + math.log(3)  # where Dudley's integral starts
            if level.log_scale <= start:
                break
            level, log_capacity = _split(search, strategy, items, start - 1e-6)
    start, count, scale = (
        arb(log).exp() for log in (search.log_start, log_capacity - 2 * level.log_scale, level.log_scale)
    )
    inputs = Known(start, [scale], [count], arb(search.log_inverse_delta), arb(search.m), arb(0))
    return upper_log(strategy.value(INTERVAL, inputs)), level


def _split(search: Search, strategy: Strategy, items: Sequence[Item], log_scale: float) -> tuple[Level, float]:
    """A1 at one scale: shares in proportion to the cube roots of coefficient * reach^2."""
    published = strategy.published
    weights: list[float] = []
    chosen: list[list[Option]] = []
    for item in items:
        costs: list[float] = []
        best: list[Option] = []
        for log_multiplicity, options in item.members:
            at_one = [_log_coefficient(option, log_scale, published) + 2 * option.log_reach for option in options]
            costs.append(min(at_one) + log_multiplicity)
            best.append(options[at_one.index(min(at_one))])
        weights.append(log_sum(costs) / 3)
        chosen.append(best)
    total = log_sum(weights)
    room, gains = slack(items), [item.log_gain for item in items]
    if not published:  # the checked value is to be the formula's: exact gains, room only for the rounding of logs
        gains = [float(piece.gain.log()) for piece in search.network.pieces]
        room = _LOG_ROUNDING * (1 + max(map(abs, (log_scale, total, *weights, *gains))))
    shares = [log_scale + weight - total - room for weight in weights]
    covers: dict[str, Cover] = {}
    counts: list[float] = []
    for item, gain, share, best in zip(items, gains, shares, chosen, strict=True):
        covers[item.key] = Cover(share - gain, tuple(Choice(option.lemma.name, option.index) for option in best))
        if published:
            pairs = zip(item.members, best, strict=True)
            counts.append(log_sum([weight + _log_published(option, share) for (weight, _), option in pairs]))
    return Level(log_scale, covers), log_sum(counts) + 2 * log_scale if published else 3 * total


def _log_coefficient(option: Option, log_scale: float, published: bool) -> float:
    """Log of the cost at y = 1 (for the published cover: at the y of about this scale)."""
    log_y = max(0.0, option.log_reach - log_scale + 2.0) if published and option.lemma.published else 0.0
    return upper_log(option.lemma.closed(INTERVAL, arb(log_y).exp(), option.target, arb(option.n))) - 2 * log_y


def _log_published(option: Option, log_share: float) -> float:
    """Log cost of an option under PUB (majorised by y^2 where it is not a power)."""
    log_y, n = option.log_reach - log_share, arb(option.n)
    if option.lemma.published:
        return upper_log(option.lemma.sharp(INTERVAL, arb(log_y).exp(), option.target, n, {}))
    return upper_log(option.lemma.closed(INTERVAL, arb(1), option.target, n)) + 2 * log_y
