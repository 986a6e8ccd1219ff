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

LETTERS = {
    "T": ["1", "2", "3", "4", "5", "7", "8", "9", "9b", "10", "13", "14", "pub"],
    "L": [str(number) for number in range(1, 15)],
    "S": list("12345"),
    "A": list("01234567"),
    "G": ["0", "0e", "1", "2", "3", "7", "8", "11", "12", "13"],
    "V": list("1234"),
}
CALCULUS = [name for name in STATEMENTS if name[0] in "TVLSAGPE"]
"""The letters of the calculus; others (X, ...) are checked for their text here, for their values elsewhere."""
_REFERENCE = re.compile(r"\b[TLSAG]\d+[a-z]?\b")


def latex_problems(formula: str) -> list[str]:
    """What would break a formula inside $...$."""
    problems: list[str] = []
    bare = formula.replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for character in bare:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            break
    if depth:
        problems.append("braces")
    if "$" in formula:
        problems.append("dollar")
    sizes = re.findall(r"\\([bB]igg?)(?![a-zA-Z])(\\?.)", formula)
    if sum(mark in ("(", "[", r"\{") for _, mark in sizes) != sum(mark in (")", "]", r"\}") for _, mark in sizes):
        problems.append("sized brackets")
    if formula.count("(") + formula.count("[") != formula.count(")") + formula.count("]"):
        problems.append("()")
    if formula.count(r"\{") != formula.count(r"\}"):
        problems.append(r"\{\}")
    if not formula.isascii() or formula != formula.strip():
        problems.append("characters")
    return problems


def formulas(text: str) -> list[str]:
    """The mathematics of a text."""
    blocks = re.findall(r"^```math\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [*(block.strip() for block in blocks), *re.findall(r"\$([^$]+)\$", text)]


def shown_problems(text: str) -> list[str]:
    """What a terminal would show of LaTeX that was not understood."""
    shown = plain(text)
    return [mark for mark in ("\\", "$", "```", "\x00", "  }") if mark in shown]


def dangling(text: str) -> set[str]:
    """Statements a text refers to that do not exist."""
    return set(_REFERENCE.findall(text)) - set(STATEMENTS)


def test_every_statement_is_there_once() -> None:
    names = [letter + number for letter, numbers in LETTERS.items() for number in numbers] + ["P1", "PUB", "E"]
    assert sorted(CALCULUS) == sorted(names)


@pytest.mark.parametrize("entry", STATEMENTS.values(), ids=lambda entry: entry.name)
def test_every_slot_says_something(entry: Entry) -> None:
    for slot in (entry.title, entry.says):
        assert slot.strip() == slot
        assert len(slot) > 5, slot
    for slot in (entry.title, entry.says, entry.proof):
        assert shown_problems(slot) == []
        assert dangling(slot) == set()
    for formula in formulas(entry.says + "\n\n" + entry.proof):
        assert latex_problems(formula) == [], formula
    assert entry.source.bibtex.count("{") == entry.source.bibtex.count("}")


def test_the_checks_of_text_see_mistakes() -> None:
    assert latex_problems(r"\frac{a}{b") == ["braces"]
    assert latex_problems(r"}a{") == ["braces"]
    assert latex_problems(r"$a$") == ["dollar"]
    assert latex_problems(r"\Big(a)") == ["sized brackets"]
    assert latex_problems(r"\sqrt(a") == ["()"]
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
