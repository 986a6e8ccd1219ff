"""Gaps of members fitted to coin tosses: they are in their class, they overfit, and no bound of the class is below
them."""

from __future__ import annotations

import math
import statistics

import pytest

pytest.importorskip("torch")

import torch

from boundcalc import evaluate
from tests.examples.scripts import load

slopes = load("edelman2022", "slopes")
fitted, setting = slopes.fitted, slopes.setting
SMALL = {"seeds": 4, "starts": 2, "steps": 60}


def test_members_stay_in_their_class_and_overfit_less_on_more_examples() -> None:
    few, many = (fitted(m, 4, 2.0, **SMALL) for m in (60, 960))
    for one in (few, many):
        assert one.largest <= 1
        assert one.largest >= 0.99  # the limits are used
    assert min(few.gaps) > 0
    assert statistics.fmean(many.gaps) < 0.7 * statistics.fmean(few.gaps)


@pytest.mark.parametrize("blocks", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_members_fitted_to_coins_never_exceed_the_bound_and_mostly_one_that_forgets_the_class(blocks: int) -> None:
    """Twenty samples a block. The control holds for one function in every second sample, and not for fitted members."""
    place = (250, 8, 2.0)
    bound = evaluate(setting(*place)).gap
    forgetful = math.sqrt(math.log(2) / (2 * place[0]))
    found = [fitted(*place, seeds=20, starts=1, first=20 * block) for block in range(blocks)]
    gaps = [gap for one in found for gap in one.gaps]
    assert len(set(gaps)) == 20 * blocks
    assert max(one.largest for one in found) <= 1
    assert max(gaps) < bound < 1
    assert sum(gap > forgetful for gap in gaps) > 0.75 * len(gaps)


def test_without_projection_members_leave_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the certified norms see it."""
    monkeypatch.setattr("boundcalc.lab.train.optim.project_on_balls", lambda *_: None)
    assert fitted(60, 4, 0.5, **SMALL | {"steps": 20}).largest > 1


def test_fresh_losses_are_those_of_fair_coins() -> None:
    ahead = torch.tensor([[0.1, -0.7, 0.2]])
    both = (slopes._ramp(ahead) + slopes._ramp(-ahead)) / 2
    drawn = torch.randint(0, 2, (20_000, 3), generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert slopes._ramp(ahead * drawn).mean() == pytest.approx(float(both), abs=0.01)
