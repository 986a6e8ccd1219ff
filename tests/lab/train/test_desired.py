"""The law with a known Bayes predictor: exact sums against draws, the class against its bound, and attempts to break it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting

torch = pytest.importorskip("torch")
from boundcalc.lab.latent.learning import learning_bound  # noqa: E402
from boundcalc.lab.train import desired as module  # noqa: E402
from boundcalc.lab.train.desired import DesiredPlan, desired, drawn, excess, fitted, law_of, learned, seen_risk  # noqa: E402
from boundcalc.lab.train.model import plain  # noqa: E402

PLAN = DesiredPlan(lengths=(6,), samples=(300,), seeds=40, steps=150)


def sequences(length: int, n: int, seed: int) -> tuple[Any, Any]:
    """Rows and answers drawn one by one, as the module's text says, without its counts."""
    rng = np.random.default_rng(seed)
    odds = rng.uniform(size=(n, 2))
    keys = rng.integers(0, 2, (n, length))
    shown = np.where(rng.uniform(size=(n, length)) < np.take_along_axis(odds, keys, 1), 1.0, -1.0)
    asked = rng.integers(0, 2, n)
    y = np.where(rng.uniform(size=n) < odds[np.arange(n), asked], 1.0, -1.0)
    x = np.zeros((n, length + 1, 5))
    x[np.arange(n), 0, 3 + asked] = 1
    x[np.arange(n)[:, None], np.arange(1, length + 1), keys] = 1
    x[:, 1:, 2] = shown
    return x, y


def test_the_law_and_the_network_are_what_the_text_says() -> None:
    """Exact risks of random members against the setting's own network on sequences drawn one by one."""
    length, n = 6, 200_000
    law = law_of(length)
    assert law.chance.sum() == pytest.approx(1)
    x, y = sequences(length, n, 0)
    generator = torch.Generator().manual_seed(0)
    architecture = PLAN.setting(length, 10, 0.05).architecture
    for _ in range(3):
        a = torch.randn(5, 5, dtype=torch.float64, generator=generator)
        v = torch.randn(5, dtype=torch.float64, generator=generator)
        v = 1.4 * v / v.norm()  # outside the class, so that the cut is tried too
        weights = {"W_QK": a[None], "W_V": v[None, :, None]}
        f = plain(architecture, weights, torch.from_numpy(x)).flatten().numpy()
        losses = (y - f.clip(-1, 1)) ** 2 / 4
        exact = law.bayes + float(excess(a, v, law))
        assert abs(losses.mean() - exact) < 5 * losses.std() / math.sqrt(n)


def test_the_desired_parameter_is_in_the_class_and_nearly_bayes() -> None:
    for length in (4, 16, 64):
        law = law_of(length)
        a, v = desired(6.0)
        assert module.is_member(DesiredPlan(), a, v)
        assert float(excess(a, v, law)) < 1.2e-6
        assert float(excess(torch.zeros_like(a), v, law)) > 1e-3  # attention to all alike is not it
        assert law.ignorant == pytest.approx(float(excess(a, 0 * v, law)))
    assert not module.is_member(DesiredPlan(), a * 1.001, v)
    assert not module.is_member(DesiredPlan(), a, v * 1.001)


def test_training_comes_near_it_and_stays_in_the_class() -> None:
    few, many = learned(DesiredPlan(lengths=(8,), samples=(300, 30_000), seeds=4))
    for row in (few, many):
        assert row.members == 4
        assert row.exceeded == 0
    assert many.excess.value < few.excess.value / 10
    assert many.excess.value < 2e-4
    assert many.bound > many.excess.high
    assert many.apart.value < few.apart.value
    assert many.bound < 0.2


def test_a_minimiser_is_one() -> None:
    """Training loses nothing against the desired parameter, or hardly anything."""
    law = law_of(8)
    data = drawn(law, 1000, range(6))
    a, v = fitted(DesiredPlan(), law, data)
    assert float((seen_risk(a, v, law, data) - seen_risk(*desired(6.0), law, data)).max()) < 1e-5


@pytest.mark.parametrize("against", [False, True])
def test_no_trained_model_exceeds_x5(against: bool) -> None:
    """The cheap form of `boundcalc latent desired --L 16 --m 1000 --seeds 1000 [--against]`, which trains 1,000."""
    (row,) = learned(replace(PLAN, against=against))
    assert row.exceeded == 0
    assert row.gap.high < row.x5 < 1


def test_a_bound_that_forgets_the_class_is_exceeded() -> None:
    """The negative control: at delta = 1/2 what holds for one function fails for most of those made to break it."""
    law, m = law_of(6), 30
    data = drawn(law, m, range(100))
    forgetful = math.sqrt(math.log(2) / (2 * m))
    fails: list[int] = []
    for a, v in (desired(6.0), module.opposed(PLAN, law, data)):
        gaps = excess(a, v, law) + law.bayes - seen_risk(a, v, law, data)
        fails.append(int((gaps > forgetful).sum()))
        assert float(gaps.max()) < learning_bound(PLAN.setting(6, m, 0.5)).value
    assert fails[0] <= 50 < 65 < fails[1]


def test_a_plan_without_sense_is_refused() -> None:
    several: tuple[dict[str, Any], ...] = (
        {"lengths": (300,)},
        {"seeds": 1},
        {"C": 0.5},
        {"samples": (0,)},
        {"delta": 1.0},
    )
    for wrong in several:
        with pytest.raises(InvalidSetting):
            DesiredPlan(**wrong)
