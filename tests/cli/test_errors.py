"""Everything that can be wrong is told in one line, with the exit code that belongs to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boundcalc.cli import GROUPS, REMOVED

from .conftest import one_line, run_line, written


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"C": 1, "budget": {}}', "did you mean 'budgets'"),
    ],
)
def test_files_whose_content_is_wrong(tmp_path: Path, text: str, needle: str) -> None:
    outcome = run_line("eval", "--norms", written(tmp_path / "norms.json", text))
    assert outcome.exit_code == 2
    assert needle in one_line(outcome)


def test_options_that_listed_layers_make_useless_are_refused(tmp_path: Path) -> None:
    layers = [{"layer": "pool"}, {"layer": "linear", "kind": "readout", "d_in": 8, "d_out": 1}]
    path = written(tmp_path / "s.json", {"architecture": {"layers": layers}})
    assert run_line("eval", "--setting", path, "--no-solve", "--T", "9", "--bound", "best").exit_code == 0
    outcome = run_line("eval", "--setting", path, "--depth", "3")
    assert outcome.exit_code == 2
    assert "--depth would change nothing" in one_line(outcome)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("oh"), "internal error: ZeroDivisionError: oh; --debug"),
        (ModuleNotFoundError("No module named 'torch'", name="torch.nn"), "pip install '.[train]'"),
    ],
)
def test_defects_and_missing_libraries_are_told_in_one_line_too(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("boundcalc.cli._report.Evaluator", broken)
    outcome = run_line("eval")
    assert outcome.exit_code == 1
    assert words in one_line(outcome)


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_says_what_does_its_job(name: str) -> None:
    outcome = run_line(*name.split())
    assert outcome.exit_code == 2
    text = one_line(outcome)
    assert f"the command {name!r} is gone: " in text
    for script in re.findall(r"examples/[\w/]+\.py", text):
        assert (Path(__file__).parents[2] / script).exists()
    for command in re.findall(r"`boundcalc (\w+)", text):
        assert any(command in names for names in GROUPS.values())
