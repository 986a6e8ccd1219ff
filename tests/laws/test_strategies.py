"""Every registered strategy against classes whose chances are known exactly, and against itself in other number
systems."""

from __future__ import annotations

import pytest

from boundcalc.statements.strategies import STRATEGIES
from boundcalc.testing import Cases, Coins, check_strategy
from boundcalc.testing._strategies import LAWS
from tests.cases.strategies import cases


@pytest.mark.parametrize("name", STRATEGIES)
def test_laws(name: str) -> None:
    assert check_strategy(STRATEGIES[name], cases(name)) == []


def test_a_strategy_that_is_noticed_by_one_law_alone() -> None:
    strategy = STRATEGIES["uniform-margin"]
    coins = [Coins(1, 30, 0.2)]
    for broken, law in (
        ({"uses": ("G99",)}, "names_its_statements"),
        ({"terms": lambda self, ns, inputs: []}, "terms_make_the_value"),
        ({"value": lambda self, ns, inputs: ns.number(2 if ns.name == "interval" else 1)}, "number_systems_agree"),
        ({"value": lambda self, ns, inputs: inputs.m}, "rises_with_counts_and_confidence_and_falls_with_samples"),
    ):
        variant = type("Broken", (type(strategy),), broken)()
        laws = [complaint.law for complaint in check_strategy(variant, Cases(coins, [], {}))]
        assert law in laws
    assert len(LAWS) == 5
