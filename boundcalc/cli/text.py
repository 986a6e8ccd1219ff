"""Tables and paragraphs as plain aligned text, no number ever cut off; progress by rich on a terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

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


def _filled(line: str, label: int) -> str:
    """A line in lines of prose, the later ones below the text that follows its label."""
    wrapper = textwrap.TextWrapper(reading_width(), " " * label, " " * label, break_long_words=False)
    wrapper.break_on_hyphens = False
    return (line[:label] + wrapper.fill(line[label:])[label:]).rstrip().replace("\xa0", " ")


def say(text: str = "") -> None:
    """Print lines of prose, or of a label, two spaces and prose; spaces that may not be broken are no-break spaces."""
    for line in text.split("\n"):
        match = _LABEL.match(line)
        click.echo(_filled(line, match.end() if match and match.end() <= reading_width() // 2 else 0))


def write_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    styles: Sequence[str] = (),
) -> None:
    """Columns under a rule; `right` are aligned to the right, `styles` (bold, dim or "") are of the rows.

    Where the terminal is too narrow, columns stand closer, and wide cells are wrapped.
    """
    filled = [list(headings), *([*row, *[""] * (len(headings) - len(row))] for row in rows)]
    width, gap = room(), _GAP
    widths = fitted(filled, None)
    if width is not None and sum(widths) + gap * (len(widths) - 1) > width:
        gap -= 1
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
    words = _filled(f"{sign} {text}", len(sign) + 1)
    click.echo(click.style(sign, fg="green" if ok else "red") + words[len(sign) :])


# -- progress on stderr


class Live:
    """Shows the newest state, on a terminal in one line that goes at the end.

    Elsewhere each is a line, at most one in `every` seconds, or nothing if `quiet`.
    """

    def __init__(self, every: float = 0.0, *, quiet: bool = False) -> None:
        self.every, self.quiet, self.last, self.status = every, quiet, -every, None
        if sys.stderr.isatty():
            from rich.console import Console

            self.status = Console(stderr=True).status("")

    def show(self, text: str, *, final: bool = False) -> None:
        """Show the newest."""
        if self.status is not None:
            from rich.markup import escape

            self.status.start()
            self.status.update(escape(text))
        elif not self.quiet and (final or time.monotonic() - self.last >= self.every):
            self.last = time.monotonic()
            click.echo(text, err=True)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self.status is not None:
            self.status.stop()


def counted(points: Iterable[Any], total: int) -> Iterator[Any]:
    """The points of a grid, counted on a terminal."""
    with Live(quiet=True) as live:
        for done, point in enumerate(points):
            live.show(f"{done} of {total} points")
            yield point


@contextmanager
def trials_counted() -> Iterator[Callable[[str, int, int], None]]:
    """What shows how many trials or certificates a store has."""
    with Live(every=10.0) as live:
        yield lambda what, done, total: live.show(f"{done} of {total} {what} are in the store", final=done == total)
