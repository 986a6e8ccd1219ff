"""Sentences of a document, as a reader counts them: a formula, a name in code or a link's address is one word or
none."""

from __future__ import annotations

import re
from dataclasses import dataclass

LIMIT = 35
_FENCE = re.compile(r"^(```+)(\S*)[^\n]*\n(.*?)^\1\n?", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])[)\"”*_]*\s+(?=[^a-z\s(,;]|\([A-Z]|[a-z]\w*[\d(\\])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|al|vs|resp|Eq|Prop|Thm|Sec|Fig|App|No|approx)\.$")


@dataclass(frozen=True)
class Sentence:
    line: int
    text: str

    @property
    def words(self) -> int:
        return len([word for word in self.text.split() if re.search(r"\w", word)])


def _formula(found: re.Match[str]) -> str:
    """A displayed formula as one word, in as many lines; a full stop at its end ends the sentence."""
    lines = "\n" * found[0].count("\n")
    if found[2] != "math":
        return "\n" + lines  # code ends a paragraph
    return ("FORMULA." if found[3].rstrip().endswith(".") else "FORMULA") + lines


def plain(text: str) -> str:
    """The prose of a document in its lines: formulas and code as words, links as what they show."""
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = _FENCE.sub(_formula, text)
    for pattern, word in ((r"\$\$.+?\$\$", "FORMULA"), (r"\$[^$]+\$", "FORMULA"), (r"``.+?``|`[^`]+`", "CODE")):
        text = re.sub(pattern, lambda m, word=word: word + "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"^FORMULA(?=\n\s*\n[A-Z])", "FORMULA.", text, flags=re.MULTILINE)  # a new paragraph, a new sentence
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", lambda m: "\n" * m[0].count("\n"), text)
    return re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Paragraphs with the line each begins in; list items, headings and cells of tables are paragraphs of their own."""
    parts: list[tuple[int, str]] = []
    start, words = 0, list[str]()
    lines = plain(text).splitlines()
    for number, line in enumerate([*lines, ""], 1):
        blank = not line.strip() and not _goes_on(lines, number)
        new = line.startswith(("#", "|", ">")) or _ITEM.match(line)
        if (blank or new) and words:
            parts.append((start, " ".join(words)))
            words = []
        if line.startswith("|"):
            parts += [(number, cell) for cell in line.strip("|").split("|")]
        elif line.startswith("#"):
            parts.append((number, line.lstrip("# ")))
        elif line.strip():
            start = start if words else number
            words.append(_ITEM.sub("", line).strip())
    return parts


def _goes_on(lines: list[str], number: int) -> bool:
    """Whether the blank line of this number stands beside a displayed formula, which does not end a sentence."""
    before = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    after = next((line for line in lines[number:] if line.strip()), "")
    return any(line in ("FORMULA", "FORMULA.") for line in (before, after))


def sentences(text: str) -> list[Sentence]:
    """Every sentence with the line where its paragraph begins."""
    found: list[Sentence] = []
    for line, paragraph in paragraphs(text):
        start = 0
        for end in [*(m.start() for m in _END.finditer(paragraph)), len(paragraph)]:
            part = paragraph[start:end].strip()
            if _ABBREVIATED.search(part) and end < len(paragraph):
                continue
            if part:
                found.append(Sentence(line, part))
            start = end
    return found


def long_sentences(text: str, limit: int = LIMIT) -> list[Sentence]:
    return [sentence for sentence in sentences(text) if sentence.words > limit]
