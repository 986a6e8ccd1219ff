"""Variables are named after what they hold."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EMPTY = {"found", "made", "each", "known", "given", "told", "asked"}
"""Names that say nothing about what they hold."""
MODULES = sorted(path for folder in ("boundcalc", "examples", "tests/cases") for path in (ROOT / folder).rglob("*.py"))


def empty_names(source: str) -> list[str]:
    """Variables and parameters with such a name, with their lines."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [(node.lineno, node.id) for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names += [(node.lineno, node.arg) for node in nodes if isinstance(node, ast.arg)]
    return [f"line {line}: {name}" for line, name in sorted(names) if name in EMPTY]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_variables_are_named_after_what_they_hold(path: Path) -> None:
    assert empty_names(path.read_text(encoding="utf-8")) == []


def test_an_empty_name_would_be_seen() -> None:
    for source in (
        "found = 1",
        "[each for each in x]",
        "def f(*, given): ...",
        "f = lambda known: known",
        "(asked := 2)",
    ):
        assert len(empty_names(source)) == 1, source
    assert empty_names("rows = f(found, given=x.known)") == []
