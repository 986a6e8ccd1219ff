"""Probes of representations: what they must find, what they must not, and what training keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train import minimal as module
from boundcalc.lab.train.minimal import TARGETS, MinimalPlan, minimal
from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.tasks.latent import CoinsTask

PLAN = MinimalPlan(steps=(1, 800), seeds=3, n=2000)


def test_the_bayes_risk_of_coins_is_exact() -> None:
    """Against the best guess from all that is shown, over many sequences."""
    task = CoinsTask(7)
    tokens, y = task.sample({}, NumpySource(0), 200_000)
    heads = ((tokens[:, 1:] - 1) % 2).sum(1)
    assert set(np.unique(tokens[:, 0])) == {0}
    wrong = float(((2 * (heads + 1) > 9) != y).mean())
    assert wrong == pytest.approx(task.bayes_risk().value, abs=4 * math.sqrt(0.25 / 200_000))
    chances = [y[heads == k].mean() for k in range(8)]
    assert np.abs(np.array(chances) - (np.arange(8) + 1) / 9).max() < 0.02


def test_probes_find_what_is_there_and_nothing_else() -> None:
    """The negative control: a representation of the other coin tells nothing of the first, and the other way round."""
    _, numbers = module._sequences(PLAN, 0)
    for kept in range(2):
        found = module._shares(PLAN, 0, numbers[:, [kept]], numbers)
        assert found[TARGETS[kept]] > 0.97
        assert found[TARGETS[1 - kept]] < 0.02
    everything = module._shares(PLAN, 0, numbers / numbers.std(0), numbers)
    assert min(everything.values()) > 0.9
    assert max(module._shares(PLAN, 0, np.zeros_like(numbers), numbers).values()) < 0.02


def test_training_keeps_the_posterior_and_drops_the_rest() -> None:
    first, last, known = minimal(PLAN)
    assert first.shares["other coin"].value > 0.8
    assert last.shares["posterior"].low > 0.95
    assert last.shares["other coin"].value < 0.2
    assert known.shares["posterior"].low > last.shares["posterior"].value - 0.01
    assert known.shares["other coin"].value < 0.01
    assert last.bayes < last.error < first.error


def test_a_plan_without_sense_is_refused() -> None:
    several: tuple[dict[str, Any], ...] = ({"length": 1}, {"seeds": 1}, {"noise": 0.0}, {"steps": (0,)})
    for wrong in several:
        with pytest.raises(InvalidSetting):
            MinimalPlan(**wrong)
