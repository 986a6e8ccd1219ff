"""How far a statement is where the least proof covers nothing: the first link that is worth its price. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from boundcalc.base.numbers import log_add
from boundcalc.engine.allocate import Point, recount
from boundcalc.engine.ground import Ground
from boundcalc.engine.options import Item
from boundcalc.statements.strategies import GHOSTS

_FIXED_POINT_STEPS = 30
_LINKS = 3
"""First links that are counted on the samples they need; the others are ranked by what they cost on those there are."""
_FINER = 0.05
_FARTHER = 4.0
"""How far a first link looks: covers e^4 times as large as the first, which are several times as fine."""
_SETTLED = 1e-4
_STEEPEST = 0.999
"""Counts grow like the number of samples at most: then no number of them is enough."""
_BELOW_ONE = 0.998
_LARGEST_LOG = 690.0


class Needed(NamedTuple):
    """How far a statement is where the least proof covers nothing.

    Attributes:
        log10_count: base-10 logarithm of the log count (nats) of the cover that one link would need.
        n_train: samples with which that link brings the gap below 1; None where that is more than 10^300.
    """

    log10_count: float
    n_train: float | None

    def to_json(self) -> dict[str, float | None]:
        """As in the schema."""
        return {"log10_count": self.log10_count, "n_train": self.n_train}


class Link(NamedTuple):
    """One link from the loss' own range to a cover: log of the m that makes it worth its price, and the cover."""

    log_m: float
    log_count: float
    items: Sequence[Item]
    point: Point
    alpha: int | None


def needed(ground: Ground) -> Needed | None:
    """The cover and the number of samples by which one link would bring the gap below 1."""
    link = best_link(ground)
    if link is None:
        return None
    n_train = math.ceil(math.exp(link.log_m)) if link.log_m < _LARGEST_LOG else None
    return Needed(link.log_count / math.log(10), n_train)


def best_link(ground: Ground) -> Link | None:
    """The one link that needs the fewest samples to bring the gap below 1."""
    if ground.closed is not None:
        return None
    rough: list[Link] = []
    for uniform in (True, False):
        if ground.has_uniform if uniform else ground.has_empirical:
            rough += _links(ground, rough, uniform=uniform)
    rough.sort(key=lambda link: link.log_m)
    if rough and rough[0].log_m > _LARGEST_LOG:  # no settling brings a link back
        return _settled(ground, rough[0])
    return min((_settled(ground, link) for link in rough[:_LINKS]), key=lambda link: link.log_m, default=None)


def _links(ground: Ground, known: Sequence[Link], *, uniform: bool) -> list[Link]:
    """Links to allocations, down to where even an error of 0 at the same count would not be among the best."""
    alphas = (None,) if uniform else GHOSTS
    curve = ground.curve(uniform=uniform)
    least = [link.log_m for link in known]
    found: list[Link] = []

    def may_gain(point: Point) -> bool:
        if point.log_count == -math.inf:
            return True
        if point.log_scale < ground.log_start - _FINER:
            for alpha in alphas:
                log_m = _log_samples(ground, alpha, point.log_scale, point.log_count)
                found.append(Link(log_m, point.log_count, curve.items, point, alpha))
                least.append(log_m)
        limit = min(_log_samples(ground, alpha, -math.inf, point.log_count) for alpha in alphas)
        return len(least) < _LINKS or limit < sorted(least)[_LINKS - 1]

    looked_at = {id(point) for point in curve.until(curve.first + _FARTHER, may_gain)}
    return [link for link in found if id(link.point) in looked_at]


def _log_samples(ground: Ground, alpha: int | None, log_scale: float, log_count: float) -> float:
    """Log of the m with which a link of this count brings the gap below 1; `alpha` None for uniform covers."""
    factor = 1.0 if alpha is None else 1 + 1 / alpha
    left = _BELOW_ONE * 2 * math.exp(ground.log_start) - 2 * math.exp(log_scale)
    if left <= 0:
        return math.inf
    log_link = math.log(factor) + ground.log_start + 0.5 * (math.log(2) + log_count)
    return 2 * (log_add(log_link, 0.5 * math.log(ground.log_inverse_delta / 2)) - math.log(left))


def _settled(ground: Ground, link: Link) -> Link:
    """Covers that count points cost more on more samples: raise both until they agree, by secants, then lower them."""
    alpha = link.alpha
    if alpha is None:
        return link

    def counted(log_m: float) -> tuple[float, float]:
        """The log of the samples that covers on so many samples need, and of their count."""
        log_count = recount(link.items, link.point, (1 + alpha) * math.ceil(math.exp(log_m)))
        return _log_samples(ground, alpha, link.point.log_scale, log_count), log_count

    x, slope = link.log_m, 0.0
    before: tuple[float, float] | None = None
    for _ in range(_FIXED_POINT_STEPS):
        needed, log_count = counted(min(x, _LARGEST_LOG))
        link = link._replace(log_m=x, log_count=log_count)
        if x > _LARGEST_LOG:
            return link
        if needed <= x - _SETTLED:
            x = needed + _SETTLED / 2  # costs grow with samples: fewer than these, and no fewer than needed, will do
            before = None
        elif needed <= x:
            return link
        else:
            if before is not None:
                slope = min(_STEEPEST, max(0.0, (needed - before[1]) / (x - before[0])))
            before = x, needed
            x += (needed - x) / (1 - slope) + _SETTLED / 2
    return link
