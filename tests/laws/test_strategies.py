"""Every registered strategy against classes whose chances are known exactly, and against itself in other number systems."""

from __future__ import annotations

import pytest

from boundcalc.laws import COINS, Cases, Coins, check_strategy
from boundcalc.laws.strategies import LAWS, scaled
from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, Known, Strategy

TOO_SMALL = {"closed": 0.2, "published": 0.05}
"""A tenth off is noticed where a bound is nearly sharp, a larger part where it is not."""


def refused(strategy: Strategy) -> list[tuple[Setting | Known, str]] | None:
    """What a strategy must refuse: another loss, of a bound of the risk; errors; levels that do not chain; no bits."""
    found: list[tuple[Setting | Known, str]] = [(Setting.of(), "bits")] if strategy.stored else []
    if strategy.quantity == "risk":
        found.append((Setting.of(lipschitz=2.0, bits=16), "ramp|margin|Lipschitz"))
    if found:
        return found
    rising = Known(0.5, [0.1, 0.2], [3.0, 2.0], 3.0, 1000, 0.0)
    return [(rising, ".")] if not strategy.one_level else None


@pytest.mark.parametrize("name", STRATEGIES)
def test_laws(name: str) -> None:
    strategy = STRATEGIES[name]
    wrong = {"too small": scaled(strategy, TOO_SMALL.get(name, 0.88))}
    check_strategy(strategy, Cases(COINS, refused(strategy), wrong)).raise_if_broken()


def test_a_strategy_that_is_noticed_by_one_law_alone() -> None:
    strategy = STRATEGIES["uniform-margin"]
    coins = [Coins(1, 30, 0.2)]
    for broken, law in (
        ({"uses": ("G99",)}, "rests_on_statements"),
        ({"terms": lambda self, ns, known: []}, "terms_make_the_value"),
        ({"value": lambda self, ns, known: ns.number(2 if ns.name == "interval" else 1)}, "number_systems_agree"),
        ({"value": lambda self, ns, known: known.m}, "rises_with_counts_and_confidence_and_falls_with_samples"),
    ):
        variant = type("Broken", (type(strategy),), broken)()
        laws = [c.law for c in check_strategy(variant, Cases(coins, [], {})).complaints]
        assert law in laws
    assert len(LAWS) == 5
