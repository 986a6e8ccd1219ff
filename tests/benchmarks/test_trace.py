"""What one evaluation goes through, and how much the package shows: `pytest tests/benchmarks/test_trace.py -s`.

Counted are the package's files of which some function runs (not what importing them runs), their lines, the lines of
them that run, the functions, their calls, and the package's frames at the first cost of a cover.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import boundcalc

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
try:
    runpy.run_module("boundcalc", run_name="__main__")
except SystemExit:
    pass
sys.settrace(None)
print(json.dumps([sorted(functions), len(lines), calls, first]), file=sys.stderr)
"""


def test_what_eval_goes_through() -> None:
    words = ["eval", "--depth", "2", "--T", "512"]
    out = subprocess.run([sys.executable, "-c", _TRACER, *words], capture_output=True, text=True, check=True)
    functions, run, calls, first = json.loads(out.stderr.splitlines()[-1])
    root = Path(boundcalc.__file__).parent
    files = sorted({Path(name).relative_to(root) for name, _, _ in functions})
    lines = sum(len((root / file).read_text(encoding="utf-8").splitlines()) for file in files)
    print(
        f"\neval --depth 2 --T 512: {len(files)} files, {lines:,} lines ({run:,} of them run), {len(functions)} "
        f"functions, {calls:,} calls, {first} frames at the first cost"
    )
    parts = {file.parts[0] for file in files}
    assert parts <= {"base", "setting", "layers", "statements", "proof", "engine", "theorems", "cli"}, parts
    assert calls < 205_000
    assert 0 < first <= 17
    assert {"best", "closed", "published"} <= set(out.stdout.split())


def public(path: Path) -> Iterator[str]:
    """The names without an underscore that a module defines at its top: functions, classes and values."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        found = [node] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [each.name for each in found]
        names += [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        yield from (name for name in names if not name.startswith("_"))


def test_how_much_is_public() -> None:
    """Counted in modules without an underscore; what users import is what `boundcalc` exports and docs/api.md lists."""
    root = Path(boundcalc.__file__).parent
    rooms: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if not any(part.startswith("_") and part != "__init__.py" for part in place.parts):
            rooms[place.parts[0]] += len(list(public(path)))
    print(
        f"\n{sum(rooms.values())} public names at the top of modules: "
        + ", ".join(f"{r} {n}" for r, n in rooms.most_common())
    )
    assert rooms["cli"] > 0
