"""How to add a task from outside: a frozen dataclass that says what a model reads and answers, and draws samples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

pytest.importorskip("torch")

from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks import TASKS, Shape, Task, task_from_json


@dataclass(frozen=True)
class OneBitTask(Task):
    """The answer is one hidden bit of T, wrong with chance `noise`."""

    kind: ClassVar[str] = "recipe-one-bit"
    T: int = 8
    noise: float = 0.1

    @property
    def shape(self) -> Shape:
        return Shape("bits", self.T + 1, "binary")

    def world(self, source: Source) -> dict[str, Any]:
        return {"place": int(source.permutation(self.T)[0])}

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        x = source.bits(n, self.T)
        return x, x[:, world["place"]] ^ (source.uniform(n) < self.noise)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    TASKS.register(OneBitTask)
    yield
    TASKS.remove(OneBitTask.kind)


def test_files_and_commands_know_it() -> None:
    assert task_from_json({"task": "recipe-one-bit", "T": 4}) == OneBitTask(T=4)
    words = ["train", "recipe-one-bit", "--T", "4", "--m", "40", "--seed", "1", "--set", "task.noise=0"]
    result = CliRunner().invoke(main, [*words, "--format", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["result"]["test"]["error"] < 0.1
