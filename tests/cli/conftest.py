"""Running the command line inside the process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from boundcalc.cli import main

Run = Callable[..., Result]


def run_line(*words: str) -> Result:
    """The outcome of `boundcalc WORDS`."""
    return CliRunner().invoke(main, list(words), prog_name="boundcalc")


@pytest.fixture(scope="session")
def run() -> Run:
    return run_line


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A gap certificate as JSON."""
    path = tmp_path_factory.mktemp("certificates") / "gap.json"
    outcome = run_line("eval", "--depth", "1", "--no-solve", "--certificate", str(path))
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(path.read_text(encoding="utf-8"))


def one_line(outcome: Result) -> str:
    """The only line on stderr; no traceback, nothing on stdout."""
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1, outcome.stderr
    assert outcome.stdout == ""
    assert "Traceback" not in lines[0]
    assert lines[0].startswith("boundcalc")
    return lines[0]


def written(path: Path, data: Any) -> str:
    """A JSON file's path."""
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return str(path)
