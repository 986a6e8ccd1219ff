"""docs/theory.md and its statements: complete, readable, with known references, cheap, and safe in Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.base.theory import papers, parse, source
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ
from boundcalc.setting import PRESETS, Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network
from boundcalc.statements.texts import STATEMENTS
from boundcalc.theorems import POLICIES
from boundcalc.theorems.prose import plain

SHORT = "A2 A3 G0 G7 G8 L3 L4 L6 L8 PUB S1 S2 S3 T10 T7 T8 T9b Tpub"
"""Entries whose reason is in the sentence that states them."""
TEXT = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def without_fences(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def problems(text: str) -> list[str]:
    """What GitHub would not render as meant; KaTeX and the site see the rest (tests/docs)."""
    wrong: list[str] = []
    for paragraph in without_fences(text).split("\n\n"):
        formulas = re.findall(r"\$([^$]*)\$", paragraph)
        wrong += [f"Markdown eats a backslash: {formula}" for formula in formulas if re.search(r"\\[,;:!{}]", formula)]
        wrong += [f"spaces: {formula}" for formula in formulas if formula != formula.strip()]
        if paragraph.count("$") % 2:
            wrong.append(f"an open dollar: {paragraph.strip()[:60]}")
    anchors = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in headings(text)}
    links = re.findall(r"\]\(#([\w-]+)\)", without_fences(text).replace("\n", ""))
    return wrong + [f"a link to nowhere: {link}" for link in links if link not in anchors]


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", without_fences(text), flags=re.MULTILINE)


def test_every_statement_of_the_calculus_has_an_entry() -> None:
    entries = {title.partition(".")[0] for title in headings(TEXT) if "." in title}
    assert entries == set(STATEMENTS)


def test_entries_end_with_a_proof_or_point_to_one() -> None:
    bodies = re.split(r"^### (?=[A-Z]\w*\.)", TEXT, flags=re.MULTILINE)[1:]
    for body in bodies:
        name = body.partition(".")[0]
        if name not in SHORT.split():
            assert "roof" in body or "](#ghosts-g2)" in body, name


def test_formulas_survive_markdown() -> None:
    assert problems(TEXT) == []


def test_the_check_sees_what_would_not() -> None:
    for text in ("costs $5", r"$a\,b$", "$ a$", "[here](#there)"):
        assert len(problems(text)) == 1
    assert problems("# There\n\n[here](#there) is $a+b$ of\n```math\n\\frac{1}{2}\n```") == []


def test_citations_are_known() -> None:
    cited = set(re.findall(r"\[([a-z]+\d{4})(?:, [^\]]+)?\]", TEXT))
    assert cited
    assert cited == set(papers())
    listed = set(re.findall(r"^- \[([a-z]+\d{4})\]", TEXT, flags=re.MULTILINE))
    assert listed == cited


def test_printed_constants_are_those_of_the_code() -> None:
    assert f"2k\\Big({gap.CLOSED_OFFSET:g}+" in TEXT
    assert f"on ${1 + gap.CLOSED_GHOSTS}m$ samples" in " ".join(TEXT.split())
    for slope in {slope for slope in ACTIVATION_LIPSCHITZ.values() if slope > 1}:
        assert f"{slope:.5f}" in TEXT


def test_conditions_and_places_in_papers_are_read() -> None:
    says = "- One thing\n  that goes on.\n- Another.\n\nThen so. Source: [zhang2002, Theorem 9]."
    entry = parse(f"### Q1. A title\n\n{says}\n\n*Proof.* Thus. ∎\n")["Q1"]
    assert entry.assumes == ("One thing that goes on", "Another")
    assert entry.cited.endswith(" Theorem 9.")
    assert entry.proof == "*Proof.* Thus. ∎"
    bare = parse("### Q2. A title\n\nA thing. Source: [zhang2002].\n\n- no condition\n")["Q2"]
    assert bare.assumes == ()
    assert bare.cited == str(source("zhang2002"))


# -- the registry

_REFERENCE = re.compile(r"\b[TLSAG]\d+[a-z]?\b")


def shown_problems(text: str) -> list[str]:
    """What a terminal would show of LaTeX that was not understood."""
    shown = plain(text)
    return [mark for mark in ("\\", "$", "```", "\x00", "  }") if mark in shown]


def dangling(text: str) -> set[str]:
    """Statements a text refers to that do not exist."""
    return set(_REFERENCE.findall(text)) - set(STATEMENTS)


def test_every_slot_says_something_that_a_terminal_can_show() -> None:
    for entry in STATEMENTS.values():
        for slot in (entry.title, entry.says):
            assert slot.strip() == slot
            assert len(slot) > 5, slot
        for slot in (entry.title, entry.says, entry.proof):
            assert shown_problems(slot) == [], entry.name
            assert dangling(slot) == set(), entry.name
        assert entry.source.bibtex.count("{") == entry.source.bibtex.count("}")
    assert shown_problems("costs 5$") == ["$"]
    with pytest.raises(InvalidSetting, match=r"the command \\undefined is not known"):
        shown_problems(r"$\undefined x$")
    assert dangling("as in T1, V4 and L77") == {"L77"}


def test_names_used_by_rules_lemmas_and_policies_exist() -> None:
    """Of strategies their law says so."""
    wide = (Setting.of(preset, activation="silu", gated=True, rope=True) for preset in PRESETS if preset != "edelman")
    used = {name for setting in (*map(Setting.of, PRESETS), *wide) for name in Network(setting, FLOAT).uses}
    assert {"L9", "S4", "T10", "L5"} <= used
    assert used | set(LEMMAS) | {name for policy in POLICIES.values() for name in policy.lemmas} <= set(STATEMENTS)
