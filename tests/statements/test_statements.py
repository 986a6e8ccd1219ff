"""The registry of statements: complete, readable, referred to by existing names only, and cheap."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.base.theory import Entry
from boundcalc.setting import PRESETS, Setting
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.statements.texts import STATEMENTS
from boundcalc.theorems import POLICIES
from boundcalc.theorems.prose import plain

_REFERENCE = re.compile(r"\b[TLSAG]\d+[a-z]?\b")


def shown_problems(text: str) -> list[str]:
    """What a terminal would show of LaTeX that was not understood."""
    shown = plain(text)
    return [mark for mark in ("\\", "$", "```", "\x00", "  }") if mark in shown]


def dangling(text: str) -> set[str]:
    """Statements a text refers to that do not exist."""
    return set(_REFERENCE.findall(text)) - set(STATEMENTS)


@pytest.mark.parametrize("entry", STATEMENTS.values(), ids=lambda entry: entry.name)
def test_every_slot_says_something(entry: Entry) -> None:
    for slot in (entry.title, entry.says):
        assert slot.strip() == slot
        assert len(slot) > 5, slot
    for slot in (entry.title, entry.says, entry.proof):
        assert shown_problems(slot) == []
        assert dangling(slot) == set()
    assert entry.source.bibtex.count("{") == entry.source.bibtex.count("}")


def test_the_checks_of_text_see_mistakes() -> None:
    assert shown_problems("costs 5$") == ["$"]
    with pytest.raises(InvalidSetting, match=r"the command \\undefined is not known"):
        shown_problems(r"$\undefined x$")
    assert dangling("as in T1, V4 and L77") == {"L77"}


def test_names_used_by_rules_lemmas_policies_and_strategies_exist() -> None:
    used: set[str] = set(LEMMAS)
    for preset in PRESETS:
        used |= set(Network(Setting.of(preset), FLOAT).uses)
        if preset != "edelman":
            used |= set(Network(Setting.of(preset, activation="silu", gated=True, rope=True), FLOAT).uses)
    assert {"L9", "S4", "T10", "L5"} <= used
    for policy in POLICIES.values():
        used |= policy.lemmas
    for strategy in STRATEGIES.values():
        used |= set(strategy.uses)
    assert used <= set(STATEMENTS)


def test_statements_are_cheap_and_no_part_of_evaluation() -> None:
    heavy = "{'numpy', 'scipy', 'sympy', 'torch', 'matplotlib'}"
    code = (
        "import sys, boundcalc; boundcalc.evaluate(boundcalc.Setting.of(depth=1, n_train=10**4));"
        "assert 'boundcalc.statements.texts' not in sys.modules;"
        f"import boundcalc.statements.texts; print(sorted({heavy} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
