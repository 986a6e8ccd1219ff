"""The words of the documents and of help are those that the field uses: a list of private senses that must not come
back."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import click
import pytest

from boundcalc.cli import main
from tests.docs.commands import ROOT
from tests.docs.prose import LIMIT, long_sentences
from tests.laws.test_options import commands

BANNED = re.compile(
    r"\b(told|heard|says? nothing|would do|(?:not )?asked for|least of all|of one['’]s own|(?:whatever|what) is there|"
    r"sp(?:eaks?|oke) of|nobody|held against|(?<!the )rests? on|beside|worth its price|at the assumed|"
    r"nothing says|(?:paid|pays?|payment) for|turned round|whoever|unasked|(?:are|is) said\b(?! to)|has otherwise|"
    r"covers nothing|after a look)\b",
    re.IGNORECASE,
)
"""Private senses of plain words; docs/glossary.md has the words that are meant."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "figures" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MODULES = [path for room in ("boundcalc", "examples", "docs") for path in sorted((ROOT / room).rglob("*.py"))]


def found(text: str) -> list[str]:
    """The banned words of a text, code and names of values apart."""
    prose = re.sub(
        r"^```.*?^```|`[^`\n]*`|\{[^{}\n]*\}|\+ beside\b|\bbeside:\S+", "", text, flags=re.DOTALL | re.MULTILINE
    )
    return [match[0] for match in BANNED.finditer(" ".join(prose.split()))]


def spoken(source: str) -> str:
    """Docstrings, comments and messages of a module: the literal text of all strings."""
    kinds = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return " . ".join(token.string for token in tokens if token.type in kinds)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_docstrings_comments_and_messages_use_plain_words(path: Path) -> None:
    assert found(spoken(path.read_text(encoding="utf-8"))) == [], path


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is told."""',
        "x = 1  # nobody reads it",
        'raise E(f"{name} says nothing of {it}")',
        'def f():\n    """A.\n\n    It is held against\n    b.\n    """',
    ],
)
def test_a_banned_word_of_a_module_would_be_seen(source: str) -> None:
    assert len(found(spoken(source))) == 1


def test_a_banned_word_would_be_seen() -> None:
    assert found("What is told of it says\nnothing.") == ["told", "says nothing"]
    assert found("`told` is code") == found(spoken('told = heard  # `told` is code\nx = f"{beside}"')) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_use_plain_words_in_short_sentences(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert (found(text), long_sentences(text)) == ([], [])


def test_a_long_sentence_would_be_seen() -> None:
    """Formulas and names in code are one word.

    Lists, tables, headings and displayed formulas do not hide a sentence.
    """
    words, inner = "word " * (LIMIT - 1), "$a \\le b. C$ `boundcalc eval --depth 2`"
    assert long_sentences(f"A {words.strip()}. B {words.strip()}.") == []
    assert long_sentences(f"A {words.strip()}.\n\n- B {words.strip()}") == []
    assert long_sentences(f"{words[10:]}{inner}. Next.") == []
    for long in (
        f"A {words}last.",
        f"A {words}\nlast.",
        f"- A {words}last",
        f"| a | b |\n| --- | --- |\n| a | A {words}last |",
        f"{words}{inner}.",
        f"A {words[:50]}\n\n```math\nx\n```\n\n{words[50:]}goes on.",
        f"A [{words}]({words[:4]}.md) last.",
    ):
        assert len(long_sentences(long)) == 1, long


def long_releases(changelog: str, limit: int = 60) -> list[str]:
    """Releases with more lines than a user reads."""
    parts = changelog.split("\n## ")[1:]
    return [part.splitlines()[0] for part in parts if len(part.splitlines()) > limit]


def test_a_release_of_the_changelog_is_read_at_once() -> None:
    assert long_releases((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []
    assert long_releases("# C\n\n## [1]\n" + "- a\n" * 60 + "\n## [0]\n- b\n") == ["[1]"]


@pytest.mark.parametrize(("name", "command"), [*commands()])
def test_help_uses_plain_words_and_fits_its_width(name: str, command: click.Command) -> None:
    context = click.Context(main, info_name="boundcalc", **main.context_settings)  # click remembers the names of --help
    inner = click.Context(command, info_name=name, parent=context, terminal_width=80, **command.context_settings)
    text = command.get_help(inner)
    assert found(text) == []
    long = [line for line in text.splitlines() if len(line) > 80 and not re.match(r" +(\S+=\S+ )?boundcalc ", line)]
    assert [line for line in long if max(map(len, line.split())) < 50] == []  # a list of choices is one word
