"""Every registered strategy against classes whose chances are known exactly, and against itself in other number systems."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, Number, NumberSystem
from boundcalc.statements.strategies import STRATEGIES, Known, Strategy
from tests.laws.strategies import counterexample


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_counterexample(name: str) -> None:
    assert counterexample(STRATEGIES[name]) is None


def scaled(strategy: Strategy, factor: float) -> Strategy:
    """The strategy with its value times a factor."""

    class Scaled(type(strategy)):  # type: ignore[misc]
        def value(self, ns: NumberSystem, known: Known) -> Number:
            return factor * super().value(ns, known)

    return Scaled()  # pyright: ignore[reportAbstractUsage]: its class is a concrete one


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_law_rejects_values_that_are_too_small(name: str) -> None:
    """Negative control: a tenth off is noticed where a bound is nearly sharp, a larger part where it is not."""
    factor = {"closed": 0.2, "published": 0.05}.get(name, 0.88)
    assert counterexample(scaled(STRATEGIES[name], factor)) is not None


def known_in(ns: NumberSystem, number: Any, strategy: Strategy) -> Known:
    q = 0.01 if "mu" in strategy.parameters else 0.0
    scales, counts = [0.2, 0.03, 0.004], [3.0, 50.0, 900.0]
    if strategy.one_level:
        scales, counts = scales[-1:], counts[-1:]
    known = Known(
        number(0.5),
        [number(e) for e in scales],
        [number(count) for count in counts],
        number(math.log(20)),
        number(10**6),
        number(q),
        2 if "alpha" in strategy.parameters else 1,
    )
    if "eta" in strategy.parameters:
        known = replace(known, eta=number(1e-3))
    return replace(known, mu=number(2.5)) if "mu" in strategy.parameters else known


@pytest.mark.parametrize("name", STRATEGIES)
def test_number_systems_agree_and_terms_make_the_value(name: str) -> None:
    strategy = STRATEGIES[name]
    plain = strategy.value(FLOAT, known_in(FLOAT, float, strategy))
    exact = strategy.value(INTERVAL, known_in(INTERVAL, arb, strategy))
    assert float(exact) == pytest.approx(plain, rel=1e-9)
    assert float(strategy.value(LOG, known_in(LOG, LogFloat.of, strategy))) == pytest.approx(plain, rel=1e-9)
    known = known_in(INTERVAL, arb, strategy)
    terms = {term.formula: float(term.value) for term in strategy.terms(INTERVAL, known)}
    assert terms
    links = strategy.links(INTERVAL, known)
    if links is not None:
        assert sum(terms.values()) == pytest.approx(plain, rel=1e-9)
        assert len(links) == len(known.scales)
    assert len(strategy.weights(INTERVAL, known)) == len(known.scales)


@pytest.mark.parametrize("name", STRATEGIES)
def test_values_rise_with_counts_and_confidence_and_fall_with_samples(name: str) -> None:
    strategy = STRATEGIES[name]
    known = known_in(FLOAT, float, strategy)
    value = strategy.value(FLOAT, known)
    assert strategy.value(FLOAT, replace(known, counts=[2 * count for count in known.counts])) > value
    assert strategy.value(FLOAT, replace(known, log_inverse_delta=9.0)) > value
    assert strategy.value(FLOAT, replace(known, m=known.m * 2)) < value
