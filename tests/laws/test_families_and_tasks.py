"""Families of checkpoints and tasks of training, by the same checks that a user's own are put to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.checkpoints.families import FAMILIES
from boundcalc.lab.train.tasks import BooleanTask, GaussianLinearTask, MaskedTokenTask, MixtureTask
from boundcalc.lab.train.tasks.base import Risk
from boundcalc.laws import Cases, FamilyExample, TaskExample, check_family, check_task
from boundcalc.laws.families import LAWS as FAMILY_LAWS
from boundcalc.laws.tasks import LAWS as TASK_LAWS
from tests.checkpoints import handmade
from tests.checkpoints.test_families import expected, tensors_of

REFUSED: dict[str, Any] = {
    "bert": "is_decoder",
    "gpt2": "activation_function",
    "llama": "hidden_act",
    "vit": "hidden_act",
}


def example(name: str) -> FamilyExample:
    tensors, config = tensors_of(name)
    maps = {key: w for key, w in expected(name, tensors).items() if w.ndim == 2 and not key.endswith("~")}
    return FamilyExample(
        {key: np.asarray(w, np.float32 if w.dtype.kind == "f" else w.dtype) for key, w in tensors.items()}, config, maps
    )


@pytest.mark.parametrize("name", handmade.MODELS)
def test_families(name: str) -> None:
    family, here = FAMILIES[name], example(name)
    turned = {
        pattern: (role.removesuffix(".T") if role.endswith(".T") else f"{role}.T") if role.startswith("W_1") else role
        for pattern, role in family.tensors.items()
    }
    wrong = {"not transposed": replace(family, tensors=turned)}
    strange: dict[str, Any] = {REFUSED[name]: "no such thing"}
    refusals = [(here.but(**strange), f"{REFUSED[name]}|no such thing")]
    check_family(family, Cases([here], refusals, wrong)).raise_if_broken()


def test_a_family_that_reads_too_little_is_seen() -> None:
    family, here = FAMILIES["llama"], example("llama")
    ignoring = replace(family, ignored={**family.ignored, "nobody.knows.this": "it says so itself"})
    found = {complaint.law for complaint in check_family(ignoring, Cases([here], None, {})).complaints}
    assert "an_unknown_tensor_is_refused" in found
    assert len(FAMILY_LAWS) == 6


def boolean(world: Any, x: Any, table: Any) -> Any:
    rows = np.sum([x[:, c].astype(int) << i for i, c in enumerate(world["coordinates"])], axis=0)
    return np.array(table)[rows]


def conditional_mean(world: Any, x: Any) -> Any:
    del world
    keys, values, question = x[:, 1:, :3].astype(float), x[:, 1:, 3].astype(float), x[:, 0, :3]
    precision = np.eye(3) + np.einsum("nlp,nlq->npq", keys, keys) / 0.4**2
    mean = np.linalg.solve(precision, np.einsum("nlp,nl->np", keys, values)[..., None] / 0.4**2)[..., 0]
    return (mean * question).sum(-1)


def nearest(world: Any, x: Any) -> Any:
    return ((np.array(world["means"])[None] - x[:, 1:, :5].mean(1)[:, None]) ** 2).sum(-1).argmin(1)


def squared(given: Any, true: Any) -> Any:
    return (given - true) ** 2


TASKS: dict[type, tuple[list[TaskExample], list[tuple[dict[str, Any], str]]]] = {
    BooleanTask: (
        [
            TaskExample({"T": 9, "s": 3}, lambda world, x: boolean(world, x, BooleanTask(T=9, s=3).table.table)),
            TaskExample({"T": 8, "s": 2, "noise": 0.2}, lambda world, x: boolean(world, x, (0, 0, 0, 1))),
        ],
        [({"T": 4, "s": 5}, "choose s <= T"), ({"T": 4, "noise": 0.7}, "1/2")],
    ),
    GaussianLinearTask: (
        [TaskExample({"L": 12, "p": 3, "sigma": 0.4}, conditional_mean, squared)],
        [({"sigma": -1.0}, "sigma")],
    ),
    MixtureTask: ([TaskExample({"L": 3, "K": 3, "p": 5, "spread": 1.5}, nearest)], [({"K": 1}, "K must lie")]),
}


@pytest.mark.parametrize("kind", TASKS)
def test_tasks(kind: Any) -> None:
    examples, refusals = TASKS[kind]

    class Easier(kind):
        def bayes_risk(self) -> Risk:
            return Risk(super().bayes_risk().value / 2 + 0.2)

    check_task(kind, Cases(examples, refusals, {"another Bayes risk": Easier})).raise_if_broken()


def test_what_one_law_of_tasks_alone_sees() -> None:
    examples, _ = TASKS[MixtureTask]

    class Forgetful(MixtureTask):
        def sample(self, world: Any, source: Any, n: int) -> Any:
            x, y = super().sample(world, source, n)
            return x + np.random.default_rng().normal(size=x.shape) * 1e-3, y

    class Wider(MixtureTask):
        def sample(self, world: Any, source: Any, n: int) -> Any:
            x, y = super().sample(world, source, n)
            return np.concatenate([x, x], axis=2), y

    for broken, law in ((Forgetful, "a_seed_gives_the_same_examples_again"), (Wider, "samples_have_the_shape_it_says")):
        assert law in {complaint.law for complaint in check_task(broken, Cases(examples, None, {})).complaints}
    masked = TaskExample({"L": 20, "V": 6}, lambda world, x: MaskedTokenTask(20, 6).posterior_mean(x).argmax(1))
    report = check_task(MaskedTokenTask, Cases([masked], [({"V": 1}, "V")], {}))
    assert {complaint.law for complaint in report.complaints} == {"complete"}  # it brings nothing that is false
    assert len(TASK_LAWS) == 5
