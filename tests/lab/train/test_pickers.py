"""Learners of certificates: the same bits from the same picks, whatever else there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.train.certify import examples_of
from boundcalc.lab.train.pickers import CHUNK, ModelLearner, ModuleLearner, PickRule
from boundcalc.lab.train.tasks import task_from_json
from boundcalc.lab.train.trial import Trial, model_for
from boundcalc.predictors.certificate import verify_predictor
from boundcalc.predictors.data import Data
from boundcalc.predictors.picking import Learner, Run, pick_to_learn
from boundcalc.predictors.plans import Member, default_picks, stops

QUICK = PickRule(prefix_steps=60, round_steps=20)


def of_task(**task: object) -> tuple[ModelLearner, Data]:
    """The learner of a small model, and 90 examples."""
    law = task_from_json(task)
    trial = Trial(law, model_for(law, d=8, heads=2, d_ff=8), 90, seed=3, n_test=2)
    return ModelLearner.of(trial, **asdict(QUICK)), examples_of(trial)[0]


class Small(nn.Module):
    """Bits in, one score out, with dropout and a batch norm that training may use and scoring may not."""

    def __init__(self, width: int, normalised: bool = False) -> None:
        super().__init__()
        inner: list[nn.Module] = [nn.Linear(width, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1)]
        if normalised:
            inner.insert(1, nn.BatchNorm1d(16))
        self.inner = nn.Sequential(*inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.float())


def module(normalised: bool = False) -> ModuleLearner:
    return ModuleLearner(rule=QUICK, make=lambda: Small(12, normalised), name="small")


MODELS: dict[str, Callable[[], tuple[Learner, Data]]] = {
    "bits": partial(of_task, task="conjunction", T=12),
    "classes": partial(of_task, task="masked-token", L=6, V=5),
}
LEARNERS = MODELS | {
    "module": lambda: (module(), MODELS["bits"]()[1]),
    "module with batch norm": lambda: (module(True), MODELS["bits"]()[1]),
}


@pytest.mark.parametrize("prefix", [0, 70])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_picks_give_the_same_bits_among_any_others(name: str, prefix: int) -> None:
    learner, data = LEARNERS[name]()
    member, candidates = Member(prefix, (2, 2, 2), 1, ((0, 1.0),)), np.arange(prefix, 90)
    run = Run(learner, data, member, candidates).go_to(member)
    rng = np.random.default_rng(0)
    for size in (0, 7, 14):
        mixed = rng.permutation(np.concatenate([run.picks, rng.permutation(run.left)[:size]]).astype(np.int64))
        torch.rand(17)  # whatever the world did with torch's own generator meanwhile
        again = Run(learner, data, member, mixed).go_to(member)
        assert again.stop().picks == run.stop().picks
        assert again.stop().weights == run.stop().weights
    other = Run(learner, data, replace(member, seed=2), candidates)
    assert other.stop().weights != Run(learner, data, member, candidates).stop().weights


@pytest.mark.parametrize("name", LEARNERS)
def test_a_score_does_not_depend_on_who_else_is_scored(name: str) -> None:
    learner, data = LEARNERS[name]()
    state = learner.fit(learner.start(0), data.take(range(20)), 20)
    many = np.concatenate([np.arange(90)] * (CHUNK // 90 + 1))
    scores = learner.scores(state, data.take(many))
    assert (scores[:90] == learner.scores(state, data)).all()
    assert (scores[:1] == learner.scores(state, data.take([0]))).all()
    assert np.unique(scores[:90]).size > 1


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_is_made_again_from_its_recipe(name: str) -> None:
    learner, data = MODELS[name]()
    for members in ([Member(30), Member(60)], stops(60, [4, 4], [0, 8], prefix=30)):
        made = pick_to_learn(learner, data, members, 0.05)
        again = verify_predictor(made.certificate, data, ModelLearner.from_recipe)
        assert again.established is not None
        assert "equal to the bit" in again.established
    with pytest.raises(CertificateError, match="makes no model"):
        ModelLearner.from_recipe({"kind": "model"})


def test_a_conjunction_is_certified_from_picks() -> None:
    task = task_from_json({"task": "conjunction", "T": 16})
    trial = Trial(task, model_for(task, d=16, heads=4, d_ff=16), 300, seed=1, n_test=4000)
    data, test = examples_of(trial)
    learner = ModelLearner.of(trial, round_lr=3e-3)
    made = pick_to_learn(learner, data, default_picks(300), 0.05)
    assert made.certificate.risk < 0.3
    assert float((learner.scores(made.state, test) <= 0).mean()) <= made.certificate.risk


def test_what_cannot_be_right_or_wrong_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="right or wrong"):
        of_task(task="gaussian-linear", L=4)
    with pytest.raises(InvalidSetting, match="round_steps"):
        replace(QUICK, round_steps=0)
