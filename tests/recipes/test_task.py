"""How to add a task from outside: a frozen dataclass that says its law and its least risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from boundcalc.base import validate
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks import TASKS, Risk, Shape, Task, task_from_json
from boundcalc.testing import Cases
from tests.laws.kinds.tasks import TaskExample, check_task


@dataclass(frozen=True)
class OneBitTask(Task):
    """The answer is one hidden bit of T, wrong with chance `noise`."""

    kind: ClassVar[str] = "recipe-one-bit"
    T: int = 8
    noise: float = 0.1

    def __post_init__(self) -> None:
        validate.size("T", self.T)
        validate.fraction("noise", self.noise, ends=True)

    @property
    def shape(self) -> Shape:
        return Shape("bits", self.T + 1, "binary")

    def world(self, source: Source) -> dict[str, Any]:
        return {"place": int(source.permutation(self.T)[0])}

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        x = source.bits(n, self.T)
        return x, x[:, world["place"]] ^ (source.uniform(n) < self.noise)

    def bayes_risk(self) -> Risk:
        return Risk(min(self.noise, 1 - self.noise))


class Flattering(OneBitTask):
    """The negative control: a least risk that is too small."""

    def bayes_risk(self) -> Risk:
        return Risk(self.noise / 2)


CASES = Cases(
    [TaskExample({"T": 5, "noise": 0.2}, lambda world, x: x[:, world["place"]])],
    [({"T": 0}, "T must"), ({"noise": 2.0}, "noise")],
    {"flattering": Flattering},
)
"""A predictor of least risk, what must be refused, and the negative control."""


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    TASKS.register(OneBitTask)
    yield
    TASKS.remove(OneBitTask.kind)


def test_its_laws_hold_and_a_wrong_risk_is_seen() -> None:
    check_task(OneBitTask, CASES).raise_if_broken()


def test_files_and_commands_know_it() -> None:
    pytest.importorskip("torch")
    from click.testing import CliRunner

    from boundcalc.cli import main

    assert task_from_json({"task": "recipe-one-bit", "T": 4}) == OneBitTask(T=4)
    words = ["train", "recipe-one-bit", "--T", "4", "--m", "20", "--steps", "2", "--seed", "1", "--format", "json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "recipe-one-bit" in result.stdout
