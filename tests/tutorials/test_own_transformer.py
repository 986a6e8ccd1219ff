"""docs/tutorials/own-transformer.md, from an empty folder to a certificate; and the four wrong mappings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tutorials.walk import commands, files, run, walk

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAME = "own-transformer.md"


def test_it_takes_at_most_six_commands_and_fifteen_lines() -> None:
    assert len(commands(NAME)) <= 6
    assert len([line for line in files(NAME)["certify.py"].splitlines() if line]) <= 15


def assert_norms_are_those_of_the_module(folder: Path, printed: dict[str, str]) -> None:
    state = torch.load(folder / "weights.pt")["model"]
    assert "Compared with a forward pass" in printed[commands(NAME)[2]]
    data = json.loads(run("boundcalc norms weights.pt --mapping map.json --format json", folder))
    by_name = {row["weight"]: row for row in data["weights"]}
    for block in range(3):
        exact = float(torch.linalg.matrix_norm(state[f"blocks.{block}.mlp.0.weight"].double(), 2))
        assert exact <= by_name[f"W_1[{block}]"]["op"] <= exact * (1 + 1e-9)


def assert_margins_and_errors_are_those_of_the_module(folder: Path, printed: dict[str, str]) -> None:
    text = printed[commands(NAME)[3]]
    space: dict[str, Any] = {}
    exec((folder / "model.py").read_text(), space)
    model = space["make"]().double()
    model.load_state_dict(torch.load(folder / "weights.pt")["model"])
    for name, pattern in (("train", r"(\d+) of 2000 training examples"), ("test", r"H: (\d+) errors? of 1000")):
        data = np.load(folder / f"{name}.npz")
        with torch.no_grad():
            wrong = int((model(torch.tensor(data["x"]))[:, -1].argmax(-1).numpy() != data["y"]).sum())
        found = re.search(pattern, text)
        assert found is not None
        assert int(found[1]) == wrong
    assert "compared with a forward pass" in text
    assert re.search(r"^norms: best", text, re.MULTILINE)
    short = re.search(r"^occam +([0-9.]+) .*: [0-9,]+ bits, (\d+) errors? of 2000", text, re.MULTILINE)
    assert short is not None
    assert int(short[2]) / 2000 < float(short[1]) < 1
    risk = float(re.search(r"^held-out +([0-9.]+)", text, re.MULTILINE)[1])  # type: ignore[index]
    assert wrong / 1000 < risk < wrong / 1000 + 0.05


def assert_python_and_the_command_line_say_the_same(printed: dict[str, str]) -> None:
    line = re.compile(r"^held-out .*$", re.MULTILINE)
    assert line.findall(printed["python certify.py"]) == line.findall(printed[commands(NAME)[3]])
    assert "verified" in printed["boundcalc verify risk.json"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another epsilon": ({"architecture": {"eps": 1e-6}}, "ln1"),
    "relu for gelu": ({"architecture": {"activation": "relu"}}, "activation relu"),
    "not causal": ({"architecture": {"causal": False}}, "not causal"),
    "heads": ({"architecture": {"heads": 2}}, "attention of 2 heads"),
    "heads swapped with maps": ({"architecture": {"by_group": True}}, "attention of 4 heads"),
}


def test_the_tutorial_is_walked_and_wrong_mappings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since the walk takes seconds and workers share nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # no line is broken
    printed = walk(NAME, tmp_path)
    assert_norms_are_those_of_the_module(tmp_path, printed)
    assert_margins_and_errors_are_those_of_the_module(tmp_path, printed)
    assert_python_and_the_command_line_say_the_same(printed)
    for name in WRONG:
        assert_a_wrong_mapping_is_refused(name, tmp_path)


def assert_a_wrong_mapping_is_refused(name: str, folder: Path) -> None:
    change, says = WRONG[name]
    wrong = json.loads((folder / "map.json").read_text())
    for key, value in change.items():
        wrong[key] = {**wrong[key], **value} if isinstance(value, dict) else value
    (folder / "wrong.json").write_text(json.dumps(wrong))
    for rest in ("norms weights.pt", "certify weights.pt --data train.npz"):
        text = run(f"boundcalc {rest} --mapping wrong.json --compare model.py:make", folder, code=1)
        assert says in text
        assert "not be about this module" in text
        assert "norms: best" not in text
    if name == "not causal":  # without a comparison the bound is one of the description, and says so
        text = run("boundcalc certify weights.pt --mapping wrong.json --m 2000 --no-solve", folder)
        assert "not compared with a forward pass" in text
