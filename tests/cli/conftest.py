"""Running the command line inside the process."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from boundcalc.cli import main


def run_line(*words: str) -> Result:
    """The outcome of `boundcalc WORDS`; one text of several words is a line as it is typed."""
    line = shlex.split(words[0]) if len(words) == 1 else list(words)
    return CliRunner().invoke(main, line, prog_name="boundcalc")


def printed(*words: str) -> str:
    """What a command prints that works."""
    outcome = run_line(*words)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def answer(line: str) -> dict[str, Any]:
    """What a command prints for programs."""
    return json.loads(printed(f"{line} --format json"))


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
