"""Tables and paragraphs as plain aligned text, no number ever cut off; progress by rich on a terminal."""

from __future__ import annotations

import csv
import math
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

import click

from boundcalc.base.table import laid_out, width_of

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
    rows: Iterable[Sequence[str]], *, right: Collection[int] = frozenset(), styles: Sequence[str] = ()
) -> None:
    """Rows under the first, which names the columns; `right` are columns aligned to the right.

    `styles` (bold, dim or "") are of the rows. Where the terminal is too narrow, columns stand closer, and wide cells
    are wrapped.
    """
    first, *rest = rows
    filled = [first, *([*row, *[""] * (len(first) - len(row))] for row in rest)]
    texts, width = laid_out(filled, None, _GAP, right), room()
    if width is not None and width_of(texts) > width:
        texts = laid_out(filled, width, _GAP - 1, right)
    click.echo(texts[0] + "\n" + "-" * width_of(texts))
    for text, style in zip_longest(texts[1:], styles, fillvalue=""):
        click.echo(click.style(text, **{style: True}) if style else text)


def start_csv(columns: Iterable[str]) -> csv.DictWriter[str]:
    """What writes rows as CSV to stdout, below their heading; floats in full."""
    writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n")
    writer.writeheader()
    return writer


def say_checked(text: str) -> None:
    """What was checked, behind a tick that is green on a terminal."""
    click.echo(click.style("✓", fg="green") + _filled(f"✓ {text}", 2)[1:])


@contextmanager
def progress(every: float = math.inf) -> Iterator[Callable[[str], None]]:
    """What shows the newest state on stderr: on a terminal in one line that goes at the end.

    Elsewhere a line at most once in `every` seconds; of work without such a number, nothing.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(escape(text))
        return
    last = -math.inf

    def show(text: str) -> None:
        nonlocal last
        if every < math.inf and time.monotonic() - last >= every:
            last = time.monotonic()
            click.echo(text, err=True)

    yield show
