"""Laws of strategies, and a falsifier: classes of N independent 0/1 losses, on which every chance is a binomial sum.

X holds N coins and f_i looks at the i-th: its loss is 1 with chance p, independent of the others. N functions are their
own cover at every scale, so log N is a count any strategy must take. Then the chance that some f_i has a gap (or a risk
at its training error) above the value is 1 - (1 - P(Bin(m, p) <= k))^N exactly, and must not exceed delta.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, Number, NumberSystem
from boundcalc.base.theory import page
from boundcalc.engine.one_level import least_mu
from boundcalc.setting import Setting
from boundcalc.statements.strategies import Known, Strategy
from boundcalc.testing._judge import Cases, Complaint, judge

_TINY = 1e-12
"""A scale so fine that it adds nothing."""
_LEAST = 1e-30
"""The log count of one function, for closed forms that divide by it."""
_CLOSE = 1e-9


class Coins(NamedTuple):
    """A class of `size` coins, seen m times; errors that a bound of the risk receives."""

    size: int
    m: int
    delta: float
    train_error: float = 0.0

    @property
    def setting(self) -> Setting:
        """The sample as a setting; of weights with so many bits, which some strategies are about."""
        return Setting.of(n_train=self.m, delta=self.delta, train_error=self.train_error, bits=16)


COINS = tuple(
    Coins(*numbers) for numbers in product((1, 20, 10**6), (1, 30, 1000, 10**6), (0.2, 1e-3, 1e-9), (0.0, 0.01, 0.3))
)
"""Small and large classes and samples, likely and unlikely failures, with and without errors."""


def no_class_of_coins_exceeds_it(strategy: Strategy, coins: Coins) -> str | None:
    """The chance of more than the value is at most delta; a sample that it refuses tells nothing."""
    risk = strategy.quantity == "risk"
    if (coins.train_error and not risk) or strategy.refuses(coins.setting) is not None:
        return None
    scale, count = 0.5 if strategy.every_scale or risk else _TINY, max(math.log(coins.size), _LEAST)
    eta = _TINY if "eta" in strategy.parameters else None  # N functions need no noise: their law is uniform on all N
    facts = Known(0.5, [scale], [count], -math.log(coins.delta), coins.m, coins.train_error, eta=eta)
    if strategy.needs_mu(coins.setting):
        facts = replace(facts, mu=least_mu(lambda mu: strategy.value(FLOAT, replace(facts, mu=mu)))[1])
    value = strategy.value(FLOAT, facts)
    chance = _chance(coins, value * (1 + 1e-9) + 1e-15, risk=risk)
    return f"{value:.6g} is exceeded with chance {chance:.4g}" if chance > coins.delta * (1 + 1e-6) else None


def _chance(coins: Coins, value: float, *, risk: bool) -> float:
    """Of the worst p tried: that one of N has (for a gap) k/m < p - value, or (for a risk p > value) k/m <= q."""
    if value >= 1:
        return 0.0
    p = value + (1 - value) * np.arange(20) / 20
    k = math.floor(coins.m * coins.train_error + 1e-9) if risk else np.ceil(coins.m * (p - value) - 1e-9) - 1
    with np.errstate(divide="ignore"):
        return float(-np.expm1(coins.size * np.log1p(-binom.cdf(k, coins.m, p))).min())


def _levels(strategy: Strategy, ns: NumberSystem) -> Known:
    """Three levels, or the last of them alone, in some number system."""
    number, first = ns.number, 2 if strategy.one_level else 0
    q, mu = (number(0.01), number(2.5)) if "mu" in strategy.parameters else (number(0.0), None)
    eta = number(1e-3) if "eta" in strategy.parameters else None
    scales, counts = map(number, (0.2, 0.03, 0.004)[first:]), map(number, (3.0, 50.0, 900.0)[first:])
    return Known(number(0.5), [*scales], [*counts], number(math.log(20)), number(10**6), q, mu, eta)


def number_systems_agree(strategy: Strategy, _: Coins) -> str | None:
    """One formula in floats and intervals."""
    plain, exact = (float(strategy.value(ns, _levels(strategy, ns))) for ns in (FLOAT, INTERVAL))
    return None if math.isclose(exact, plain, rel_tol=_CLOSE) else f"floats {plain!r}, intervals {exact!r}"


def terms_make_the_value(strategy: Strategy, _: Coins) -> str | None:
    """What readers are shown adds up, one link per level."""
    facts = _levels(strategy, INTERVAL)
    terms, links = strategy.terms(INTERVAL, facts), strategy.links(INTERVAL, facts)
    if not terms:
        return "no terms"
    total, value = sum(float(term.value) for term in terms), float(strategy.value(INTERVAL, facts))
    if links is None or (len(links) == len(facts.scales) and math.isclose(total, value, rel_tol=_CLOSE)):
        return None
    return f"terms add up to {total!r}, the value is {value!r}; {len(links)} links for {len(facts.scales)} levels"


def rises_with_counts_and_confidence_and_falls_with_samples(strategy: Strategy, _: Coins) -> str | None:
    """More to choose among, or less allowed to fail, costs more; more samples less."""
    facts = _levels(strategy, FLOAT)
    changes = {"counts": [2 * count for count in facts.counts]}, {"log_inverse_delta": 9.0}, {"m": facts.m * 2}
    value, *others = (strategy.value(FLOAT, replace(facts, **change)) for change in ({}, *changes))
    more, surer, longer = others
    return None if more > value and surer > value and longer < value else f"{value}, then {others}"


def names_its_statements(strategy: Strategy, _: Coins) -> str | None:
    """It has a name, words, and names of statements that exist."""
    if not (strategy.name and strategy.title and strategy.formula and strategy.uses):
        return "it needs a name, a title, a formula and what it is based on"
    unknown = [name for name in strategy.uses if name not in page()]
    return f"no statement is called {unknown[0]!r}" if unknown else None


LAWS = (
    no_class_of_coins_exceeds_it,
    number_systems_agree,
    terms_make_the_value,
    rises_with_counts_and_confidence_and_falls_with_samples,
    names_its_statements,
)


def _refuses(strategy: Strategy, what: Setting | Known) -> str | None:
    """A setting it is not about, or levels and parameters it does not allow."""
    if isinstance(what, Setting):
        return strategy.refuses(what)
    return next((why for less, more, why in strategy.conditions(FLOAT, what) if less > more), None)


def check_strategy(strategy: Strategy, cases: Cases) -> list[Complaint]:
    """What is wrong with a strategy, registered or not: every law is tried.

    Args:
        strategy: the strategy.
        cases: classes of coins (`COINS` are many); settings, or inputs (`Known`) that it must refuse; and
            variants of it that are false, such as nine tenths of its value.
    """
    return judge(strategy, cases, LAWS, _refuses)


def scaled(strategy: Strategy, factor: float) -> Strategy:
    """The strategy with its value times a factor: below 1, a variant that may be false."""

    class Scaled(type(strategy)):  # type: ignore[misc]
        def value(self, ns: NumberSystem, inputs: Known) -> Number:
            return factor * super().value(ns, inputs)

    return Scaled()  # pyright: ignore[reportAbstractUsage]: its class is a concrete one
