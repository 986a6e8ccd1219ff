"""Rows as a table, for prompts and terminals: the first row names the columns."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from itertools import zip_longest

_NARROW = 10
"""Characters that a column keeps, whatever the room."""


def as_text(rows: Sequence[Sequence[str]], room: int | None = None, gap: int = 2) -> str:
    """A table of plain text, with a rule under its first line; cells are wrapped where the room is too small."""
    head, *body = laid_out(rows, room, gap)
    return "\n".join([head, "-" * width_of([head, *body]), *body])


def width_of(texts: Sequence[str]) -> int:
    """Characters of the longest line of some texts."""
    return max(len(line) for text in texts for line in text.split("\n"))


def laid_out(
    rows: Sequence[Sequence[str]], room: int | None = None, gap: int = 2, right: Collection[int] = ()
) -> list[str]:
    """Every row as a text, of several lines where cells are wrapped; the columns `right` are aligned to the right.

    Columns are as wide as their cells, or narrowed, the widest first, until a line fits the room; no word is cut.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    longest = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    while room is not None and sum(widths) + gap * (len(widths) - 1) > room:
        wide = [i for i in range(len(widths)) if widths[i] > max(longest[i], _NARROW)]
        if not wide:
            break
        widths[max(wide, key=lambda i: widths[i])] -= 1
    return [_folded(row, widths, right, gap) for row in rows]


def _folded(cells: Sequence[str], widths: Sequence[int], right: Collection[int], gap: int) -> str:
    """One row, whose cells are wrapped to the widths."""
    parts = [
        [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines: list[str] = []
    for line in zip_longest(*parts, fillvalue=""):
        padded = [part.rjust(widths[i]) if i in right else part.ljust(widths[i]) for i, part in enumerate(line)]
        lines.append((" " * gap).join(padded).rstrip())
    return "\n".join(lines)
