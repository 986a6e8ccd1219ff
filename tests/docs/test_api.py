"""docs/api: every public name has a section with its documentation and an example, which test_blocks.py runs."""

from __future__ import annotations

import re

import pytest

import boundcalc
import boundcalc.testing
from tests.docs.blocks import blocks
from tests.docs.commands import ROOT

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md"))}
_SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_DOCUMENTED = re.compile(r"^\.\. auto\w+:: (boundcalc[\w.]*)\.(\w+)$", re.MULTILINE)


def public() -> set[str]:
    """What users import."""
    offered = {name for name in boundcalc.__all__ if not name.startswith("__")}
    kinds = vars(boundcalc.testing).items()
    return offered | {name for name, thing in kinds if not name.startswith("_") and not hasattr(thing, "__path__")} - {
        name for name, thing in kinds if type(thing).__name__ == "module"
    }


def missing(name: str, section: str) -> list[str]:
    """What the section of a public name lacks."""
    module = "boundcalc" if hasattr(boundcalc, name) else "boundcalc.testing"
    code = "\n".join(block.text for block in blocks(name, section) if block.language == "{run}")
    found = []
    if not name.isupper() and (module, name) not in _DOCUMENTED.findall(section):
        found.append("its documentation")
    if not re.search(rf"\b{name}\b(?!\.md)", re.sub(r"^(?:from|import) .*", "", code, flags=re.MULTILINE)):
        found.append("an example that uses it")
    return found


def sections() -> dict[str, str]:
    return {name: text for page in PAGES.values() for name, text in _SECTION.findall(page)}


def test_every_public_name_has_a_section_with_an_example() -> None:
    pytest.importorskip("torch")  # ModuleLearner is public where torch is
    found = sections()
    assert set(found) == public()
    assert {name: lacks for name, text in found.items() if (lacks := missing(name, text))} == {}
    assert sum(len(_SECTION.findall(page)) for page in PAGES.values()) == len(found)  # each once


def test_a_name_without_an_example_would_be_seen() -> None:
    text = sections()["solve"]
    assert missing("solve", text.replace("solve(", "f(")) == ["an example that uses it"]
    assert missing("solve", re.sub(r"\.\. autofunction.*", "", text)) == ["its documentation"]


def test_the_table_of_names_is_complete() -> None:
    index = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for stem, page in PAGES.items():
        (row,) = [line for line in index.splitlines() if f"(api/{stem}.md)" in line]
        listed = set(re.findall(r"`(\w+)`", row))
        names = {name for name, _ in _SECTION.findall(page)}
        assert listed <= names, stem
        assert stem == "extensions" or listed == names, stem
