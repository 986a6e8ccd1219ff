"""The masked pretext, frozen, at a task it never saw: X6 holds, a bound without kappa does not, and limits cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting, Unsupported

torch = pytest.importorskip("torch")
from boundcalc.lab.train import pretext as module  # noqa: E402
from boundcalc.lab.train.pretext import PretextPlan, error_limit, pretrained  # noqa: E402

PLAN = PretextPlan(blurs=(0.0, 0.4), length=8, lengths=(4,), words=4, seeds=2, steps=250, fresh=4000, draws=100)


@pytest.fixture(scope="module")
def rows() -> Any:
    return pretrained(PLAN)


def test_the_places_and_their_condition_numbers(rows: Any) -> None:
    assert [(row.blur, row.length) for row in rows] == [(0.0, 8), (0.4, 8), (0.0, 4)]
    assert [row.kappa for row in rows] == pytest.approx([1, 5, 1])  # 1/(1 - 2 blur)


def test_x6_holds_and_a_bound_without_kappa_does_not(rows: Any) -> None:
    plain, blurred, _ = rows
    for row in rows:
        assert row.exceeded == 0
        assert row.induced.value < row.bound
        assert row.limit > row.pretext.value
        assert row.bound == pytest.approx(row.kappa**2 * row.limit, rel=1e-9)
    assert plain.induced.value < plain.nothing / 3  # it is good for something
    assert blurred.induced.value > blurred.limit  # the negative control: |w|^2 e is no bound


def test_longer_inputs_leave_less_unknown(rows: Any) -> None:
    longer, _, shorter = rows
    assert longer.unknown < shorter.unknown
    assert longer.unknown + longer.nothing == pytest.approx(shorter.unknown + shorter.nothing, rel=0.1)  # Var(w z)


def test_the_posterior_variance_is_that_of_draws() -> None:
    """Var(w z | X) against laws drawn from the posterior, for one sequence."""
    task = PLAN.task(8)
    tokens = np.array([[0, 1, 1, 2, 4, 4, 4, 3, 1]])
    h = task.posterior_mean(tokens)
    counts = np.bincount(tokens[0, 1:] - 1, minlength=4)
    z = np.random.default_rng(0).dirichlet(counts + task.alpha, 200_000)
    assert np.abs(z.mean(0) - h[0]).max() < 3e-3
    assert module.left_unknown(task, h, PLAN.wanted)[0] == pytest.approx((z @ PLAN.wanted).var(), rel=0.02)


def test_limits_cover(rows: Any) -> None:
    tried = sum(PLAN.seeds * PLAN.draws for _ in rows)
    assert sum(row.short for row in rows) <= 0.05 * tried + 4 * math.sqrt(0.05 * tried)
    assert sum(row.over for row in rows) == 0


def test_the_limit_of_a_mean_covers_in_a_thousand_draws_and_a_mean_alone_does_not() -> None:
    rng = np.random.default_rng(0)
    for numbers in (rng.beta(0.3, 20, 4000) * 2, (rng.uniform(size=4000) < 0.02) * 2.0):
        draws = numbers[rng.integers(0, 4000, (1000, 300))]
        short = sum(error_limit(one, 0.05) < numbers.mean() for one in draws)
        assert short <= 75  # 50 may, and 75 of 1000 would be three deviations more
        assert sum(one.mean() < numbers.mean() for one in draws) > 400


def test_a_plan_without_sense_is_refused() -> None:
    several: tuple[dict[str, Any], ...] = (
        {"words": 5, "blurs": (0.1,)},
        {"seeds": 1},
        {"blurs": (0.6,)},
        {"fresh": 10},
    )
    for wrong in several:
        with pytest.raises(InvalidSetting):
            PretextPlan(**wrong)
    with pytest.raises(Unsupported, match="infinite"):
        PretextPlan(blurs=(0.5,))
