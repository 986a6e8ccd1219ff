"""Laws of tasks: samples have the shape that is said, come again from their seed, and the least risk is the least
risk."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.tasks import TASKS, ArraysTask, Task, task_from_json
from boundcalc.testing.report import Cases, Report, judge

_WORLDS, _SAMPLES = 400, 250
_DEVIATIONS = 5


@dataclass(frozen=True)
class TaskExample:
    """Fields of a task, and a predictor of least risk.

    Attributes:
        fields: of the task.
        best: answers of (world, inputs) that no predictor betters; its risk must be `bayes_risk`. None says that nobody
            knows
            one: `bayes_risk` must then refuse to say a number.
        loss: losses of (answers given, true answers); the share of wrong ones unless given.
    """

    fields: Mapping[str, Any]
    best: Callable[[Mapping[str, Any], Any], Any] | None
    loss: Callable[[Any, Any], Any] = lambda given, true: np.asarray(given) != np.asarray(true)

    def __str__(self) -> str:
        return str(dict(self.fields))


Kind = Callable[..., Task]
"""The class of a task."""


def _drawn(task: Task, n: int, seed: int) -> tuple[Mapping[str, Any], Any, Any]:
    world = task.world(NumpySource(seed))
    if isinstance(task, ArraysTask):
        x, y, *_ = task.split(world, NumpySource(seed + 1), n, n)
    else:
        x, y = task.sample(world, NumpySource(seed + 1), n)
    return world, np.asarray(x), np.asarray(y)


def survives_json(kind: Kind, at: TaskExample) -> str | None:
    """A record of a trial names its task, and the task comes back."""
    task = kind(**at.fields)
    again = task_from_json(task.to_json())
    same = again == task if TASKS.get(task.kind) is kind else again.to_json() == task.to_json()
    return None if same else "its JSON object is another task"


def samples_have_the_shape_it_says(kind: Kind, at: TaskExample) -> str | None:
    """Inputs and answers are what a model of this shape reads and gives."""
    task = kind(**at.fields)
    shape = task.shape
    _, x, y = _drawn(task, 50, 1)
    rows = {"bits": (50, shape.rows - 1), "tokens": (50, shape.rows), "rows": (50, shape.rows, shape.width)}[
        shape.inputs
    ]
    if x.shape != rows or y.shape != (50,):
        return f"inputs {x.shape}, answers {y.shape}; {shape} would be {rows} and (50,)"
    if shape.inputs == "bits" and not set(np.unique(x)) <= {0, 1}:
        return "inputs are not bits"
    if shape.inputs == "tokens" and not (x.min() >= 0 and x.max() < shape.vocabulary):
        return f"tokens from {x.min()} to {x.max()}, the vocabulary has {shape.vocabulary}"
    labels = 2 if shape.answer == "binary" else shape.classes
    if shape.answer != "real" and not (y.min() >= 0 and y.max() < labels):
        return f"answers from {y.min()} to {y.max()} of {labels}"
    return None


def a_seed_gives_the_same_examples_again(kind: Kind, at: TaskExample) -> str | None:
    """And another seed others."""
    task = kind(**at.fields)
    first, again, other = (_drawn(task, 50, seed) for seed in (3, 3, 8))
    if first[0] != again[0] or (first[1] != again[1]).any() or (first[2] != again[2]).any():
        return "one seed gave two samples"
    return "two seeds gave one sample" if (first[1] == other[1]).all() else None


def nothing_is_learned_beyond_the_bayes_risk(kind: Kind, at: TaskExample) -> str | None:
    """The predictor of least risk has the risk that is said; where nobody knows one, no risk is said."""
    task = kind(**at.fields)
    if at.best is None:
        try:
            return f"no predictor of least risk is known, and {task.bayes_risk().value:.5g} is said to be its risk"
        except InvalidSetting:
            return None
    risks, said = np.zeros(_WORLDS), task.bayes_risk()
    if said.error > said.value / 10:
        return f"risk {said.value:.5g} is said to be off by {said.error:.3g}: anything may be said so"
    samples = min(_SAMPLES, task.size // 2) if isinstance(task, ArraysTask) else _SAMPLES
    for index in range(_WORLDS):
        world, x, y = _drawn(task, samples, 10 * index)
        risks[index] = np.asarray(at.loss(at.best(world, x), y), float).mean()
    deviation = max(float(risks.std(ddof=1)) / math.sqrt(_WORLDS), 1 / (_WORLDS * samples))
    close = abs(risks.mean() - said.value) <= _DEVIATIONS * math.hypot(deviation, said.error)
    return None if close else f"risk {risks.mean():.5g}, said to be {said.value:.5g}"


def every_example_is_trained_on_or_tested_on(kind: Kind, at: TaskExample) -> str | None:
    """Where there is a limited number of examples, none is trained on and tested on, and each is one of them."""
    task = kind(**at.fields)
    if not isinstance(task, ArraysTask):
        return None
    m = task.size // 2
    x, y, x_test, y_test = task.split(task.world(NumpySource(5)), NumpySource(6), m, task.size)
    found = _rows(x, y) + _rows(x_test, y_test)
    if len(y) != m or sorted(found) != sorted(_rows(task.data[0].astype(np.asarray(x).dtype), task.data[1])):
        return f"{len(y)} and {len(y_test)} examples are not the {task.size} there are, each once"
    return None


def _rows(x: Any, y: Any) -> list[Any]:
    return [(np.ravel(row).tolist(), int(answer)) for row, answer in zip(x, y, strict=True)]


LAWS = (
    survives_json,
    samples_have_the_shape_it_says,
    a_seed_gives_the_same_examples_again,
    nothing_is_learned_beyond_the_bayes_risk,
    every_example_is_trained_on_or_tested_on,
)


def _refuses(kind: Kind, what: Mapping[str, Any]) -> str | None:
    kind(**what)
    return None


def check_task(kind: Kind, cases: Cases[Kind, TaskExample]) -> Report:
    """Tries every law on fields of the task, each with a predictor of least risk."""
    return judge(f"task {getattr(kind, 'kind', kind)}", kind, cases, LAWS, _refuses)
