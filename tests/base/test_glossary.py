"""The glossary has the words that commands print, each once, and names what exists."""

from __future__ import annotations

import re

import boundcalc
from boundcalc.base.theory import glossary
from boundcalc.statements.strategies import STRATEGIES

PRINTED = (
    "gap",
    "risk",
    "vacuous",
    "trivial",
    "floor",
    "proxy",
    "a posteriori",
    "refused",
    "policy",
    "strategy",
    "margin",
)


def test_words_stand_once_and_have_a_meaning() -> None:
    words = [word.lower() for word in glossary()]
    assert len(words) == len(set(words))
    assert set(PRINTED) <= set(words)
    assert all(len(text) > 30 and "###" not in text for text in glossary().values())


def test_names_in_the_glossary_exist() -> None:
    text = " ".join(glossary().values())
    names = set(re.findall(r"`boundcalc\.(\w+)`", text))
    assert {"Setting", "Budget"} <= names
    assert all(hasattr(boundcalc, name) for name in names)
    assert {"chain", "comparison"} <= STRATEGIES.keys()
