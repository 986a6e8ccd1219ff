"""Runs that pick: laws of what they claim, and learners that must be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from boundcalc.base.errors import InvalidSetting
from boundcalc.predictors.certificate import verify_predictor
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.picking import NotReproduced, Run, pick_to_learn
from boundcalc.predictors.plans import Member, default_picks, default_splits, stops
from tests.cases.predictors import Threshold
from tests.cases.predictors import thresholds as draw


def risk(threshold: float, noise: float = 0.0) -> float:
    """Exact, on examples whose labels have this noise."""
    off = abs(threshold - 0.5)
    return off * (1 - noise) + (1 - off) * noise


PLANS: dict[str, Callable[[int], tuple[Member, ...]]] = {
    "holdout": default_splits,
    "stops": lambda m: stops(m, [2] * 6, [2, 4, 8, 12]),
    "default picks": default_picks,
    "prefix and stops": lambda m: stops(m - 10, [2] * 3, [0, 2, 6], prefix=10),
}


@pytest.mark.parametrize("runs", [60, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("plan", PLANS)
def test_claims_fail_at_most_as_often_as_they_say(plan: str, noise: float, runs: int) -> None:
    """Fresh data every time; the risk of a threshold is known exactly. The control claims a fifth as much."""
    m, below = 40, 0
    for delta in (0.5, 0.05):
        failed = 0
        for seed in range(runs):
            data = draw(10_000 + seed, m, noise)
            made = pick_to_learn(Threshold(robust=True), data, PLANS[plan](m), delta)
            failed += risk(made.state, noise) > made.certificate.risk
            below += risk(made.state, noise) > made.certificate.risk / 5
        assert failed <= stats.binom.ppf(1 - 1e-6, runs, delta), (plan, noise, delta)  # but for chance 1e-6
    assert below > 0


@dataclass
class Restless(Threshold):
    """Its model depends on how often it was asked."""

    asked: list[int] = field(default_factory=list[int])

    def fit(self, state: float, examples: Data, prefix: int) -> float:
        self.asked.append(1)
        return super().fit(state, examples, prefix) + 1e-12 * len(self.asked)


@dataclass
class Nosy(Threshold):
    """It trains longer the more others are wrong: a stop that looks at the errors left."""

    wrong: int = 0

    def fit(self, state: float, examples: Data, prefix: int) -> float:
        return super().fit(state, examples, prefix) - 1e-6 * self.wrong

    def scores(self, state: float, examples: Data) -> Array:
        found = super().scores(state, examples)
        self.wrong = int((found <= 0).sum())
        return found


@dataclass
class Relative(Threshold):
    """Its keys are compared with the other candidates' mean, as batch normalisation does in training mode."""

    def scores(self, state: float, examples: Data) -> Array:
        found = super().scores(state, examples)
        return np.abs(found - found.mean())


@pytest.mark.parametrize("learner", [Restless, Nosy, Relative])
def test_a_learner_that_is_no_function_of_its_picks_gets_no_certificate(learner: Callable[[], Threshold]) -> None:
    members = stops(300, [2] * 4, [8])
    assert pick_to_learn(Threshold(), draw(3, 300, 0.3), members, 0.05)
    with pytest.raises(NotReproduced, match="no certificate"):
        pick_to_learn(learner(), draw(3, 300, 0.3), members, 0.05)


def test_equal_keys_are_told_apart_by_their_places() -> None:
    data = Data(np.full((20, 1), 0.3), np.ones(20, dtype=np.int64))
    run = Run(Threshold(), data, Member(), np.random.default_rng(1).permutation(20))
    run.round(5)
    assert run.picks == [0, 1, 2, 3, 4]


def test_a_plan_that_leaves_nothing_to_test_on_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="leave none of 50"):
        pick_to_learn(Threshold(), draw(1, 50), [Member(50)], 0.05)
    with pytest.raises(InvalidSetting, match="can certify a risk below 1"):
        pick_to_learn(Threshold(), draw(1, 50), [Member(49)], 1e-17)
    with pytest.raises(InvalidSetting, match="no round ends at 3"):
        stops(50, [2, 2], [3])
    for m in (10, 100, 3000):
        for members in (default_splits(m), default_picks(m)):
            assert all(member.prefix + member.stop < m for member in members)


def test_what_is_established_again_is_the_same_run() -> None:
    data = draw(2, 100, 0.1)
    made = pick_to_learn(Threshold(robust=True), data, stops(100, [2] * 4, [4, 8]), 0.05).certificate
    with pytest.raises(NotReproduced, match="recipe"):
        verify_predictor(made, data, lambda _: Threshold())

    class Other(Threshold):
        @property
        def environment(self) -> dict[str, object]:
            return {"numpy": "0"}

        def weights(self, state: float) -> dict[str, Array]:
            return {"threshold": np.array([state + 1e-9])}

    with pytest.raises(NotReproduced, match=r"differ in some bit.*numpy differ"):
        verify_predictor(made, data, lambda _: Other(robust=True))
