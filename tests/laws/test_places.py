"""A statement is a place: in how many files of the package an idea is named. The numbers may fall and not rise.

`python -m tests.laws.test_places` prints the tables. Files that name an idea: `grep -rlw IDEA boundcalc --include=*.py`.
How few files know a layer is held by tests/recipes/test_layer.py, which adds one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import boundcalc

PACKAGE = Path(boundcalc.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

MOST: Mapping[str, int] = {
    "X3": 5,
    "X4": 5,
    "X5": 11,
    "X6": 8,
    "T1": 5,
    "T2": 5,
    "T4r": 4,
    "G4": 4,
    "G12": 4,
    "A7": 5,
    "P1": 11,
    "ghost-realizable": 2,
    "refined-chain": 2,
    "uniform-chain": 2,
    "noise-margin": 2,
}
"""The most files that may name an idea. A label stands in its own file, in the proof of the second implementation, and in
the papers whose content it is; whoever else needs it asks the registry."""

_SECOND = "proof/second/"
"""The second implementation knows everything once more, on purpose: it counts as one place."""


def naming(idea: str, sources: Mapping[str, str] = SOURCES) -> list[str]:
    """The files that name an idea."""
    word = re.compile(rf"(?<![\w-]){re.escape(idea)}(?![\w-])")
    found = {_place(name) for name, text in sources.items() if word.search(text)}
    return sorted(found)


def _place(name: str) -> str:
    return _SECOND if name.startswith(_SECOND) else name


@pytest.mark.parametrize("idea", MOST)
def test_an_idea_is_named_in_few_files(idea: str) -> None:
    found = naming(idea)
    assert found, f"nobody names {idea} any more: take it out of the table"
    assert len(found) <= MOST[idea], found


def test_nobody_asks_for_a_label() -> None:
    """Which would be to know a class by another name."""
    asked = re.compile(r"\.label (==|!=|in|not in) ?[\"'(\[{]")
    assert [name for name, text in SOURCES.items() if not name.startswith(_SECOND) and asked.search(text)] == []


def test_what_is_counted_is_seen() -> None:
    """Negative control."""
    sources = {
        "lab/a.py": "x = 'T2'\nif isinstance(layer, (Ball, Pool)):\n",
        "lab/b.py": "T21, my_T2, T2-like",
        "c.py": "",
    }
    assert naming("T2", sources) == ["lab/a.py"]


if __name__ == "__main__":
    for each in MOST:
        where = naming(each)
        print(f"{each:18}{len(where):3}  {' '.join(where)}")  # noqa: T201
