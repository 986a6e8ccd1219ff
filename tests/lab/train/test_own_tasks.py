"""Tasks of a user's own: a class in a Python file, a dataset, a CSV; in every command that reads a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli import main
from boundcalc.lab.train.tasks import task_from_json
from boundcalc.lab.train.trial import Trial, model_for

pytest.importorskip("torch")

TASK = """
from dataclasses import dataclass

from boundcalc.lab.train.tasks import Shape, Task


@dataclass(frozen=True)
class First(Task):
    T: int = 6

    @property
    def shape(self):
        return Shape("tokens", self.T, "classes", vocabulary=3, classes=3)

    def sample(self, world, source, n):
        x = source.integers(3, n, self.T)
        return x, x[:, 0]
"""
DATA = """
import numpy as np

x = np.random.default_rng(0).integers(0, 4, (60, 5))
arrays = x, x[:, 0] > 1


class Dataset:
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return {"input_ids": x[i], "label": bool(x[i, 0] > 1)}


dataset = Dataset()
"""
SMALL = "--m 20 --d 8 --heads 2 --steps 3 --set n_test=32 --format json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TASK)
    (tmp_path / "data.py").write_text(DATA)
    x = np.random.default_rng(0).integers(0, 4, (60, 5))
    rows = "\n".join(" ".join(map(str, row[: 3 + i % 3])) + f",{bool(row[0] > 1)}" for i, row in enumerate(x))
    (tmp_path / "ragged.csv").write_text("x,label\n" + rows + "\n")
    return tmp_path


def run(line: str) -> Any:
    return CliRunner().invoke(main, line.split())


@pytest.mark.parametrize("what", ["mine.py:First --T 7", "data.py:dataset", "ragged.csv"])
def test_train_takes_it_and_its_record_gives_it_again(what: str, folder: Path) -> None:
    done = run(f"train {what} {SMALL}")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    trial = Trial.from_json(data["trial"])
    assert trial.hash == data["hash"]
    assert len(data["trial"]["task"].get("sha256", "")) == 64
    again = json.loads(run(f"train {what} {SMALL}").stdout)
    assert again["result"]["train"] == data["result"]["train"]


def test_a_dataset_and_its_arrays_are_one_task(folder: Path) -> None:
    one, other = (task_from_json({"task": f"data.py:{name}"}) for name in ("dataset", "arrays"))
    assert one.identity == other.identity
    assert one.shape.answer == "binary"  # truth values


def test_a_file_that_changed_is_another_task(folder: Path) -> None:
    before = task_from_json({"task": "mine.py:First"})
    kept, trial = before.to_json(), Trial(before, model_for(before, d=8, heads=2), 8).hash
    (folder / "copy.py").write_text(TASK)
    copied = task_from_json({"task": "copy.py:First"})
    assert Trial(copied, model_for(copied, d=8, heads=2), 8).hash == trial  # where it lies does not count
    (folder / "mine.py").write_text(TASK.replace("x[:, 0]", "x[:, 1]"))
    with pytest.raises(InvalidSetting, match="has changed"):
        task_from_json(kept)
    after = task_from_json({"task": "mine.py:First"})
    assert Trial(after, model_for(after, d=8, heads=2), 8).hash != trial
