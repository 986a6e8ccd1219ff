"""The search for the least risk at the assumed training error: covers, or noise, at half the margin. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from boundcalc.base.numbers import FLOAT, LOG, LogFloat
from boundcalc.engine.allocate import Point, covers_of, recount
from boundcalc.engine.exact import allocate_alike, allocate_exactly
from boundcalc.engine.ground import Found, Ground
from boundcalc.engine.mu import least_mu
from boundcalc.engine.noise import NoiseItems
from boundcalc.engine.options import Item, lemmas_of, uncoverable
from boundcalc.engine.stored import beside_counted
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.statements.strategies import GHOSTS, STRATEGIES, Known, MarginStrategy, noise_chance

HALF = math.log(0.5) - 1e-12
"""Half the margin, on the loss: a float just below log(1/2)."""
_HOPELESS = 30.0
"""Nats per sample of a uniform cover beyond which noise is not tried."""

Covered = tuple[Sequence[Item], Point]
"""An allocation of half the margin."""


def risks(ground: Ground, only: str | None = None) -> Iterator[Found]:
    """Candidate certificates for the risk at the assumed margin training error; perhaps of one strategy alone."""
    if ground.closed is not None or ground.speaks_of_none:
        return
    yield from beside_counted(ground, "risk", only, _covering)


def _covering(ground: Ground, only: str | None) -> Iterator[Found]:
    """Those by covers and by noise; those that count points last, if they may be better."""
    least = math.inf

    def seen(candidates: Iterator[Found]) -> Iterator[Found]:
        nonlocal least
        for found in candidates:
            least = min(least, found.log_value)
            yield found

    if ground.met is not None:
        yield from seen(risks(ground.met, only))
    strategies = [each for each in ground.strategies(MarginStrategy) if only in (None, each.name)]
    for strategy in strategies:
        if strategy.uniform:
            yield from seen(_covered(ground, strategy))
    for strategy in STRATEGIES.values():
        if isinstance(strategy, MarginStrategy) and strategy.noisy and only in (None, strategy.name):
            yield from seen(_noisy(ground, strategy, exactly=only is None))
    for strategy in strategies:
        if not strategy.uniform and not _beaten(ground, strategy, least):
            yield from seen(_covered(ground, strategy))


def _covered(ground: Ground, strategy: MarginStrategy) -> Iterator[Found]:
    items, point = uniform_half(ground) if strategy.uniform else _ghost_half(ground)
    for alpha in _ghosts(strategy):
        samples = strategy.samples(ground.m, alpha)
        log_count = point.log_count if strategy.uniform else recount(items, point, samples)
        log_value, mu = _value(ground, strategy, log_count, alpha)
        yield Found(log_value, strategy.name, partial(_certificate, ground, strategy, items, point, alpha, mu))


def _beaten(ground: Ground, strategy: MarginStrategy, least: float) -> bool:
    """Whether a strategy that counts points is no better than what is found, even at the least that covers may cost."""
    if least == math.inf:
        return False
    curve = ground.curve(uniform=False)
    floor = curve.hull.floor(curve.items, HALF)
    for alpha in _ghosts(strategy):
        if strategy.samples(ground.m, alpha) < (ground.beside or ground).m:  # fewer than the curve was counted on
            return False
        if _value(ground, strategy, floor, alpha)[0] < least:
            return False
    return True


def _ghosts(strategy: MarginStrategy) -> Sequence[int]:
    return GHOSTS if "alpha" in strategy.parameters else (1,)


def uniform_half(ground: Ground) -> Covered:
    """The cheapest uniform cover at half the margin: the same for every number of samples."""
    return _half(ground, uniform=True)


def _ghost_half(ground: Ground) -> Covered:
    """A cheap cover at half the margin, counted on two samples each."""
    return _half(ground, uniform=False)


def _half(ground: Ground, *, uniform: bool) -> Covered:
    if ground.beside is not None:
        return _half(ground.beside, uniform=uniform)
    items = ground.items(ground.m if uniform else 2 * ground.m, uniform=uniform)
    hull = ground.curve(uniform=True).hull if uniform else None  # others are counted on more points
    return ground.once(("half", uniform, lemmas_of(items)), lambda: (items, allocate_exactly(items, HALF, hull)))


# -- noise (G11)


def _noisy(ground: Ground, strategy: MarginStrategy, *, exactly: bool) -> Iterator[Found]:
    """Certificates of G11; where maps meet, noise on the product is as good (but for references, which it forgets)."""
    if not ground.policy.laws or (ground.met is not None and not _referred(ground)):
        return
    if strategy.refuses(ground.setting) is not None:
        return
    covered = _noise_half(ground, exactly=exactly)
    if covered is None:
        return
    items, point = covered
    eta = noise_chance(ground.m)
    value, mu = least_mu(lambda mu: strategy.value(FLOAT, ground.known(HALF, point.log_count, mu=mu, eta=eta)))

    def write() -> Certificate:
        return replace(_certificate(ground, strategy, items, point, 1, mu), eta=eta)

    yield Found(_log(value), strategy.name, write)


def _noise_half(ground: Ground, *, exactly: bool) -> Covered | None:
    """Noise, and uniform covers beside it, at half the margin.

    One number of samples is solved from nothing. For others the lemmas chosen there are tried, and unless exactly, no others.
    """
    lemmas = _beside_noise(ground)
    if lemmas is None:
        return None
    origin = ground.beside or ground
    laws = origin.policy.laws
    key = ("noise", lemmas, laws)
    noises: NoiseItems = origin.once(key, lambda: NoiseItems(origin.lowered, origin.covers(lemmas), laws))
    items = noises.at(noise_chance(ground.m))
    if uncoverable(items) is not None:
        return None
    first = _first_solved(origin)
    if ground.m == first:
        return origin.once((*key, first), lambda: _told(noises, first, items, allocate_exactly(items, HALF)))
    beside = _noise_half(origin.with_samples(first), exactly=True)
    if beside is None:
        return _told(noises, ground.m, items, allocate_exactly(items, HALF))
    at_once = _as_seen(noises, ground.m, beside, moves=exactly)
    if at_once is not None and not exactly:
        return at_once
    alike = allocate_alike(items, HALF, beside[1], moves=exactly)
    told = _told(noises, ground.m, items, alike or allocate_exactly(items, HALF))
    return told if at_once is None or told[1].log_count <= at_once[1].log_count else at_once


def _as_seen(noises: NoiseItems, m: int, beside: Covered, *, moves: bool) -> Covered | None:
    """The lemmas of an allocation for other samples, at no more events than it has."""
    seen = noises.seen(beside[1].choices(beside[0]))
    items = noises.at(noise_chance(m), seen)
    alike = allocate_alike(items, HALF, beside[1], moves=moves)
    return None if alike is None or noises.seen(alike.choices(items)) > seen else (items, alike)


def _first_solved(origin: Ground) -> int:
    """The number of samples whose noise is solved first: that which is searched anyway, or the least that is not hopeless."""
    if not origin.has_uniform:
        return origin.m
    log_fewest = uniform_half(origin)[1].log_count - math.log(_HOPELESS)
    return max(origin.m, math.ceil(math.exp(log_fewest)))


def _told(noises: NoiseItems, m: int, items: Sequence[Item], point: Point) -> Covered:
    """An allocation, at no more events than those of the pieces that carry noise in it."""
    seen = noises.seen(point.choices(items))
    if seen == noises.events:
        return items, point
    fewer = noises.at(noise_chance(m), seen)
    alike = allocate_alike(fewer, HALF, point, moves=False)
    return (items, point) if alike is None or noises.seen(alike.choices(fewer)) != seen else (fewer, alike)


def _beside_noise(ground: Ground) -> frozenset[str] | None:
    """The lemmas of the cheapest uniform cover, which may stand beside noise; None where noise too is hopeless."""
    if not ground.has_uniform:
        return frozenset()
    items, point = uniform_half(ground)
    if point.log_count > math.log(_HOPELESS * ground.m):
        return None
    return frozenset(choice.lemma for choices in point.choices(items) for choice in choices)


def _referred(ground: Ground) -> bool:
    """Whether some budget is of a distance from a reference."""
    return any(budget.distance is not None for budget in ground.setting.norms.budgets.values())


# -- values and certificates


def _value(ground: Ground, strategy: MarginStrategy, log_count: float, alpha: int) -> tuple[float, float | None]:
    """The log of a risk bound, at the best parameter of the kl inverse where it takes one (any is valid)."""
    if "mu" not in strategy.parameters:
        inverse, m = LogFloat.of(ground.log_inverse_delta), LogFloat.of(ground.m)
        q = LogFloat.of(ground.setting.sample.train_error)
        known = Known(LogFloat(ground.log_start), [LogFloat(HALF)], [LogFloat(log_count)], inverse, m, q, alpha)
        return strategy.value(LOG, known).log, None
    known = ground.known(HALF, log_count, alpha)
    if not strategy.needs_mu(ground.setting):
        return _log(strategy.value(FLOAT, known)), None
    value, mu = least_mu(lambda mu: strategy.value(FLOAT, ground.known(HALF, log_count, alpha, mu)))
    return _log(value), mu


def _log(value: float) -> float:
    return math.log(value) if 0 < value < math.inf else math.inf


def _certificate(
    ground: Ground, strategy: MarginStrategy, items: Sequence[Item], point: Point, alpha: int, mu: float | None
) -> Certificate:
    level = Level(HALF, covers_of(items, point))
    return replace(ground.certificate(strategy, (level,)), alpha=alpha, mu=mu)
