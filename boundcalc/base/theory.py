"""Statements and proofs as docs/theory.md has them: the one text of `explain`, of derivations and of this page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from boundcalc.base.sources import HERE, Source, source

_HEADING = re.compile(r"^#{2,4} (.*)$", re.MULTILINE)
_NAMED = re.compile(r"([A-Z][A-Za-z]*\d*[a-z]*'?)\. (.*)")
_PROOF = re.compile(r"\*(?:Proof|Claim)[^*]*\*.*?(?:∎|\Z)", re.DOTALL)
_LINK = re.compile(r"\]\(#([\w-]+)\)")
_SOURCE = re.compile(r"\s*Source: \[(\w+)(?:, ([^\]]+))?\]\.")
_FULL_PROOFS = "Sharpened statements"
"""The heading after which proofs stand that entries only point to."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a page says of one statement, in Markdown with LaTeX between dollars.

    Attributes:
        title: a few words.
        says: the statement with its conditions and all of its constants, and remarks.
        proof: why; empty where the statement says it in passing.
        source: where the idea is from.
        locator: where in that paper.
    """

    title: str
    says: str
    proof: str
    source: Source = HERE
    locator: str = ""

    @property
    def assumes(self) -> tuple[str, ...]:
        """Its conditions, where the entry begins with a list of them."""
        first = re.split(r"\n\n", self.says, maxsplit=1)[0]
        if not first.startswith("- "):
            return ()
        return tuple(
            " ".join(item.split()).removesuffix(".") for item in re.split(r"^- ", first, flags=re.MULTILINE)[1:]
        )

    @property
    def cited(self) -> str:
        """The source, with the place in it."""
        return f"{self.source} {self.locator}." if self.locator else str(self.source)


def parse(text: str) -> dict[str, Entry]:
    """The entries of a page by name: what stands under headings such as "T1. Perceptron cover"."""
    marks = list(_HEADING.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    sections = [(mark[1], text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
    titles = [title for title, _ in sections]
    later = sections[titles.index(_FULL_PROOFS) + 1 :] if _FULL_PROOFS in titles else []
    proofs = {_anchor(title): body for title, body in later}
    return {
        named[1]: _entry(named[2], body, proofs)
        for title, body in sections
        if (named := _NAMED.fullmatch(title)) is not None
    }


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")


def _entry(title: str, body: str, proofs: dict[str, str]) -> Entry:
    cited = _SOURCE.search(body)
    body = _SOURCE.sub("", body)
    parts = [part.strip() for part in _PROOF.findall(body)]
    says = re.sub(r"\n\n\s+", "\n\n", _PROOF.sub("", body)).strip()
    parts += [proofs[anchor] for anchor in dict.fromkeys(_LINK.findall(says)) if anchor in proofs]
    proof = "\n\n".join(parts)
    if cited is None:
        return Entry(title, says, proof)
    return Entry(title, says, proof, source(cited[1]), cited[2] or "")


def _text(name: str) -> str:
    """A page of docs/, which an installed package carries next to its modules."""
    home = Path(__file__).parents[1]
    shipped, tree = home / name, home.parent / "docs" / name
    return (shipped if shipped.exists() else tree).read_text(encoding="utf-8")


def conventions() -> str:
    """What all statements of docs/theory.md take for granted."""
    return _text("theory.md").partition("## Conventions\n")[2].partition("\n## ")[0].strip()


def section(letter: str) -> str:
    """What the statements of a letter take for granted: the words below the heading of their section."""
    return (
        re.split(r"\n#{2,3} ", _text("theory.md").partition(f"\n## {letter}: ")[2], maxsplit=1)[0]
        .partition("\n")[2]
        .strip()
    )


@cache
def glossary() -> dict[str, str]:
    """The words of docs/glossary.md, each with what it means."""
    parts = re.split(r"^### (.*)\n", _text("glossary.md"), flags=re.MULTILINE)
    return {word: text.partition("\n## ")[0].strip() for word, text in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def page(name: str = "theory.md") -> dict[str, Entry]:
    """The entries of a page of docs/."""
    return parse(_text(name))
