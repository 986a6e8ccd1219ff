"""A statement is a place: in how many files of the package an idea is named. The numbers may fall and not rise.

`python -m tests.laws.test_places` prints the table. Files that name an idea: `grep -rlw IDEA boundcalc --include=*.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import boundcalc
from boundcalc.setting.named import CLASSES

PACKAGE = Path(boundcalc.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

MOST: Mapping[str, int] = {
    "X3": 5,
    "X4": 5,
    "X5": 16,
    "X6": 13,
    "T1": 5,
    "T2": 5,
    "T4r": 4,
    "G4": 4,
    "G12": 13,
    "A7": 11,
    "P1": 26,
    "ghost-realizable": 2,
    "refined-chain": 2,
    "uniform-chain": 2,
    "noise-margin": 2,
    "Lookup": 7,
    "Hidden": 10,
    "Experts": 7,
    "Ball": 13,
    "Pool": 20,
}
"""The most files that may name an idea. A label stands in its own file, in the proof of the second implementation, and in
the papers whose content it is; whoever else needs it asks the registry."""

_SECOND = "proof/second/"
"""The second implementation knows everything once more, on purpose: it counts as one place."""

_LAYERS = "|".join(cls.__name__ for cls in CLASSES.values())
_ASKED_BY_CLASS = re.compile(rf"isinstance\([^\n]*\b({_LAYERS})\b")
_RULES = ("statements/", "proof/", "setting/")
"""Where what a layer is to a proof is said: rules may meet layers by class there."""


def naming(idea: str, sources: Mapping[str, str] = SOURCES) -> list[str]:
    """The files that name an idea."""
    word = re.compile(rf"(?<![\w-]){re.escape(idea)}(?![\w-])")
    found = {_SECOND if name.startswith(_SECOND) else name for name, text in sources.items() if word.search(text)}
    return sorted(found)


def asked_by_class(sources: Mapping[str, str] = SOURCES) -> Iterator[str]:
    """Lines that ask whether a layer is of a class, outside the rules of proofs."""
    for name, text in sources.items():
        if not name.startswith(_RULES):
            yield from (f"{name}: {line.strip()}" for line in text.splitlines() if _ASKED_BY_CLASS.search(line))


@pytest.mark.parametrize("idea", MOST)
def test_an_idea_is_named_in_few_files(idea: str) -> None:
    found = naming(idea)
    assert found, f"nobody names {idea} any more: take it out of the table"
    assert len(found) <= MOST[idea], found


def test_nobody_outside_the_rules_asks_a_layer_for_its_class() -> None:
    assert list(asked_by_class()) == []


def test_what_is_counted_is_seen() -> None:
    """Negative control."""
    sources = {
        "lab/a.py": "x = 'T2'\nif isinstance(layer, (Ball, Pool)):\n",
        "lab/b.py": "T21, my_T2, T2-like",
        "c.py": "",
    }
    assert naming("T2", sources) == ["lab/a.py"]
    assert list(asked_by_class(sources)) == ["lab/a.py: if isinstance(layer, (Ball, Pool)):"]
    assert list(asked_by_class({"proof/a.py": sources["lab/a.py"]})) == []


if __name__ == "__main__":
    for each in MOST:
        where = naming(each)
        print(f"{each:18}{len(where):3}  {' '.join(where)}")  # noqa: T201
