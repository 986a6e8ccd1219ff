"""A falsifier of strategies: classes of N independent 0/1 losses, on which every chance is a binomial sum.

X holds N fair-enough coins and f_i looks at the i-th: its loss is 1 with chance p, independent of the others. N functions
are their own cover at every scale, so log N is a count any strategy must take. Then the chance that some f_i has a gap (or
a risk at its training error) above the value is 1 - (1 - P(Bin(m, p) <= k))^N exactly, and must not exceed delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from scipy.stats import binom

from boundcalc.base.numbers import FLOAT
from boundcalc.engine.risks import least_mu
from boundcalc.setting import Setting
from boundcalc.statements.strategies import Known, Strategy

SIZES = (1, 20, 10**6)
SAMPLES = (1, 30, 1000, 10**6)
DELTAS = (0.2, 1e-3, 1e-9)
ALPHAS = (1, 4, 32)
TRAIN_ERRORS = (0.0, 0.01, 0.3)
TINY = 1e-12
"""A scale so fine that it adds nothing."""
LEAST = 1e-30
"""The log count of one function, for closed forms that divide by it."""


def counterexample(strategy: Strategy) -> str | None:
    """Where the value is exceeded with a chance above delta, or None."""
    for known in _cases(strategy):
        value = strategy.value(FLOAT, known)
        chance = _chance(strategy, known, value * (1 + 1e-9) + 1e-15)
        if chance > known.log_inverse_delta_as_delta * (1 + 1e-6):
            return f"{strategy.name}: {known.describe} exceeds {value:.6g} with chance {chance:.4g}"
    return None


class _Case(Known):
    """What the strategy is told, and which class it is."""

    size: int

    @property
    def log_inverse_delta_as_delta(self) -> float:
        return math.exp(-self.log_inverse_delta)

    @property
    def describe(self) -> str:
        size, delta = round(math.exp(self.counts[0])), self.log_inverse_delta_as_delta
        return f"N = {size}, m = {self.m}, delta = {delta:g}, train error {self.train_error:g}, alpha = {self.alpha}"


def _cases(strategy: Strategy) -> Iterator[_Case]:
    scale = 0.5 if strategy.every_scale or strategy.quantity == "risk" else TINY
    for size in SIZES:
        for m in SAMPLES:
            for delta in DELTAS:
                for alpha in ALPHAS if "alpha" in strategy.parameters else (1,):
                    for q in TRAIN_ERRORS if strategy.quantity == "risk" else (0.0,):
                        setting = Setting.of(n_train=m, delta=delta, train_error=q)
                        if strategy.refuses(setting) is None:
                            count, inverse = max(math.log(size), LEAST), -math.log(delta)
                            case = _Case(0.5, [scale], [count], inverse, m, q, alpha, eta=_eta(strategy))
                            yield _at_best_mu(strategy, case) if strategy.needs_mu(setting) else case


def _eta(strategy: Strategy) -> float | None:
    """N functions need no noise: their law is the uniform one on all N, its divergence log N."""
    return TINY if "eta" in strategy.parameters else None


def _at_best_mu(strategy: Strategy, case: _Case) -> _Case:
    return replace(case, mu=least_mu(lambda mu: strategy.value(FLOAT, replace(case, mu=mu)))[1])


def _chance(strategy: Strategy, known: _Case, value: float) -> float:
    """Of the worst p tried: that one of N has (for a gap) k/m < p - value, or (for a risk p > value) k/m <= q."""
    size = round(math.exp(known.counts[0]))
    worst = 0.0
    for p in (value, *(value + (1 - value) * i / 20 for i in range(1, 20))) if value < 1 else ():
        if strategy.quantity == "risk":
            k = math.floor(known.m * known.train_error + 1e-9)
        else:
            k = math.ceil(known.m * (p - value) - 1e-9) - 1
        single = float(binom.cdf(k, known.m, p)) if k >= 0 else 0.0
        worst = max(worst, -math.expm1(size * math.log1p(-single)) if single < 1 else 1.0)
    return worst
