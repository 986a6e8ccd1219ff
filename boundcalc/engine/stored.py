"""Stored weights counted instead of covered (G13), where a setting says how many bits they have. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from boundcalc.base.errors import Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.ground import Found, Ground
from boundcalc.engine.mu import least_mu
from boundcalc.proof.certificate import Certificate
from boundcalc.statements.strategies import STRATEGIES, Known, Quantity, Strategy, stored_count


def beside_counted(
    ground: Ground, quantity: Quantity, only: str | None, covering: Callable[[Ground, str | None], Iterator[Found]]
) -> Iterator[Found]:
    """Certificates that count stored weights, then those by covers, which some piece may be without."""
    counted = list(_counted(ground, quantity, only))
    yield from counted
    try:
        yield from covering(ground, only)
    except Unsupported:
        if not counted:
            raise


def _counted(ground: Ground, quantity: Quantity, only: str | None) -> Iterator[Found]:
    if not ground.policy.stored or ground.setting.architecture.bits is None:
        return
    for strategy in STRATEGIES.values():
        asked = strategy.stored and strategy.quantity == quantity and only in (None, strategy.name)
        if asked and strategy.refuses(ground.setting) is None:
            yield _found(ground, strategy)


def _found(ground: Ground, strategy: Strategy) -> Found:
    count = stored_count(FLOAT, ground.setting)
    known = Known(0.5, [], [count], ground.log_inverse_delta, ground.m, ground.setting.sample.train_error)
    mu = None
    if strategy.needs_mu(ground.setting):
        _, mu = least_mu(lambda mu: strategy.value(FLOAT, replace(known, mu=mu)))
    value = strategy.value(FLOAT, replace(known, mu=mu))

    def write() -> Certificate:
        return replace(ground.certificate(strategy, ()), mu=mu)

    return Found(math.log(value), strategy.name, write)
