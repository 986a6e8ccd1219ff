"""Norms are for the setting that the options make, not for the one they start from.

Options without effect are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

Run = Any


def written(path: Path, data: object) -> str:
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("W_V[3]", ("--depth", "4")),
        ("W_V[0,1]", ("--heads", "2")),
        ("W_O", ("--style", "pre")),
        ("W_Q", ("--set", "d_head=8")),
    ],
)
def test_norms_are_for_the_setting_asked_for(run: Run, tmp_path: Path, key: str, options: tuple[str, ...]) -> None:
    path = written(tmp_path / "norms.json", {"C": 1, "budgets": {key: {"op": 2}}})
    for order in ((*options, "--norms", path), ("--norms", path, *options)):
        outcome = run("eval", "--bound", "edelman2022", *order)
        assert outcome.exit_code == 0, outcome.stderr
    assert run("eval", "--norms", path).exit_code == 2


def test_a_knob_that_nothing_reads_is_refused(run: Run, tmp_path: Path) -> None:
    full = {kind: {"op": 1} for kind in ("W_QK", "W_V", "W_1", "readout")}
    path = written(tmp_path / "norms.json", {"budgets": full})
    assert run("eval", "--bound", "edelman2022", "--norms", path).exit_code == 0
    outcome = run("eval", "--norms", path, "--C", "2")
    assert outcome.exit_code == 2
    assert "--C would change nothing" in outcome.stderr
