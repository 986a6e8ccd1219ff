"""Cases of the tasks: a predictor of least risk for each, what is refused, another least risk, and a sampler without a
seed."""

from __future__ import annotations

import atexit
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from boundcalc.lab.train.source import NumpySource, Source
from boundcalc.lab.train.tasks import (
    TASKS,
    ArraysTask,
    BooleanTask,
    GaussianLinearTask,
    MaskedTokenTask,
    Risk,
    Task,
)
from boundcalc.testing.report import Cases
from tests.laws.kinds.tasks import Kind, TaskExample

_World = Mapping[str, Any]


def _boolean(**fields: Any) -> TaskExample:
    """The function itself, at the coordinates that matter."""
    table = np.array(BooleanTask(**fields).table.table)

    def best(world: _World, x: Any) -> Any:
        return table[np.sum([x[:, c].astype(int) << i for i, c in enumerate(world["coordinates"])], axis=0)]

    return TaskExample(fields, best)


def _gaussian_linear(**fields: Any) -> TaskExample:
    """The mean of the posterior: ridge regression with the noise's precision."""
    task = GaussianLinearTask(**fields)

    def best(world: _World, x: Any) -> Any:
        del world
        keys, values = x[:, 1:, : task.p].astype(float), x[:, 1:, task.p].astype(float)
        precision = np.eye(task.p) + np.einsum("nlp,nlq->npq", keys, keys) / task.sigma**2
        mean = np.linalg.solve(precision, np.einsum("nlp,nl->np", keys, values)[..., None] / task.sigma**2)
        return (mean[..., 0] * x[:, 0, : task.p]).sum(-1)

    return TaskExample(fields, best, lambda answer, true: (answer - true) ** 2)


def _masked_token(**fields: Any) -> TaskExample:
    """The likeliest answer under the mean of the posterior, counted by hand."""
    task = MaskedTokenTask(**fields)

    def best(world: _World, x: Any) -> Any:
        del world
        law = np.array([np.bincount(row[1:] - 1, minlength=task.V) for row in x]) + task.alpha
        twins = law[:, np.arange(task.V) ^ 1] if task.blur else law
        return ((1 - task.blur) * law + task.blur * twins).argmax(1)

    return TaskExample(fields, best)


@cache
def _folder() -> Path:
    """Where files of examples lie while the laws are tried."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _arrays(name: str, x: Any, y: Any) -> Mapping[str, Any]:
    np.savez(_folder() / f"{name}.npz", x=x, y=y)
    return {"path": str(_folder() / f"{name}.npz")}


def _files() -> tuple[list[TaskExample], list[tuple[Mapping[str, Any], str]]]:
    """Nobody knows the least risk of a file."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    tokens, rows = rng.integers(0, 7, (200, 5)), rng.standard_normal((200, 4, 2))
    return [TaskExample(_arrays("tokens", tokens, y), None), TaskExample(_arrays("rows", rows, y % 2), None)], [
        ({}, "needs the path"),
        (_arrays("fewer", tokens[:9], y), "as many sequences as labels"),
        ({**_arrays("changed", tokens, y), "sha256": "0" * 64}, "has changed"),
    ]


_BROUGHT: Mapping[str, Callable[[], tuple[list[TaskExample], list[tuple[Mapping[str, Any], str]]]]] = {
    "boolean": lambda: (
        [_boolean(T=9, s=3), _boolean(T=8, s=2, noise=0.2), _boolean(T=7, function="x0 & ~x1 | x2", law="natural")],
        [({"T": 4, "s": 5}, "choose s <= T"), ({"T": 4, "noise": 0.7}, "1/2"), ({"law": "fair"}, "law")],
    ),
    "gaussian-linear": lambda: (
        [_gaussian_linear(L=12, p=3, sigma=0.4)],
        [({"sigma": -1.0}, "sigma"), ({"L": 0}, "L must")],
    ),
    "masked-token": lambda: (
        [_masked_token(L=20, V=6), _masked_token(L=12, V=4, alpha=1.5, blur=0.3)],
        [({"V": 1}, "V"), ({"alpha": 0.3}, "multiple of 1/2"), ({"V": 5, "blur": 0.1}, "choose an even V")],
    ),
    "arrays": _files,
}


def _another_risk(kind: Any, change: Callable[[float], float]) -> Kind:
    class Another(kind):
        def bayes_risk(self) -> Risk:
            risk = super().bayes_risk()
            return replace(risk, value=change(risk.value))

    return Another


def _without_a_seed(kind: Any) -> Kind:
    clock = itertools.count()

    class Forgetful(kind):
        def sample(self, world: _World, source: Source, n: int) -> tuple[Any, Any]:
            del source
            return super().sample(world, NumpySource(next(clock)), n)

    return Forgetful


class _Remembered(ArraysTask):
    """Tests on what it trained on."""

    def split(self, world: _World, source: Source, m: int, n_test: int) -> tuple[Any, Any, Any, Any]:
        x, y, *_ = super().split(world, source, m, n_test)
        return x, y, x[:n_test], y[:n_test]


class _Known(ArraysTask):
    """Says the least risk of a file."""

    def bayes_risk(self) -> Risk:
        return Risk(0.0)


def _wrong(kind: type[Task]) -> Mapping[str, Kind]:
    if kind is ArraysTask:
        return {"tested on what it trained on": _Remembered, "a least risk of a file": _Known}
    return {
        "a least risk larger by .1": _another_risk(kind, lambda risk: risk + 0.1),
        "a least risk a fifth smaller": _another_risk(kind, lambda risk: 0.8 * risk),
        "without a seed": _without_a_seed(kind),
    }


def cases(name: str) -> Cases[Kind, TaskExample]:
    """What the library's task of that name brings."""
    examples, refusals = _BROUGHT[name]()
    return Cases(examples, refusals, _wrong(TASKS[name]))
