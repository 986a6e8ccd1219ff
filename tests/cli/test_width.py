"""Nothing that a command prints is wider than its terminal, and no word is cut."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from boundcalc.base.table import fitted, folded

from .conftest import Run

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "eval --depth 2",
    "eval --depth 2 --m 1e4",
    "eval --depth 4 --C 2 --m 1e5 --bound best --why",
    "eval --depth 2 --bound T-free --explain",
    "eval --preset bert --T 128",
    "eval --depth 2 --sweep m=1e6:1e8:x10 --bound best --bound closed",
    "eval --bound X3",
    "solve --for m --target 0.1 --depth 2",
    "solve --for n --certify held-out --truth 0.05 --target 0.1",
    "list",
    "list lemmas",
    "explain T2",
    "explain gap",
    "explain best",
    "derive --bound K1 --depth 1",
    "derive --bound edelman2022 --detail full",
    "latent infer",
    "latent bound --m 1000",
    "represent 'x3 & ~x7 | x11' --T 64",
    f"certify {ROOT / 'examples' / 'predictions.csv'}",
)


def too_wide(text: str, columns: int) -> list[str]:
    """Lines beyond the terminal; a single word may be."""
    return [line for line in text.splitlines() if len(line.rstrip()) > columns and len(line.split()) > 1]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_fits_its_terminal(line: str, columns: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = run(*shlex.split(line))
    assert outcome.exit_code == 0, outcome.output
    assert too_wide(outcome.stdout, columns) == []


def test_a_wide_line_would_be_seen() -> None:
    assert too_wide(f"{'a ' * 41}\nb\n{'c' * 90}\n", 80) == ["a " * 41]


def test_cells_are_wrapped_and_nothing_is_lost() -> None:
    rows = [("name", "what it says"), ("a", "one two three four five"), ("much longer than it was", "x" * 30)]
    widths = fitted(rows, 50)
    lines = [line for row in rows for line in folded(row, widths)]
    assert max(map(len, lines)) <= 50
    assert sorted(" ".join(lines).split()) == sorted(" ".join(map(" ".join, rows)).split())
    assert fitted(rows, None) == [23, 30]
    assert fitted(rows, 10) == [10, 30]  # a word is never cut, and a column keeps some room
