"""Candidates that need no covers: stored weights counted (G13), Gaussian comparison (K1, K2). Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from boundcalc.base.errors import Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.comparison import tune
from boundcalc.engine.ground import Found, Ground
from boundcalc.engine.mu import least_mu
from boundcalc.proof.certificate import Certificate
from boundcalc.statements.comparison.network import network_of, refusal
from boundcalc.statements.comparison.sharp import Tuning
from boundcalc.statements.strategies import STRATEGIES, Known, Quantity, Strategy, stored_count


def beside_counted(
    ground: Ground, quantity: Quantity, only: str | None, covering: Callable[[Ground, str | None], Iterator[Found]]
) -> Iterator[Found]:
    """Certificates without covers, then those by covers, which some piece may be without."""
    counted = [*_counted(ground, quantity, only), *_compared(ground, quantity, only)]
    yield from counted
    if not ground.policy.lemmas:
        refused = ground.policy.refuses(ground.setting)
        if refused is not None:
            raise Unsupported(refused)
        return
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


def _compared(ground: Ground, quantity: Quantity, only: str | None) -> Iterator[Found]:
    """K1 and K2, where the policy may use them and the setting is one they are about."""
    setting = ground.setting
    if not ground.policy.comparison or quantity != "gap" or refusal(setting) is not None:
        return
    about = network_of(FLOAT, setting)
    tuning = ground.once(("tuning",), lambda: tune(about))
    for strategy in (STRATEGIES["comparison-closed"], STRATEGIES["comparison"]):
        chosen = tuning if strategy.parameters else None
        if only not in (None, strategy.name) or (strategy.parameters and tuning is None):
            continue
        count = strategy.count(FLOAT, setting, chosen)
        value = strategy.value(FLOAT, Known(0.5, [], [count], ground.log_inverse_delta, ground.m, 0.0))

        def write(strategy: Strategy = strategy, chosen: Tuning | None = chosen) -> Certificate:
            return replace(ground.certificate(strategy, ()), tuning=chosen)

        yield Found(math.log(value), strategy.name, write)


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
