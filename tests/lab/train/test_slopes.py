"""Gaps of members fitted to coin tosses: they are in their class, they overfit, and no bound of the class is below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch

from boundcalc import evaluate
from boundcalc.lab.train import slopes
from boundcalc.lab.train.slopes import SlopesPlan, fitted

SMALL = SlopesPlan(samples=(60, 240), T=4, seeds=4, starts=2, steps=60)


def test_members_stay_in_their_class_and_overfit_less_on_more_examples() -> None:
    few, many = (fitted(SMALL, m, 4, 2.0) for m in (60, 960))
    for one in (few, many):
        assert one.largest <= 1
        assert one.largest >= 0.99  # the limits are used
    assert few.gap.low > 0
    assert many.gap.value < 0.7 * few.gap.value


@pytest.mark.parametrize("place", [(1000, 4, 1.0), (1000, 4, 4.0)])
def test_no_bound_of_the_class_is_below(place: tuple[int, int, float]) -> None:
    bound = evaluate(SMALL.setting(*place)).gap
    assert fitted(SMALL, *place).gap.high < bound < 1


def test_without_projection_members_leave_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the certified norms see it."""
    monkeypatch.setattr(slopes, "project_on_balls", lambda weights, balls: None)
    assert fitted(replace(SMALL, steps=20), 60, 4, 0.5).largest > 1


def test_fresh_losses_are_those_of_fair_coins() -> None:
    ahead = torch.tensor([[0.1, -0.7, 0.2]])
    both = (slopes._ramp(ahead, 0.5) + slopes._ramp(-ahead, 0.5)) / 2
    drawn = torch.randint(0, 2, (20_000, 3), generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert slopes._ramp(ahead * drawn, 0.5).mean() == pytest.approx(float(both), abs=0.01)
