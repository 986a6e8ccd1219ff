"""Tables and paragraphs as plain aligned text; the best row is bold on a terminal, and no number is ever cut off."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import click

from boundcalc.base.table import fitted, folded

_PARAGRAPH = 100
"""Most characters of a line of text."""
_PIPED = 80
"""Characters of a line of text in a pipe."""
_GAP = 3


class Line(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    style: Literal["bold", "dim", ""] = ""


def room() -> int | None:
    """Characters of a line: COLUMNS, or what the terminal has; None in a pipe, where lines may be of any length."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return (os.get_terminal_size(sys.stdout.fileno()).columns or None) if sys.stdout.isatty() else None


def reading_width() -> int:
    """Characters of a line of prose."""
    return min(_PARAGRAPH, room() or _PIPED)


def say(text: str = "") -> None:
    """Print lines; one that does not fit the terminal is wrapped, and goes on below its own text."""
    width = room()
    for line in text.split("\n"):
        if width is None or len(line) <= width:
            click.echo(line)
            continue
        label = re.match(r" *(?:[\w|()%.-]+(?: [\w-]+)?:? {2,})?", line)
        start = 0 if label is None or label.end() > width // 2 else label.end()
        words = textwrap.fill(
            line[start:].strip(), width - start, break_long_words=False, break_on_hyphens=False
        ).splitlines()
        click.echo("\n".join([line[:start] + words[0], *(" " * start + more for more in words[1:])]))


def wrapped(words: Iterable[str], *, first: str = "", width: int | None = None, skip: int = 0) -> list[str]:
    """Words (without the first `skip`) put into lines, the later ones indented as far as the first."""
    width = reading_width() if width is None else width
    lines = [first]
    for word in list(words)[skip:]:
        if len(lines[-1]) + len(word) > width and lines[-1].strip():
            lines.append(" " * len(first))
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]


def write_table(
    headings: Sequence[str],
    lines: Sequence[Line],
    *,
    right: frozenset[int] = frozenset(),
    droppable: Sequence[str] = (),
) -> None:
    """Columns under a rule; `right` are aligned to the right.

    Where the terminal is too narrow, columns stand closer, `droppable` ones go, wide cells are wrapped.
    """
    kept, width, gap = list(range(len(headings))), room(), _GAP
    rows = [list(headings), *([*line.cells, *[""] * (len(headings) - len(line.cells))] for line in lines)]

    def total() -> int:
        return sum(max(len(row[i]) for row in rows) for i in kept) + gap * (len(kept) - 1)

    if width is not None and total() > width:
        gap -= 1
    for name in droppable:
        if width is not None and total() > width and name in headings:
            kept.remove(list(headings).index(name))
    right = frozenset(kept.index(i) for i in right if i in kept)
    head, *body = [[row[i] for i in kept] for row in rows]
    widths = fitted([head, *body], width, gap)
    click.echo("\n".join(folded(head, widths, right, gap)))
    click.echo("-" * (sum(widths) + gap * (len(widths) - 1)))
    for line, cells in zip(lines, body, strict=True):
        text = "\n".join(folded(cells, widths, right, gap))
        click.echo(click.style(text, **{line.style: True}) if line.style else text)


def mark(ok: bool) -> str:
    """A tick or a cross; a word where the output cannot show them."""
    sign, word = ("✓", "ok") if ok else ("✗", "fail")
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return word
    return sign


def say_checked(ok: bool, text: str) -> None:
    """The outcome of a check, behind its mark; green or red on a terminal."""
    sign = mark(ok)
    first, *rest = wrapped(text.split(), first=f"{sign} ")
    click.echo("\n".join([click.style(sign, fg="green" if ok else "red") + first[len(sign) :], *rest]))


def bar(share: float) -> str:
    """A share of a whole as a bar of at most ten characters, to an eighth of one."""
    eighths = round(80 * min(max(share, 0.0), 1.0))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
