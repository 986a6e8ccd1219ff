"""Writes into the README and pages of docs what their commands print: `python -m tests.readme.refresh`.

A command may end in `| head -n N`, `| tail -n N` or `| grep WORD`, which are done here, and begin with the width it is
printed at, `COLUMNS=80`. Of several, joined by `&&` and run in an empty folder, the last one's output counts.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "reading.md", ROOT / "docs" / "screens.md")
_BLOCK = re.compile(
    r"<!-- output: (?P<command>[^\n]+) -->\n(?:```text\n(?P<text>.*?)```|(?P<table>(?:\|[^\n]*\n)+))", re.DOTALL
)


def blocks(readme: str) -> list[tuple[str, str]]:
    """(command, output shown) of every marked block."""
    return [(m["command"], m["text"] if m["text"] is not None else m["table"]) for m in _BLOCK.finditer(readme)]


def output_of(command: str) -> str:
    """What a `boundcalc ...` command or an example prints, at a width that fits a README."""
    command, _, filtered = command.partition(" | ")
    columns, command = command.split(" ", 1) if command.startswith("COLUMNS=") else ("COLUMNS=120", command)
    environment = os.environ | {"COLUMNS": columns.partition("=")[2], "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as empty:
        where = empty if "&&" in command else ROOT
        printed = [_printed(part, environment, where) for part in command.split(" && ")][-1]
    lines = [line.rstrip() for line in printed.splitlines()]
    return "\n".join(_kept(lines, *shlex.split(filtered)) if filtered else lines) + "\n"


def _printed(command: str, environment: dict[str, str], where: str | Path) -> str:
    program, *words = shlex.split(command)
    assert program in ("boundcalc", "python")
    start = [sys.executable, *(["-m", "boundcalc"] if program == "boundcalc" else [])]
    done = subprocess.run([*start, *words], capture_output=True, text=True, check=True, env=environment, cwd=where)
    return done.stdout


def _kept(lines: list[str], program: str, *words: str) -> list[str]:
    """The lines that head, tail or grep leaves."""
    if program == "grep":
        return [line for line in lines if words[0] in line]
    count = int(words[words.index("-n") + 1])
    return {"head": lines[:count], "tail": lines[-count:]}[program]


def replaced(readme: str, command: str, output: str) -> str:
    """The README with another output under a command: a table as a table, anything else as text."""
    shown = output if output.startswith("|") else f"```text\n{output}```"

    def put(found: re.Match[str]) -> str:
        return f"<!-- output: {command} -->\n{shown}" if found["command"] == command else found[0]

    return _BLOCK.sub(put, readme)


def main() -> None:
    """Refresh every block."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for command, _ in blocks(text):
            text = replaced(text, command, output_of(command))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
