"""Tables and paragraphs as plain aligned text; the best row is bold on a terminal, and no number is ever cut off."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Sequence

import click

from boundcalc.base.table import fitted, folded

_PARAGRAPH = 100
"""Most characters of a line of text."""
_PIPED = 80
"""Characters of a line of text in a pipe."""
_GAP = 3
_LABEL = re.compile(r" *(?:[\w|()%.-]+(?: [\w-]+)?:? {2,})?")


def room() -> int | None:
    """Characters of a line: COLUMNS, or what the terminal has; None in a pipe, where lines may be of any length."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return (os.get_terminal_size(sys.stdout.fileno()).columns or None) if sys.stdout.isatty() else None


def reading_width() -> int:
    """Characters of a line of prose."""
    return min(_PARAGRAPH, room() or _PIPED)


def _filled(line: str, label: int, hang: int) -> str:
    """A line in lines of prose, the later ones below the text that follows its label; `hang` columns further."""
    width = reading_width()
    wrapper = textwrap.TextWrapper(width, " " * label, " " * (label + hang), break_long_words=False)
    wrapper.break_on_hyphens = False
    return (line[:label] + wrapper.fill(line[label:])[label:]).rstrip().replace("\xa0", " ")


def say(text: str = "", *, hang: int = 0) -> None:
    """Print lines of prose, or of a label, two spaces and prose; spaces that may not be broken are no-break spaces."""
    for line in text.split("\n"):
        match = _LABEL.match(line)
        click.echo(_filled(line, match.end() if match and match.end() <= reading_width() // 2 else 0, hang))


def write_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    droppable: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> None:
    """Columns under a rule; `right` are aligned to the right, `styles` (bold, dim or "") are of the rows.

    Where the terminal is too narrow, columns stand closer, `droppable` ones go, wide cells are wrapped.
    """
    kept, width, gap = list(range(len(headings))), room(), _GAP
    filled = [list(headings), *([*row, *[""] * (len(headings) - len(row))] for row in rows)]

    def too_wide() -> bool:
        total = sum(max(len(row[i]) for row in filled) for i in kept) + gap * (len(kept) - 1)
        return width is not None and total > width

    gap -= too_wide()
    for name in droppable:
        if name in headings and too_wide():
            kept.remove(list(headings).index(name))
    right = frozenset(kept.index(i) for i in right if i in kept)
    filled = [[row[i] for i in kept] for row in filled]
    widths = fitted(filled, width, gap)
    head, *body = ("\n".join(folded(row, widths, right, gap)) for row in filled)
    click.echo(head + "\n" + "-" * (sum(widths) + gap * (len(widths) - 1)))
    for i, text in enumerate(body):
        click.echo(click.style(text, **{styles[i]: True}) if styles and styles[i] else text)


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
    words = _filled(f"{sign} {text}", len(sign) + 1, 0)
    click.echo(click.style(sign, fg="green" if ok else "red") + words[len(sign) :])
