"""P1 for what is chosen after training: the margin, the training error, and norms found by random probes; segments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc import Budget, Certificate, Norms, Sample, Setting, compare, evaluate, verify
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.margins import Margins, best_margin
from boundcalc.statements.posthoc import (
    _margin_steps,
    correct_for_selection,
    margin_down,
    posthoc_cost,
)
from boundcalc.statements.strategies import risk_candidates


def setting(**values: Any) -> Setting:
    start = Setting.of(C=2.0, n_train=10**9, seq_len=64, margin=0.7, train_error=0.01)
    return start.but(**values)


@pytest.mark.parametrize("margin", [0.7, 0.5, 1.0, 3.0, 1e-9, 1e9, math.nextafter(0.25, 0)])
def test_the_margin_grid_rounds_down_to_powers_of_two(margin: float) -> None:
    down = margin_down(margin)
    assert down <= margin < 2 * down
    assert down == 2.0 ** -_margin_steps(margin)
    assert margin_down(down) == down


def test_a_measured_margin_costs_its_place_on_the_grid() -> None:
    free, paid = evaluate(setting(margin=0.5)), evaluate(setting(measured=("margin",)))
    assert (free.kind, paid.kind) == ("bound", "a_posteriori")
    assert paid.risk_certificate.setting.sample.margin == 0.5
    assert _cost(paid.risk_certificate) == pytest.approx(math.log(2 * 3 * 1.5))
    assert free.gap < paid.gap < free.gap * 1.1
    assert free.risk < paid.risk


def test_a_measured_training_error_costs_the_number_of_choices() -> None:
    paid = evaluate(setting(margin=0.5, measured=("train_error",)))
    assert _cost(paid.risk_certificate) == pytest.approx(math.log(3))
    assert risk_candidates(setting()) == 3  # the gap bound, G3 and G11
    stored = evaluate(setting(margin=0.5, measured=("train_error",)).but(bits=16))
    assert _cost(stored.risk_certificate) == pytest.approx(math.log(4))  # and stored weights


def test_a_rank_is_its_own_place_on_the_grid() -> None:
    """Ranks 0, 1, 2, ... share 1 out by 1/((r+1)(r+2)); what was measured at most r is paid at r."""

    def paid(**limits: Any) -> float:
        norms = Norms(1.0, {"W_1": Budget(op=2.0, fro=3.0, **limits)}, measured=True)
        rounded, record = correct_for_selection(setting(norms=norms))
        assert rounded.norms.budgets["W_1"].rank == limits.get("rank")
        return posthoc_cost(FLOAT, rounded, record)

    for rank in (0, 1, 64):
        assert paid(rank=rank) - paid() == pytest.approx(math.log((rank + 1) * (rank + 2)))
    assert sum(1 / ((r + 1) * (r + 2)) for r in range(10**5)) < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: _sample(c, margin=0.6), "not on the grid"),
        (lambda c: _sample(c, margin=1.0), "above the measured"),
        (lambda c: _sample(c, train_error=0.001), "below the measured"),
        (lambda c: _sample(c, measured=("margin",)), "without P1"),
    ],
)
def test_tampered_choices_are_refused(change: Any, message: str) -> None:
    certificate = evaluate(setting(measured=("margin", "train_error"))).risk_certificate
    changed = change(certificate)
    with pytest.raises(CertificateError, match=message):
        verify(changed)


def _cost(certificate: Certificate) -> float:
    return posthoc_cost(FLOAT, certificate.setting, certificate.measured)


def _sample(certificate: Certificate, **values: Any) -> Certificate:
    sample = replace(certificate.setting.sample, **values)
    return replace(certificate, setting=replace(certificate.setting, sample=sample))


def test_the_chance_that_probed_norms_are_too_small_is_taken_from_delta() -> None:
    budget = {kind: Budget(op=1, two_one=1) for kind in ("W_QK", "W_V", "W_1", "readout")}
    sure = Setting.of(norms=Norms(budgets=budget, measured=True), n_train=10**9)
    probed = sure.but(norms=Norms(budgets=budget, measured=True, failure=0.01))
    paid, free = evaluate(probed), evaluate(sure)
    extra = _cost(paid.certificate) - _cost(free.certificate)
    assert extra == pytest.approx(-math.log(1 - 0.01 / 0.05))
    assert paid.gap > free.gap
    assert Norms.from_json(probed.norms.to_json()) == probed.norms
    with pytest.raises(CertificateError, match="leave nothing of delta"):
        evaluate(sure.but(norms=Norms(budgets=budget, measured=True, failure=0.06)))
    with pytest.raises(InvalidSetting):
        Norms(C=1.0, failure=0.1)


def test_errors_are_counted_without_strictness_and_rounded_up() -> None:
    margins = Margins(np.array([2.0, -0.5, 1.0, 1.0, 0.25]))
    assert margins.error(-1) == 0
    assert margins.error(2) == 1
    assert 4 / 5 <= margins.error(1.0) <= 4 / 5 * (1 + 1e-15)
    assert margins.error(0.99) == pytest.approx(2 / 5)
    assert margins.grid() == [2, 1, 0, -1]
    assert Margins(np.array([-1.0, 0.0])).grid() == []


def test_the_best_margin_has_the_smallest_risk_on_the_grid() -> None:
    values = np.random.default_rng(0).uniform(-0.01, 0.5, 3000)
    margins = Margins(values)
    start = Setting(sample=Sample(10**8, measured=("margin", "train_error")))
    setting, found = best_margin(start, margins)
    sample = setting.sample
    assert math.log2(sample.margin) == round(math.log2(sample.margin))
    assert sample.train_error >= np.mean(values <= sample.margin)
    risks: list[float] = []
    for k in margins.grid():
        gamma = 2.0**-k
        value = compare(start.but(margin=gamma, train_error=margins.error(gamma)), ["best"])[0]
        risks += [value.log_risk] if value.risk_refusal is None else []
    assert found.log_risk == min(risks)
    assert len(risks) > 1
    with pytest.raises(InvalidSetting, match="no margin is positive"):
        best_margin(start, Margins(np.array([-1.0, 0.0])))
