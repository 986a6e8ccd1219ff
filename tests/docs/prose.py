"""Sentences of a document, as a reader counts them: a formula or a name in code is one word, a link what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

LIMIT = 35
_DISPLAYED = re.compile(r"\s*^ *```math\n.*?(\.?)\s*^ *```\s*(?=(.?))", re.DOTALL | re.MULTILINE)
_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$")
_END = re.compile(r"(?<=[.!?])[)\"”*_]*\s+(?=[^a-z\s(,;]|\([A-Z]|[a-z]\w*[\d(\\*])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|al|vs|resp|Eq|Prop|Thm|Sec|Fig|App|No|approx)\.$")
_SHOWN = {"code_inline": "CODE", "softbreak": " ", "hardbreak": " ", "strong_open": "*", "em_open": "*"}


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs; list items, headings and cells of tables are paragraphs of their own.

    A displayed formula belongs to the sentence before it, which goes on behind it in small letters.
    """
    joined = _DISPLAYED.sub(lambda m: " FORMULA " if re.match(r"[a-z$(]", m[1] or m[2]) else " FORMULA.\n\n", text)
    for token in MarkdownIt("commonmark").enable("table").parse(joined):
        if token.type == "inline":
            parts = (c.content if c.type == "text" else _SHOWN.get(c.type, "") for c in token.children or ())
            yield _FORMULA.sub("FORMULA", "".join(parts))


def sentences(text: str) -> Iterator[str]:
    """Every sentence."""
    for paragraph in paragraphs(text):
        start = 0
        for end in [*(m.start() for m in _END.finditer(paragraph)), len(paragraph)]:
            part = paragraph[start:end].strip()
            if end == len(paragraph) or not _ABBREVIATED.search(part):
                yield part
                start = end


def long_sentences(text: str, limit: int = LIMIT) -> list[str]:
    """Sentences of more words than the limit."""
    return [part for part in sentences(text) if len(re.findall(r"\S*\w\S*", part)) > limit]
