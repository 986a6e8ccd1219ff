"""P1 for what is chosen after training: the margin, the training error, and norms found by random probes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc import Budget, Certificate, Norms, Setting, compare, evaluate, verify
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints import audit
from boundcalc.statements.posthoc import (
    margin_down,
    margin_steps,
    norms_cost,
    posthoc_cost,
    round_up,
)
from boundcalc.statements.strategies import risk_candidates
from tests.checkpoints import handmade


def setting(**values: Any) -> Setting:
    start = Setting.of(C=1.0, n_train=10**9, seq_len=64, margin=0.7, train_error=0.01)
    return start.but(**values)


@pytest.mark.parametrize("margin", [0.7, 0.5, 1.0, 3.0, 1e-9, 1e9, math.nextafter(0.25, 0)])
def test_the_margin_grid_rounds_down_to_powers_of_two(margin: float) -> None:
    down = margin_down(margin)
    assert down <= margin < 2 * down
    assert down == 2.0 ** -margin_steps(margin)
    assert margin_down(down) == down


def test_a_measured_margin_costs_its_place_on_the_grid() -> None:
    free, paid = evaluate(setting(margin=0.5)), evaluate(setting(measured=("margin",)))
    assert (free.kind, paid.kind) == ("bound", "a_posteriori")
    assert paid.risk_certificate.setting.sample.margin == 0.5
    assert posthoc_cost(FLOAT, paid.risk_certificate) == pytest.approx(math.log(2 * 3 * 1.5))
    assert free.gap < paid.gap < free.gap * 1.1
    assert free.risk < paid.risk


def test_a_measured_training_error_costs_the_number_of_choices() -> None:
    paid = evaluate(setting(margin=0.5, measured=("train_error",)))
    assert posthoc_cost(FLOAT, paid.risk_certificate) == pytest.approx(math.log(15))
    assert risk_candidates(setting()) == 15  # the gap bound, G3, G11, and G4 and G5 with six numbers of ghosts
    stored = evaluate(setting(margin=0.5, measured=("train_error",)).but(bits=16))
    assert posthoc_cost(FLOAT, stored.risk_certificate) == pytest.approx(math.log(16))  # and stored weights


def test_certificates_of_paid_choices_travel_and_verify() -> None:
    for value in compare(setting(measured=("margin", "train_error")), ["best", "log-T"]):
        for certificate in (value.certificate, value.risk_certificate):
            again = Certificate.from_json(certificate.to_json())
            assert verify(again).log_value == verify(certificate).log_value


def test_a_rank_is_its_own_place_on_the_grid() -> None:
    """Ranks 0, 1, 2, ... share 1 out by 1/((r+1)(r+2)); what was measured at most r is paid at r."""
    free = norms_cost(FLOAT, round_up(setting(), Norms(1.0, {"W_1": Budget(op=2.0, fro=3.0)})))
    for rank in (0, 1, 64):
        paid = round_up(setting(), Norms(1.0, {"W_1": Budget(op=2.0, fro=3.0, rank=rank)}))
        assert paid.budgets["W_1"].rank == rank
        assert norms_cost(FLOAT, paid) - free == pytest.approx(math.log((rank + 1) * (rank + 2)))
    assert sum(1 / ((r + 1) * (r + 2)) for r in range(10**5)) < 1


@pytest.mark.parametrize("zero", [False, True])
def test_which_limits_are_paid_for_does_not_depend_on_values(zero: bool, tmp_path: Path) -> None:
    """No rank is given: the architecture knows as much, but for zeros, and a limit for those alone would be a choice."""
    t, config = handmade.bert(np.random.default_rng(0))
    plain = audit(handmade.save(tmp_path / "plain", t, config)).norms().budgets
    t = {key: np.zeros_like(value) if zero else 3 * value for key, value in t.items()}
    other = audit(handmade.save(tmp_path / "other", t, config)).norms().budgets

    def limits(budgets: Mapping[str, Budget]) -> set[tuple[str, str]]:
        return {(key, name) for key, b in budgets.items() for name, value in vars_of(b).items() if value is not None}

    assert limits(plain) == limits(other)
    assert not any(name == "rank" for _, name in limits(plain))


def vars_of(budget: Budget) -> dict[str, Any]:
    return {field.name: getattr(budget, field.name) for field in fields(budget)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: _sample(c, margin=0.6), "not on the grid"),
        (lambda c: _sample(c, margin=1.0), "above the measured"),
        (lambda c: _sample(c, train_error=0.001), "below the measured"),
        (lambda c: _sample(c, measured=("margin",)), "without P1"),
        (lambda c: replace(c, measured={"sample": {"delta": 1}}), "margin"),
        (lambda c: replace(c, measured={"sample": {"margin": "0.7"}}), "must be a number"),
        (lambda c: replace(c, strategy="ghost", alpha=3, eta=None), "not among the choices"),
    ],
)
def test_tampered_choices_are_refused(change: Any, message: str) -> None:
    certificate = evaluate(setting(measured=("margin", "train_error"))).risk_certificate
    changed = change(certificate)
    with pytest.raises(CertificateError, match=message):
        verify(changed)


def _sample(certificate: Certificate, **values: Any) -> Certificate:
    sample = replace(certificate.setting.sample, **values)
    return replace(certificate, setting=replace(certificate.setting, sample=sample))


def test_the_chance_that_probed_norms_are_too_small_is_taken_from_delta() -> None:
    budget = {kind: Budget(op=1, two_one=1) for kind in ("W_QK", "W_V", "W_1", "readout")}
    sure = Setting.of(norms=Norms(budgets=budget, measured=True), n_train=10**9)
    probed = sure.but(norms=Norms(budgets=budget, measured=True, failure=0.01))
    paid, free = evaluate(probed), evaluate(sure)
    extra = posthoc_cost(FLOAT, paid.certificate) - posthoc_cost(FLOAT, free.certificate)
    assert extra == pytest.approx(-math.log(1 - 0.01 / 0.05))
    assert paid.gap > free.gap
    assert Norms.from_json(probed.norms.to_json()) == probed.norms
    with pytest.raises(CertificateError, match="leave nothing of delta"):
        evaluate(sure.but(norms=Norms(budgets=budget, measured=True, failure=0.06)))
    with pytest.raises(InvalidSetting):
        Norms(C=1.0, failure=0.1)


def test_measured_names_only_what_can_be_seen_on_a_sample() -> None:
    with pytest.raises(InvalidSetting, match="measured must be one of margin, train_error"):
        setting(measured=("delta",))
    with pytest.raises(InvalidSetting):
        setting(measured="margin")
    assert Setting.from_json(setting(measured=("margin",)).to_json()).sample.measured == ("margin",)
