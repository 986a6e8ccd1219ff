"""Closed forms (A4 + G1, PUB): every piece by its option of least coefficient, the error split by A1. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import LOG, LogFloat, log_sum
from boundcalc.engine.allocate import slack
from boundcalc.engine.items import Item, Option
from boundcalc.proof.certificate import Choice, Cover, Level
from boundcalc.statements.network import Network
from boundcalc.statements.strategies import Known, Strategy

if TYPE_CHECKING:
    from boundcalc.engine.search import Search

_FIXED_POINT_STEPS = 30
_LOG_ROUNDING = 16 * 2.0**-53
"""Relative error of a log after the few roundings between a weight and the log of its eps."""


def closed_form(search: Search, strategy: Strategy) -> tuple[float, Level]:
    """Log of a closed form's value, and its level."""
    items = search.items(strategy.samples(search.m), uniform=strategy.uniform)
    level, log_capacity = _split(search, strategy, items, 0.0)
    if strategy.follows_m:
        for _ in range(_FIXED_POINT_STEPS):
            start = 0.5 * (log_capacity - math.log(search.m)) + math.log(3)  # where Dudley's integral starts
            if level.log_scale <= start:
                break
            level, log_capacity = _split(search, strategy, items, start - 1e-6)
    count, scale = LogFloat(log_capacity - 2 * level.log_scale), LogFloat(level.log_scale)
    inverse, m = LogFloat.of(search.log_inverse_delta), LogFloat.of(search.m)
    known = Known(LogFloat(search.log_start), [scale], [count], inverse, m, LogFloat.of(0))
    return strategy.value(LOG, known).log, level


def _split(search: Search, strategy: Strategy, items: Sequence[Item], log_scale: float) -> tuple[Level, float]:
    """A1 at one scale: shares in proportion to the cube roots of coefficient * reach^2."""
    published = strategy.published
    weights: list[float] = []
    chosen: list[tuple[Choice, ...]] = []
    for item in items:
        costs: list[float] = []
        choices: list[Choice] = []
        for log_multiplicity, options in item.members:
            at_one = [_log_coefficient(option, log_scale, published) + 2 * option.log_reach for option in options]
            best = min(range(len(options)), key=at_one.__getitem__)
            costs.append(at_one[best] + log_multiplicity)
            choices.append(Choice(options[best].lemma.name, options[best].index))
        weights.append(log_sum(costs) / 3)
        chosen.append(tuple(choices))
    total = log_sum(weights)
    room, gains = slack(items), [item.log_gain for item in items]
    if not published:  # the checked value is to be the formula's: exact gains, room only for the rounding of logs
        gains = search.once(("gains",), lambda: _exact_gains(search))
        room = _LOG_ROUNDING * (1 + max(map(abs, (log_scale, total, *weights, *gains))))
    shares = [log_scale + weight - total - room for weight in weights]
    covers = {
        item.key: Cover(share - gain, choices)
        for item, gain, share, choices in zip(items, gains, shares, chosen, strict=True)
    }
    if not published:
        return Level(log_scale, covers), 3 * total
    costs = [
        log_sum(
            [
                log_multiplicity + _log_published(options, choice, share)
                for (log_multiplicity, options), choice in zip(item.members, choices, strict=True)
            ]
        )
        for item, share, choices in zip(items, shares, chosen, strict=True)
    ]
    return Level(log_scale, covers), log_sum(costs) + 2 * log_scale


def _exact_gains(search: Search) -> list[float]:
    return [float(piece.gain.log()) for piece in Network(search.setting, INTERVAL).pieces]


def _log_coefficient(option: Option, log_scale: float, published: bool) -> float:
    """Log of the cost at y = 1 (for the published cover: at the y of about this scale)."""
    y = (
        LogFloat(max(0.0, option.log_reach - log_scale + 2.0))
        if published and option.lemma.published
        else LogFloat(0.0)
    )
    return option.lemma.closed(LOG, y, option.target, LogFloat.of(option.n)).log - 2 * y.log


def _log_published(options: Sequence[Option], choice: Choice, log_share: float) -> float:
    """Log cost of a chosen option under PUB (majorised by y^2 where it is not a power)."""
    option = next(o for o in options if o.lemma.name == choice.lemma and o.index == choice.target)
    y = LogFloat(option.log_reach - log_share)
    n = LogFloat.of(option.n)
    if option.lemma.published:
        return option.lemma.sharp(LOG, y, option.target, n, {}).log
    return option.lemma.closed(LOG, LogFloat(0.0), option.target, n).log + 2 * y.log
