"""Laws of tasks: samples have the shape that is said, come again from their seed, and the least risk is the least risk."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.tasks import TASKS, Task, task_from_json
from boundcalc.laws.report import Cases, Report, judge

_SAMPLES = 4000
_DEVIATIONS = 5


@dataclass(frozen=True)
class TaskExample:
    """Fields of a task, and a predictor of least risk.

    Attributes:
        fields: of the task.
        best: answers of (world, inputs) that no predictor betters; its risk must be `bayes_risk`.
        loss: losses of (answers given, true answers); the share of wrong ones unless given.
    """

    fields: Mapping[str, Any]
    best: Callable[[Mapping[str, Any], Any], Any]
    loss: Callable[[Any, Any], Any] = lambda given, true: np.asarray(given) != np.asarray(true)

    def __str__(self) -> str:
        return str(dict(self.fields))


Kind = Callable[..., Task]
"""The class of a task."""


def _drawn(task: Task, n: int, seed: int) -> tuple[Mapping[str, Any], Any, Any]:
    world = task.world(NumpySource(seed))
    x, y = task.sample(world, NumpySource(seed + 1), n)
    return world, np.asarray(x), np.asarray(y)


def survives_json(kind: Kind, at: TaskExample) -> str | None:
    """A record of a trial names its task, and the task comes back."""
    task = kind(**at.fields)
    return None if task_from_json(task.to_json()) == task else "its JSON object is another task"


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
    """The predictor of least risk has the risk that is said."""
    task = kind(**at.fields)
    losses = []
    for seed in range(4):
        world, x, y = _drawn(task, _SAMPLES // 4, 10 * seed)
        losses.append(np.asarray(at.loss(at.best(world, x), y), float))
    found = np.concatenate(losses)
    said = task.bayes_risk()
    room = _DEVIATIONS * (math.sqrt(max(float(found.var()), 1 / len(found)) / len(found)) + said.error)
    return None if abs(found.mean() - said.value) <= room else f"risk {found.mean():.5g}, said to be {said.value:.5g}"


def complexity_is_counted(kind: Kind, at: TaskExample) -> str | None:
    """At least one coordinate matters, and what is hidden is counted or a continuum."""
    complexity = kind(**at.fields).complexity()
    if complexity.relevant < 0 or not complexity.log_hypotheses >= 0:
        return f"{complexity} counts nothing"
    return None


LAWS = (
    survives_json,
    samples_have_the_shape_it_says,
    a_seed_gives_the_same_examples_again,
    nothing_is_learned_beyond_the_bayes_risk,
    complexity_is_counted,
)


def _refuses(kind: Kind, what: Mapping[str, Any]) -> str | None:
    kind(**what)
    return None


def check_task(
    kind: Kind,
    cases: Cases[Kind, TaskExample] | None = None,
    *,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Tries every law of tasks.

    Args:
        kind: the class of the task, registered.
        cases: fields, each with a predictor of least risk; fields that must be refused; and classes that are false, such
            as one with another Bayes risk. Those it was registered with, unless given.
        expected_failures: laws that are known not to hold, with the reason.

    Returns:
        What was tried, and every law that does not hold.
    """
    name = getattr(kind, "kind", getattr(kind, "__name__", "task"))
    brought = TASKS.cases(name) if cases is None else cases
    return judge("task", name, kind, brought, LAWS, _refuses, expected_failures)
