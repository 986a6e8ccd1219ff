"""A statement is a place: in how many files of the package an idea is named. The numbers may fall and not rise.

`python -m tests.laws.test_places` prints the tables. Files that name an idea: `grep -rlw IDEA boundcalc --include=*.py`.
A file knows a class of layers where the name stands elsewhere than in an import, in an annotation or where one is made:
there it is asked what the layer is, or said what is true of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import boundcalc
from boundcalc.setting.named import CLASSES

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
    "Lookup": 5,
    "Hidden": 8,
    "Ball": 7,
    "Pool": 12,
}
"""The most files that may name an idea. A label stands in its own file, in the proof of the second implementation, and in
the papers whose content it is; whoever else needs it asks the registry."""

_SECOND = "proof/second/"
"""The second implementation knows everything once more, on purpose: it counts as one place."""

_LAYERS = "|".join(cls.__name__ for cls in CLASSES.values())
_ASKED_BY_CLASS = re.compile(rf"isinstance\([^\n]*\b({_LAYERS})\b")
_PLACES = (_SECOND, "statements/layers/attention/")
"""Folders that are one place: the second implementation, and what proofs know of attention."""
_RULES = ("statements/layers/", "setting/")
"""Where it is said what a layer is, and what it is to a proof."""

KNOWN: Mapping[str, int] = {
    "Linear": 4,
    "Activation": 4,
    "Ball": 4,
    "SoftCap": 4,
    "LayerNorm": 4,
    "Attention": 4,
    "GatedFeedForward": 4,
    "Embedding": 4,
    "Hidden": 3,
    "Lookup": 3,
    "Pool": 4,
    "Residual": 4,
}
"""The most files that may know a class of layers: its setting, its rule, and how it is run and trained."""


def naming(idea: str, sources: Mapping[str, str] = SOURCES) -> list[str]:
    """The files that name an idea."""
    word = re.compile(rf"(?<![\w-]){re.escape(idea)}(?![\w-])")
    found = {_place(name) for name, text in sources.items() if word.search(text)}
    return sorted(found)


def _place(name: str) -> str:
    return next((place for place in _PLACES if name.startswith(place)), name)


def _imported(tree: ast.AST) -> set[str]:
    """Names that a source has from the settings, where layers are classes, or makes there."""
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {each.asname or each.name for node in froms if "setting" in (node.module or "") for each in node.names}


@cache
def known_in(source: str) -> set[str]:
    """Names from the settings that a source knows: not those it only annotates with, or calls to make something."""
    tree = ast.parse(source)
    beside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            beside.add(id(node.func))
        annotations = (getattr(node, field, None) for field in ("annotation", "returns"))
        beside |= {id(inner) for each in annotations if isinstance(each, ast.AST) for inner in ast.walk(each)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in beside}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) not in beside}
    return names & _imported(tree)


def knowing(cls: str, sources: Mapping[str, str] = SOURCES) -> list[str]:
    """The places that know a class of layers, that of the class itself among them."""
    word, own = re.compile(rf"\b{cls}\b"), re.compile(rf"^class {cls}\(", re.MULTILINE)
    named = {name: text for name, text in sources.items() if word.search(text)}
    found = {_place(name) for name, text in named.items() if cls in known_in(text)}
    return sorted(found | {name for name, text in named.items() if name.startswith("setting/") and own.search(text)})


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


def test_the_table_has_every_class_of_layers() -> None:
    assert set(KNOWN) == {cls.__name__ for cls in CLASSES.values()}


@pytest.mark.parametrize("cls", KNOWN)
def test_a_class_of_layers_is_known_in_few_files(cls: str) -> None:
    assert len(knowing(cls)) <= KNOWN[cls], knowing(cls)


def test_nobody_asks_for_a_label() -> None:
    """Which would be to know a class by another name."""
    asked = re.compile(r"\.label (==|!=|in|not in) ?[\"'(\[{]")
    assert [name for name, text in SOURCES.items() if not name.startswith(_SECOND) and asked.search(text)] == []


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
    assert list(asked_by_class({"setting/a.py": sources["lab/a.py"]})) == []


_KNOWS = {
    "asks": "isinstance(layer, (Ball, Pool))",
    "matches": "match layer:\n    case Ball(): pass",
    "has a table": "_RULES = {Ball: 1}",
    "looks for one": "of_class(layers, Ball)",
    "by its module": "isinstance(layer, setting.Ball)",
}
_DOES_NOT_KNOW = {
    "makes one": "x = Ball(1.0)",
    "annotates": "def run(layer: Ball) -> list[Ball]:\n    held: Ball | None = None",
    "exports": "__all__ = ['Ball']",
}


@pytest.mark.parametrize("how", [*_KNOWS, *_DOES_NOT_KNOW])
def test_who_knows_a_class_of_layers_is_seen(how: str) -> None:
    """Negative control of the second measure."""
    code = (_KNOWS | _DOES_NOT_KNOW)[how]
    sources = {
        "setting/layers.py": "class Ball(Weightless): pass",
        "proof/second/a.py": f"from boundcalc.setting import Ball\n{code}",
        "proof/second/b.py": f"from boundcalc.setting import Ball\n{code}",
        "lab/a.py": f"from boundcalc.setting import Ball\nfrom boundcalc import setting\n{code}",
        "lab/b.py": f"from elsewhere import Ball\nclass Ball: pass\n{code}".replace("setting.", ""),
    }
    here = ["lab/a.py", "proof/second/"] if how in _KNOWS else []
    assert knowing("Ball", sources) == [*here, "setting/layers.py"]


if __name__ == "__main__":
    for each in MOST:
        where = naming(each)
        print(f"{each:18}{len(where):3}  {' '.join(where)}")  # noqa: T201
    for each in KNOWN:
        where = knowing(each)
        print(f"knows {each:18}{len(where):3}  {' '.join(where)}")  # noqa: T201
