"""Margins: counted without strictness, on the grid; the best of them is that of the smallest risk bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boundcalc import Sample, Setting, compare
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.margins import Margins, best_margin


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
