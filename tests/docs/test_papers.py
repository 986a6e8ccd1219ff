"""docs/papers.md: every command runs in its quick form, and every test and example it names is there."""

from __future__ import annotations

import inspect
import math
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from tests.docs.commands import ROOT
from tests.examples.scripts import load, quick

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
COMMANDS = sorted({line for row in ROWS for line in re.findall(r"`((?:boundcalc|python) [^`]+)`", row)})


def attempts(row: str) -> list[str]:
    """Tests and examples that a row names and that are not there."""
    return [name for name in re.findall(r"(?:tests|examples)/[\w/]+(?:\.py)?", row) if not (ROOT / name).exists()]


@pytest.mark.parametrize("row", ROWS, ids=[row[2:40] for row in ROWS])
def test_a_row_names_what_is_there(row: str) -> None:
    assert attempts(row) == []


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_a_row_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example in its quick form: what it computes it also measures."""
    program, *words = shlex.split(line)
    if program == "boundcalc":
        monkeypatch.chdir(tmp_path)
        outcome = CliRunner().invoke(main, words)
        assert outcome.exit_code == 0, outcome.output
        return
    pytest.importorskip("torch")
    path = Path(words[0])
    module = load("/".join(path.parts[1:-1]), path.stem)
    options = {word.removeprefix("--") for word in words if word.startswith("--")}
    assert options <= inspect.signature(module.main).parameters.keys()
    if path.parts[1] == "zhang2022":  # run by its own test, which compares what it measures
        from tests.examples.test_zhang2022 import SCRIPTS

        assert path.stem in SCRIPTS
        return
    computed, measured = quick("/".join(path.parts[1:-1]), path.stem)
    assert computed
    assert computed.keys() <= measured.keys()
    assert all(math.isfinite(value) for value in (*computed.values(), *measured.values()))


def test_every_claim_says_whether_it_was_shown() -> None:
    claims = [row for row in PAGE.split("\n## Every bound")[0].splitlines() if row in ROWS and "| command |" not in row]
    assert len(claims) >= 28
    for row in claims:
        verdict = row.rstrip(" |").rsplit("|", 1)[-1]
        assert "proved" in verdict or "shown" in verdict, row


def test_rows_that_name_what_is_not_there_are_seen() -> None:
    assert len(ROWS) > 40
    assert attempts("| x | tests/lab/train/test_nothing.py | |") == ["tests/lab/train/test_nothing.py"]
