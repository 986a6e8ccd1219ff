"""The search for the smallest risk at the given training error: covers, or noise, at half the margin. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from boundcalc.base.numbers import FLOAT, LOG, LogFloat, golden
from boundcalc.engine.allocate import Point, fill, lemmas_at
from boundcalc.engine.items import Item, lemmas_of, options_of, uncoverable
from boundcalc.proof.certificate import Level
from boundcalc.statements import gap
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.strategies import STRATEGIES, MarginStrategy, noise_chance

if TYPE_CHECKING:
    from boundcalc.engine.search import Candidate, Search

HALF = math.log(0.5) - 1e-12
"""Half the margin, on the loss: a float just below log(1/2)."""
_HOPELESS = 30.0
"""Nats per sample of a cover beyond which noise is not tried."""
_GOLDEN_STEPS = 40
_MOST_COUNT = 600.0
"""Logs of log counts that floats can hold."""


def candidates(search: Search, only: str | None = None) -> Iterator[Candidate]:
    """Certificates by covers and by noise at half the margin.

    Noise on a merged map is as good as on its parts, but for references, which products forget.
    """
    referred = any(budget.distance is not None for budget in search.setting.norms.budgets.values())
    for strategy in STRATEGIES.values():
        if only not in (None, strategy.name):
            continue
        if not isinstance(strategy, MarginStrategy) or strategy.stored or strategy.refuses(search.setting) is not None:
            continue
        for part in search.classes if not strategy.noisy or referred else search.classes[:1]:
            point = _noise_half(part) if strategy.noisy else uniform_half(part)
            if point is not None:
                known = part.known([math.exp(HALF)], [math.exp(min(point.log_count, _MOST_COUNT))])
                yield part.at_best_mu(strategy, known, (Level(HALF, point.covers()),))


def least_mu(value: Callable[[float], float]) -> tuple[float, float]:
    """The least value over the parameter of the kl inverse, by golden section in its log; and the parameter."""
    mu = math.exp(golden(lambda x: value(math.exp(x)), -8.0, 8.0, _GOLDEN_STEPS))
    return value(mu), mu


def uniform_half(search: Search) -> Point:
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
        point = uniform_half(search)
        if point.log_count > math.log(_HOPELESS * search.m):
            return None
        beside = lemmas_at(point)
    covers, eta = search.covers(beside), noise_chance(search.m)
    every = sum(
        member.multiplicity * max(map(events, member.targets))
        for piece in search.network.pieces
        for member in piece.members
    )
    items = noise_items(search.network, covers, laws, eta, every)
    if uncoverable(items) is not None:
        return None
    point = fill(items, HALF)
    seen = _seen(search.network, point)
    fewer = Point.of(noise_items(search.network, covers, laws, eta, seen), point.shares)
    return fewer if _seen(search.network, fewer) <= seen else point


def noise_items(network: Network, covers: Sequence[Item], laws: Container[str], eta: float, seen: int) -> list[Item]:
    """Laws of noise besides the covers of every piece, where so many events share a chance."""
    depth = LogFloat.of(gap.noise_depth(FLOAT, eta, max(1, seen)))
    chosen = [law for name, law in NOISES.items() if name in laws]
    items: list[Item] = []
    for item, piece in zip(covers, network.pieces, strict=True):
        members = [
            (
                weight,
                [
                    *options,
                    *(
                        replace(option, log_reach=option.log_reach + spread(LOG, option.target, depth).log)
                        for option in options_of(member.targets, 1, item.log_gain, chosen)
                    ),
                ],
            )
            for (weight, options), member in zip(item.members, piece.members, strict=True)
        ]
        items.append(Item(item.key, item.log_gain, item.log_zero, members, item.log_bend))
    return items


def _seen(network: Network, point: Point) -> int:
    """How many events one example sees where pieces are covered, or carry noise, like this."""
    found = 0
    for piece, item, share in zip(network.pieces, point.items, point.shares, strict=True):
        for member, option in zip(piece.members, item.cheapest(share), strict=True):
            if option is not None and option.lemma.name in NOISES:
                found += member.multiplicity * events(option.target)
    return max(1, found)
