"""The account of a bound: slopes are those of the bound, what is advised does what it says, at little cost."""

from __future__ import annotations

import math

import pytest

from boundcalc import Setting, evaluate
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.growth import changers
from boundcalc.engine.why import Why, why
from boundcalc.setting import Budget, Norms

SETTINGS = {
    "default": Setting.of(depth=2, margin=0.1),
    "vacuous": Setting.of(depth=3, C=2.0, n_train=10**4),
    "training errors": Setting.of(depth=1, train_error=0.05),
    "own norms": Setting.of(
        depth=1, norms=Norms(C=1.0, budgets={"W_V[0]": Budget(op=2.0, two_one=4.0), "W_1": Budget(op=1.5, two_one=3.0)})
    ),
    "gpt2": Setting.of("gpt2", depth=1, d=16, heads=2, seq_len=16, C=1.5, n_train=10**9, vocabulary=50),
}
NOISE = 0.05
"""Logs by which searches of one setting may differ."""
_STEP = 1.4
"""Large enough for slopes not to drown in the noise of searches."""


def account(setting: Setting) -> tuple[BoundValue, dict[str, Why]]:
    evaluator = Evaluator(setting)
    value = evaluator.value("best")
    return value, {found.quantity: found for found in why(value, evaluator)}


def log_of(value: BoundValue, quantity: str) -> float:
    return value.log10 * math.log(10) if quantity == "gap" else value.log_risk


def proof_of(value: BoundValue, quantity: str) -> tuple[str, bool]:
    certificate = value.certificate if quantity == "gap" else value.risk_certificate
    return certificate.strategy, certificate.meeting


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in ("gpt2", "training errors") else ()) for name in SETTINGS],
)
def test_slopes_are_those_of_the_bound(name: str) -> None:
    setting = SETTINGS[name]
    value, found = account(setting)
    compared = 0
    for quantity, each in found.items():
        if each.first_link or each.saturates:
            continue
        for what, slope in each.elasticities.items():
            if what in ("T", "d", "depth"):
                continue  # by whole steps
            size = 1.05 if each.strategy == "comparison" else _STEP  # which is no power of a norm
            measured: list[float] = []
            for step in (
                size,
                1 / size,
            ):  # on one side it may be another theorem, maps that no longer meet, a ball that acts
                there = evaluate(changers(setting)[what](step))
                if there.risk_refusal is None and proof_of(there, quantity) == proof_of(value, quantity):
                    measured.append((log_of(there, quantity) - log_of(value, quantity)) / math.log(step))
            if not measured:
                continue
            assert min(measured, key=abs) == pytest.approx(slope, abs=0.15 + 0.2 * abs(slope)), (quantity, what)
            compared += 1
    assert compared or value.vacuous


@pytest.mark.parametrize("n_train", [1, 2, 30])
def test_slopes_of_few_samples_are_taken_over_whole_samples(n_train: int) -> None:
    """2% more of one sample is one sample: no slope is 0 for want of a step."""
    _, found = account(Setting.of(n_train=n_train, train_error=0.0))
    assert found["gap"].first_link
    assert found["gap"].elasticities["m"] == pytest.approx(-0.5, abs=0.05)
    assert found["risk"].saturates
    assert found["risk"].elasticities["m"] == pytest.approx(-1.0, abs=0.05)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_advised_reaches_the_target_and_speaks_of_some_network(name: str) -> None:
    setting = SETTINGS[name]
    value, found = account(setting)
    assert "risk" in found
    for quantity, each in found.items():
        vacuous = value.vacuous if quantity == "gap" else value.risk_vacuous
        assert each.halves is not vacuous
        assert each.changes
        assert [abs(math.log(c.factor)) for c in each.changes] == sorted(abs(math.log(c.factor)) for c in each.changes)
        for change in each.changes:
            there = evaluate(changers(setting)[change.what](change.factor))
            assert there.risk_refusal is None
            assert not there.trivial or quantity == "risk"
            assert log_of(there, quantity) <= math.log(each.target) + NOISE
            assert change.log_bound <= math.log(each.target)


def test_a_change_that_leaves_no_network_with_the_margin_is_no_advice() -> None:
    """Every norm times 0.7 halves this gap, but no network has the margin there."""
    setting = Setting.of(depth=2, margin=0.3)
    _, found = account(setting)
    assert "every norm" not in [change.what for change in found["gap"].changes]
    there = evaluate(changers(setting)["every norm"](0.7))
    assert there.gap < found["gap"].target
    assert there.risk_refusal is not None
