"""A strategy added from outside: an object in `STRATEGIES`, and everything knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.cli import main
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.search import Search
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.strategies import STRATEGIES, Known, MarginStrategy, risk_candidates
from boundcalc.testing import COINS, Cases, check_strategy
from boundcalc.theorems import POLICIES

SETTING = Setting.of(depth=1, d=8, seq_len=5, n_train=10**6, margin=0.34, train_error=0.02)


class Looser(MarginStrategy):
    """G3 with half as much again: weaker than it must be, and so valid."""

    name = "looser-margin"
    title = "one cover that serves every sample, with a factor to spare"
    uses = ("G0", "G3")
    uniform = True
    parameters = ("mu",)
    formula = "risk <= 3/2 klinv(train error, (log N + log(1/delta))/m)"
    factor = 1.5

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        q, mu = inputs.train_error, inputs.mu
        risk = gap.binary_kl_inverse(ns, q, (inputs.counts[0] + inputs.log_inverse_delta) / inputs.m, mu)
        return ns.number(self.factor) * risk


class TooSmall(Looser):
    """The negative control: a value that does not hold."""

    name = "too-small"
    factor = 0.9


CASES = Cases(COINS, [(Setting.of(lipschitz=2.0), "Lipschitz|ramp")], {"too small": TooSmall()})
"""Where it holds, what it must refuse, and the negative control."""


@pytest.fixture
def registered() -> Iterator[Looser]:
    strategy = Looser()
    STRATEGIES.register(strategy)
    yield strategy
    STRATEGIES.remove(strategy.name)


def found_by_it() -> Certificate:
    risks = Search(SETTING, POLICIES["best"]).candidates("risk")
    return next(found.certificate for found in risks if found.certificate.strategy == "looser-margin")


def test_the_search_offers_it_and_the_checker_follows(registered: Looser) -> None:
    checked = check(found_by_it())
    plain = next(
        f.certificate
        for f in Search(SETTING, POLICIES["best"]).candidates("risk")
        if f.certificate.strategy == "uniform-margin"
    )
    assert checked.value == pytest.approx(1.5 * check(plain).value, rel=1e-6)
    parts = checked.breakdown
    assert parts.formula == registered.formula
    assert {"G3", "A0"} <= set(parts.statements)
    again = Certificate.from_json(json.loads(json.dumps(checked.certificate.to_json())))
    assert verify(again).log_value == checked.log_value


def test_the_least_proof_is_still_the_best(registered: Looser) -> None:
    assert Evaluator(SETTING).value("best").of("risk").form != registered.name


def test_lists_and_explanations_know_it(registered: Looser) -> None:
    listed = CliRunner().invoke(main, ["explain", "strategies"]).stdout
    assert registered.name in listed
    assert registered.title[:40] in " ".join(CliRunner().invoke(main, ["explain", registered.name]).stdout.split())


def test_a_choice_after_the_training_error_pays_for_it(registered: Looser) -> None:
    """P1: five ways to bound the risk instead of four, in the record and in the price."""
    assert risk_candidates(SETTING) == 4
    value = Evaluator(SETTING.but(measured=("train_error",))).value("best")
    assert value.risk_certificate.to_json()["looked_at"]["sample"]["candidates"] == 4


def test_a_reader_without_it_refuses_by_name(registered: Looser) -> None:
    data = check(found_by_it()).certificate.to_json()
    STRATEGIES.remove(registered.name)
    with pytest.raises(CertificateError, match="looser-margin"):
        Certificate.from_json(data)


def test_the_laws_hold_and_reject_too_small_a_value(registered: Looser) -> None:
    assert check_strategy(registered, CASES) == []
