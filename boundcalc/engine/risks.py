"""The search for the smallest risk at the assumed training error: covers, or noise, at half the margin. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from boundcalc.base.golden import golden
from boundcalc.engine.allocate import Point, covers_of
from boundcalc.engine.exact import allocate_alike, allocate_exactly
from boundcalc.engine.noise import NoiseItems
from boundcalc.engine.options import Item, lemmas_of, uncoverable
from boundcalc.proof.certificate import Level
from boundcalc.statements.strategies import STRATEGIES, Known, MarginStrategy, noise_chance

if TYPE_CHECKING:
    from boundcalc.engine.search import Candidate, Search

HALF = math.log(0.5) - 1e-12
"""Half the margin, on the loss: a float just below log(1/2)."""
_HOPELESS = 30.0
"""Nats per sample of a cover beyond which noise is not tried."""
_GOLDEN_STEPS = 40

_MOST_COUNT = 600.0
"""Logs of log counts that floats can hold."""

Covered = tuple[Sequence[Item], Point]
"""An allocation of half the margin."""


def candidates(search: Search, only: str | None) -> Iterator[Candidate]:
    """Certificates by covers and by noise at half the margin.

    Noise on a merged map is as good as on its parts, but for references, which products forget.
    """
    referred = any(budget.distance is not None for budget in search.setting.norms.budgets.values())
    for strategy in STRATEGIES.values():
        if not isinstance(strategy, MarginStrategy) or strategy.stored or strategy.refuses(search.setting) is not None:
            continue
        for each in search.classes if not strategy.noisy or referred else search.classes[:1]:
            covered = _noise_half(each, exactly=only is None) if strategy.noisy else uniform_half(each)
            if covered is not None:
                items, point = covered
                yield each.at_best_mu(strategy, _known(each, point), (Level(HALF, covers_of(items, point)),))


def _known(search: Search, point: Point) -> Known:
    """What a margin strategy is told of an allocation of half the margin."""
    return search.known([math.exp(HALF)], [math.exp(min(point.log_count, _MOST_COUNT))])


def least_mu(value: Callable[[float], float]) -> tuple[float, float]:
    """The least value over the parameter of the kl inverse, by golden section in its log; and the parameter."""
    mu = math.exp(golden(lambda x: value(math.exp(x)), -8.0, 8.0, _GOLDEN_STEPS))
    return value(mu), mu


def uniform_half(search: Search) -> Covered:
    """The cheapest cover at half the margin: the same for every number of samples."""
    items = search.items()
    return search.once(("half", lemmas_of(items)), lambda: (items, allocate_exactly(items, HALF, search.curve.hull)))


# -- noise (G11)


def _noise_half(search: Search, *, exactly: bool) -> Covered | None:
    """Noise, and covers beside it, at half the margin; None where noise is not allowed, or hopeless.

    One number of samples is solved from nothing. For others the lemmas chosen there are tried, and unless exactly, no others.
    """
    laws = search.policy.laws
    if not laws:
        return None
    beside = frozenset[str]()
    if search.has_uniform:
        items, point = uniform_half(search)
        if point.log_count > math.log(_HOPELESS * search.m):
            return None
        beside = frozenset(choice.lemma for choices in point.choices(items) for choice in choices)
    key = ("noise", beside, laws)
    noises: NoiseItems = search.once(key, lambda: NoiseItems(search.network, search.covers(beside), laws))
    items = noises.at(noise_chance(search.m))
    if uncoverable(items) is not None:
        return None
    first: Covered = search.once(
        (*key, "first"), lambda: _fewer_events(noises, search.m, items, allocate_exactly(items, HALF))
    )
    alike = _as_seen(noises, search.m, first, moves=exactly)
    if alike is not None:
        return alike
    return _fewer_events(noises, search.m, items, allocate_exactly(items, HALF))


def _as_seen(noises: NoiseItems, m: int, like: Covered, *, moves: bool) -> Covered | None:
    """The lemmas of an allocation for other samples, at no more events than it has."""
    seen = noises.seen(like[1].choices(like[0]))
    items = noises.at(noise_chance(m), seen)
    alike = allocate_alike(items, HALF, like[1], moves=moves)
    return None if alike is None or noises.seen(alike.choices(items)) > seen else (items, alike)


def _fewer_events(noises: NoiseItems, m: int, items: Sequence[Item], point: Point) -> Covered:
    """An allocation, at no more events than those of the pieces that carry noise in it."""
    return _as_seen(noises, m, (items, point), moves=False) or (items, point)
