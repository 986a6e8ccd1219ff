"""G3, G7, G13: the closed form of the binomial limit against tails that are summed, and mutants that it would not
survive."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT, Number, NumberSystem
from boundcalc.engine.one_level import least_mu
from boundcalc.predictors.tails import binomial_tail, float_limit
from boundcalc.statements import gap

Nats = Callable[[NumberSystem, Number, Number, Number], Number]


def cases(number: int) -> list[tuple[int, int, float]]:
    """Errors, samples, nats."""
    rng = random.Random(7)
    found: list[tuple[int, int, float]] = []
    while len(found) < number:
        m = round(math.exp(rng.uniform(math.log(3), math.log(30_000))))
        errors = min(m - 1, round(math.exp(rng.uniform(0, math.log(m)))))
        found.append((errors, m, math.exp(rng.uniform(-1, 6))))
    return found


def limit(errors: float, m: int, nats: float) -> tuple[float, float]:
    """The value at the best mu, rounded up, and the mu."""
    q = errors / m
    _, mu = least_mu(lambda mu: gap.binomial_inverse(FLOAT, q, nats, m, mu))
    share = arb(errors) / m
    return upper_float(gap.binomial_inverse(INTERVAL, share, arb(nats), arb(m), arb(mu))), mu


def violated(number: int) -> list[tuple[int, int, float]]:
    """Cases in which so few errors have more than the chance e^-nats at the value."""
    found: list[tuple[int, int, float]] = []
    for errors, m, nats in cases(number):
        value, _ = limit(errors, m, nats)
        if value < 1 and bool(binomial_tail(errors, m, value) > (-arb(nats)).exp()):
            found.append((errors, m, nats))
    return found


def test_no_tail_is_heavier_than_said() -> None:
    assert violated(400) == []


def test_it_is_never_above_chernoff_and_near_the_limit_itself() -> None:
    gains: list[float] = []
    for errors, m, nats in cases(300):
        value, mu = limit(errors, m, nats)
        chernoff = upper_float(gap.binary_kl_inverse(INTERVAL, arb(errors) / m, arb(nats) / m, arb(mu)))
        assert value <= chernoff
        if value < 1:
            gains.append(1 - value / chernoff)
            exact = float_limit(errors, m, -nats)
            assert nats < 3 or value <= exact * (1.002 if nats >= 20 else 1.006 if nats >= 10 else 1.06)
    assert max(gains) > 0.1


@pytest.mark.parametrize(("m", "errors", "gain"), [(1000, 10, 0.077), (10_000, 100, 0.041), (1000, 3, 0.084)])
def test_what_it_gains_at_ten_nats(m: int, errors: int, gain: float) -> None:
    value, _ = limit(errors, m, 10.0)
    _, mu = least_mu(lambda mu: gap.binary_kl_inverse(FLOAT, errors / m, 10.0 / m, mu))
    chernoff = gap.binary_kl_inverse(FLOAT, errors / m, 10.0 / m, mu)
    assert 1 - value / chernoff == pytest.approx(gain, abs=1e-3)


def test_sizes_that_no_sum_could_reach() -> None:
    m, q, nats = 10**18, 0.25, 1e9
    _, mu = least_mu(lambda mu: gap.binomial_inverse(FLOAT, q, nats, m, mu))
    value = gap.binomial_inverse(INTERVAL, arb(q), arb(nats), arb(m), arb(mu))
    chernoff = gap.binary_kl_inverse(INTERVAL, arb(q), arb(nats) / m, arb(mu))
    assert value.is_finite()
    assert q < float(value) <= upper_float(chernoff) < q * 1.001


def a_quarter_too_much(honest: Nats) -> Nats:
    return lambda ns, q, p, m: honest(ns, q, p, m) + ns.log(ns.number(1.25))


def the_mass_alone(honest: Nats) -> Nats:
    """As if the largest term were the whole tail."""

    def broken(ns: NumberSystem, q: Number, p: Number, m: Number) -> Number:
        x, rest = q * m, ns.maximum(ns.number(1), m - q * m)
        mass = ns.log(2 * ns.pi * x * rest / m) / 2 + 1 / (12 * x + 2)
        return ns.maximum(ns.number(0), mass)

    return broken


@pytest.mark.parametrize("broken", [a_quarter_too_much, the_mass_alone])
def test_mutants_are_noticed(broken: Callable[[Nats], Nats], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap, "_tail_nats", broken(gap._tail_nats))
    assert violated(200)
