"""docs/papers.md: what it names is there, so that its list of attempts cannot outlive them."""

from __future__ import annotations

import re

import pytest

from tests.docs.commands import ROOT, parsed

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| ---")]


def attempts(row: str) -> list[str]:
    """What is wrong with the tests and examples a row names."""
    found: list[str] = []
    for name in re.findall(r"(?:tests|examples)/[\w/]+(?:\.py)?", row):
        path = ROOT / name
        if not path.exists():
            found.append(f"there is no {name}")
    files = [ROOT / name for name in re.findall(r"tests/[\w/]+", re.sub(r"\.py", "", row))]
    texts = [
        file.read_text(encoding="utf-8")
        for where in files
        for file in ([where.with_suffix(".py")] if where.with_suffix(".py").exists() else where.glob("*.py"))
    ]
    if "-m slow" in row and not any("mark.slow" in text for text in texts):
        found.append("none of its tests has a slow form")
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row[2:40] for row in ROWS])
def test_a_row_names_what_is_there(row: str) -> None:
    assert attempts(row) == []
    for command in re.findall(r"`(boundcalc [^`]+)`", row):
        if "MODEL" not in command:
            parsed(command)


def test_rows_that_name_what_is_not_there_are_seen() -> None:
    assert len(ROWS) > 40
    assert attempts("| x | tests/lab/train/test_nothing.py | |") == ["there is no tests/lab/train/test_nothing.py"]
    assert attempts("| x | tests/docs/test_pages.py `-m slow` | |") == ["none of its tests has a slow form"]
