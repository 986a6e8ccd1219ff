"""Statements, proofs, papers and words as the pages of docs/ have them: the one text of `explain` and derivations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HEADING = re.compile(r"^#{2,4} (.*)$", re.MULTILINE)
_NAMED = re.compile(r"([A-Z][A-Za-z]*\d*[a-z]*'?)\. (.*)")
_PROOF = re.compile(r"\*(?:Proof|Claim)[^*]*\*.*?(?:∎|\Z)", re.DOTALL)
_LINK = re.compile(r"\]\(#([\w-]+)\)")
_CITED = re.compile(r"\s*Source: \[(\w+)(?:, ([^\]]+))?\]\.")
_PAPER = re.compile(r"^- \[(\w+)\] (.+?[a-z])\. (.+?)\. (\D.*?)??,? ?(\d{4})(?:, arXiv:(\d+\.\d+)(v\d+)?)?\.$")
_FULL_PROOFS = "Sharpened statements"
"""The heading after which proofs stand that entries only point to."""


@dataclass(frozen=True, slots=True)
class Source:
    """A paper in the version that was read, where it has versions, or this library."""

    key: str
    authors: str
    title: str
    year: int
    venue: str
    eprint: str = ""
    version: str = ""

    @property
    def short(self) -> str:
        """As a table cites it."""
        return "this library" if self == HERE else f"{self.authors.split(',')[0].split()[-1]} {self.year}"

    def __str__(self) -> str:
        where = f"{self.venue}, arXiv:{self.eprint}{self.version}" if self.eprint else self.venue
        return f"{self.authors} ({self.year}). {self.title}. {where}."

    @property
    def bibtex(self) -> str:
        """A BibTeX entry: of a journal with a volume, of a conference, or of a preprint."""
        from boundcalc import __version__

        journal, _, volume = self.venue.rpartition(" ")
        author, kind, eprint = self.authors.replace(", ", " and "), "inproceedings", f"arXiv:{self.eprint}"
        where = {"booktitle": self.venue} | ({"note": eprint} if self.eprint else {})
        if self == HERE:
            author, kind, where = f"{{{self.authors}}}", "misc", {"note": f"Version {__version__}"}
        elif volume.isdigit():
            kind, where = "article", {"journal": journal, "volume": volume}
        elif self.venue == "preprint":
            kind, where = "misc", {"howpublished": eprint}
        values = {"author": author, "title": f"{{{self.title}}}", "year": self.year} | where
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in values.items())
        return f"@{kind}{{{self.key},\n{lines}\n}}"


HERE = Source("boundcalc", "boundcalc authors", "boundcalc", 2026, "explicit version proved in docs/theory.md")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a page says of one statement, in Markdown with LaTeX between dollars.

    Attributes:
        name: how code, tests and derivations refer to it.
        title: a few words.
        says: the statement with its conditions and all of its constants, and remarks.
        proof: why; empty where the statement says it in passing.
        source: where the idea is from.
        locator: where in that paper.
    """

    name: str
    title: str
    says: str
    proof: str
    source: Source = HERE
    locator: str = ""

    @property
    def assumes(self) -> tuple[str, ...]:
        """Its conditions, where the entry begins with a list of them."""
        first = self.says.partition("\n\n")[0]
        items = re.split(r"^- ", first, flags=re.MULTILINE)[1:] if first.startswith("- ") else []
        return tuple(" ".join(item.split()).removesuffix(".") for item in items)

    @property
    def cited(self) -> str:
        """The source, with the place in it."""
        return f"{self.source} {self.locator}." if self.locator else str(self.source)


def parse(text: str) -> dict[str, Entry]:
    """The entries of a page by name: what stands under headings such as "T1. Perceptron cover"."""
    titles, bodies = (parts := _HEADING.split(text))[1::2], [body.strip() for body in parts[2::2]]
    first = titles.index(_FULL_PROOFS) + 1 if _FULL_PROOFS in titles else len(titles)
    proofs = {_anchor(title): body for title, body in zip(titles[first:], bodies[first:], strict=True)}
    named = ((_NAMED.fullmatch(title), body) for title, body in zip(titles, bodies, strict=True))
    return {match[1]: _entry(match[1], match[2], body, proofs) for match, body in named if match is not None}


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")


def _entry(name: str, title: str, body: str, proofs: dict[str, str]) -> Entry:
    cited = _CITED.search(body)
    body = _CITED.sub("", body)
    says = re.sub(r"\n\n\s+", "\n\n", _PROOF.sub("", body)).strip()
    parts = [part.strip() for part in _PROOF.findall(body)]
    parts += [proofs[anchor] for anchor in dict.fromkeys(_LINK.findall(says)) if anchor in proofs]
    proof = "\n\n".join(parts)
    if cited is None:
        return Entry(name, title, says, proof)
    return Entry(name, title, says, proof, source(cited[1]), cited[2] or "")


@cache
def _text(name: str = "theory.md") -> str:
    """A page of docs/, which an installed package carries next to its modules."""
    home = Path(__file__).parents[1]
    return (home if (home / name).exists() else home.parent / "docs").joinpath(name).read_text(encoding="utf-8")


@cache
def papers() -> dict[str, Source]:
    """The references of docs/theory.md, by the keys that pages cite."""
    items = re.split(r"\n(?=- \[)", _text().partition("\n## References\n")[2].rstrip())[1:]
    values = (_PAPER.fullmatch(" ".join(item.split())) for item in items)
    listed = (
        Source(key, authors, title, int(year), venue or "preprint", eprint or "", version or "")
        for key, authors, title, venue, year, eprint, version in (match.groups() for match in values if match)
    )
    return {paper.key: paper for paper in listed}


def source(key: str) -> Source:
    """The source that pages cite by a key."""
    return papers()[key]


def section(name: str) -> str:
    """The words below a heading of docs/theory.md: "Conventions", or the letter of statements with its colon."""
    return re.split(r"\n#{2,3} ", _text().partition(f"\n## {name}")[2], maxsplit=1)[0].partition("\n")[2].strip()


@cache
def glossary() -> dict[str, str]:
    """The words of docs/glossary.md, each with what it means."""
    parts = re.split(r"^### (.*)\n", _text("glossary.md"), flags=re.MULTILINE)
    return {word: text.partition("\n## ")[0].strip() for word, text in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def page(name: str = "theory.md") -> dict[str, Entry]:
    """The entries of a page of docs/."""
    return parse(_text(name))
