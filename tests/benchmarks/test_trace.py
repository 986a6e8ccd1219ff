"""What one evaluation goes through: `pytest tests/benchmarks/test_trace.py -s`.

Counted are the package's files of which some function runs (not what importing them runs), their lines, the lines of
them that run, the functions, their calls, and the package's frames at the first cost of a cover.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tutorials.walk import files

pytestmark = pytest.mark.benchmark

_TRACER = """
import json, runpy, sys, threading
from pathlib import Path
import boundcalc
root = str(Path(boundcalc.__file__).parent) + "/"
functions, lines, calls, first = set(), set(), 0, 0
def within(frame, event, argument):
    if event == "line":
        lines.add((frame.f_code.co_filename, frame.f_lineno))
    return within
def entered(frame, event, argument):
    global calls, first
    code = frame.f_code
    if not code.co_filename.startswith(root) or code.co_name == "<module>" or not code.co_flags & 2:
        return None  # a module's or a class' body: flag 2 says that locals are those of a function
    calls += 1
    if not first and code.co_name == "sharp" and "/covers/" in code.co_filename:
        above = frame
        while above is not None:
            first, above = first + above.f_code.co_filename.startswith(root), above.f_back
    if not code.co_name.startswith("<"):  # a lambda, a comprehension
        functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
    return within
sys.settrace(entered)
sys.argv = sys.argv[1:] if sys.argv[1].endswith(".py") else sys.argv
try:
    if sys.argv[0].endswith(".py"):
        sys.path.insert(0, "")
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module("boundcalc", run_name="__main__")
except SystemExit:
    pass
sys.settrace(None)
print(json.dumps([sorted(functions), len(lines), calls, first]), file=sys.stderr)
"""


class Walk(NamedTuple):
    """What a command goes through, or the most that it may."""

    files: int
    lines: int
    run: int
    functions: int
    calls: int
    frames: int


def _walked(words: list[str], folder: Path) -> tuple[Walk, str]:
    out = subprocess.run(
        [sys.executable, "-c", _TRACER, *words], capture_output=True, text=True, check=True, cwd=folder
    )
    functions, run, calls, first = json.loads(out.stderr.splitlines()[-1])
    names = {name for name, _, _ in functions}
    lines = sum(len(Path(name).read_text(encoding="utf-8").splitlines()) for name in names)
    walk = Walk(len(names), lines, run, len(functions), calls, first)
    print(f"\n{' '.join(words)}: " + ", ".join(f"{value:,} {name}" for name, value in walk._asdict().items()))
    return walk, out.stdout


def _within(walk: Walk, most: Walk) -> None:
    assert walk.frames > 0
    assert all(value <= limit for value, limit in zip(walk, most, strict=True)), walk


def test_what_eval_goes_through(tmp_path: Path) -> None:
    walk, text = _walked(["eval", "--depth", "2", "--T", "512"], tmp_path)
    _within(walk, Walk(68, 12_200, 2_900, 615, 183_000, 15))
    assert {"best", "closed", "published"} <= set(text.split())


def test_what_training_with_a_certificate_goes_through(tmp_path: Path) -> None:
    """Before the cut of the house, with every certificate: 184 files, 27,634 lines, 1,429 functions, 1.3 M calls."""
    pytest.importorskip("torch")
    walk, text = _walked(["train", "conjunction", "--T", "128", "--m", "211", "--certify", "rule"], tmp_path)
    _within(walk, Walk(111, 18_400, 4_100, 890, 310_000, 16))
    assert "on every input" in text


def test_what_the_certificate_of_a_module_goes_through(tmp_path: Path) -> None:
    """The tutorial's own Transformer; before the cut of the house 143 files, 22,148 lines, 1,057 functions, 2.3 M
    calls."""
    pytest.importorskip("torch")
    for name, text in files("own-transformer.md").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "train.py"], check=True, cwd=tmp_path)
    walk, text = _walked(["certify.py"], tmp_path)
    _within(walk, Walk(96, 16_800, 3_600, 770, 725_000, 16))
    assert "held-out" in text
