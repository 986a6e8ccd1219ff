"""The words of the documents and of help are those that the field uses: a list of private senses that must not come back."""

from __future__ import annotations

import re

import click
import pytest

from boundcalc.cli import main
from tests.docs.commands import ROOT

BANNED = re.compile(
    r"\b(told|heard|says nothing|would do|asked for|least of all|of one['’]s own|whatever is there|speaks of|"
    r"nobody (?:asked|compared))\b",
    re.IGNORECASE,
)
"""Private senses of plain words; docs/glossary.md has the words that are meant."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def found(text: str) -> list[str]:
    """The banned words of a text, code apart."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [match[0] for match in BANNED.finditer(" ".join(prose.split()))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_use_plain_words(page: object) -> None:
    assert found(page.read_text(encoding="utf-8")) == []  # type: ignore[attr-defined]


def commands() -> list[str]:
    return main.list_commands(click.Context(main, **main.context_settings))


@pytest.mark.parametrize("name", commands())
def test_help_uses_plain_words_and_fits_its_width(name: str) -> None:
    context = click.Context(main, info_name="boundcalc", **main.context_settings)  # click remembers the names of --help
    command = main.get_command(context, name)
    assert command is not None
    inner = click.Context(command, info_name=name, parent=context, terminal_width=80, **command.context_settings)
    text = command.get_help(inner)
    assert found(text) == []
    prose = text.partition("\nExamples:")[0].partition("  Examples:")[0]
    long = [line for line in prose.splitlines() if len(line) > 80]
    assert [line for line in long if max(map(len, line.split())) < 50] == []  # a list of choices is one word


def test_a_banned_word_would_be_seen() -> None:
    assert found("What is told of it says\nnothing.") == ["told", "says nothing"]
    assert found("`told` is code") == []
