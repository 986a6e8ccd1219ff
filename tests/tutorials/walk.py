"""Walks a tutorial as its reader would: writes its files into an empty folder and runs its commands there."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from boundcalc.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
_FILE = re.compile(r"<!-- file: (?P<name>[^\n]+) -->\n```[a-z]*\n(?P<text>.*?)```", re.DOTALL)
_RUN = re.compile(r"<!-- run -->\n```sh\n(?P<lines>.*?)```", re.DOTALL)


def files(name: str) -> dict[str, str]:
    """The files of a tutorial."""
    return {m["name"]: m["text"] for m in _FILE.finditer((DOCS / name).read_text(encoding="utf-8"))}


def commands(name: str) -> list[str]:
    """Its commands, in order."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return [line for m in _RUN.finditer(text) for line in m["lines"].splitlines() if line]


def walk(name: str, folder: Path) -> dict[str, str]:
    """Every command and what it printed; the folder is the current one."""
    for file, text in files(name).items():
        (folder / file).write_text(text, encoding="utf-8")
    return {line: run(line, folder) for line in commands(name)}


def run(line: str, folder: Path, *, code: int = 0) -> str:
    """What one command prints."""
    words = shlex.split(line)
    if words[0] == "python":
        return _script(folder / words[1])
    assert words[0] == "boundcalc", line
    with _apart():
        done = CliRunner().invoke(main, words[1:])
    assert done.exit_code == code, f"{line}: {done.output}"
    return done.output


def _script(path: Path) -> str:
    printed = io.StringIO()
    with _apart(), contextlib.redirect_stdout(printed):
        sys.path.insert(0, str(path.parent))
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Modules of the folder do not outlive a command, as those of a process would not."""
    known, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if "site-packages" not in file and "boundcalc" not in file and "pytest" in file:
                del sys.modules[name]
