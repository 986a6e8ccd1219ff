"""Tables and paragraphs as plain aligned text; the best row is bold on a terminal, and no number is ever cut off."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import Console

_PARAGRAPH = 100
"""Characters of a line of text."""
_WIDE = 200
_GAP = "   "


class Line(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    style: Literal["bold", "dim", ""] = ""


def wrapped(words: Iterable[str], *, first: str = "", width: int | None = None, skip: int = 0) -> list[str]:
    """Words (without the first `skip`) put into lines, the later ones indented as far as the first."""
    if width is None:
        width = (
            min(_PARAGRAPH, os.get_terminal_size(sys.stdout.fileno()).columns or _PARAGRAPH)
            if sys.stdout.isatty()
            else _PARAGRAPH
        )
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
    """Columns under a rule; `right` are aligned to the right, `droppable` are left out where the terminal is too narrow."""
    kept = list(range(len(headings)))

    def measure() -> list[int]:
        rows = [headings, *(line.cells for line in lines)]
        return [max(len(row[i]) for row in rows if i < len(row)) for i in kept]

    room = os.get_terminal_size(sys.stdout.fileno()).columns if droppable and sys.stdout.isatty() else 10**6
    for name in droppable:
        if sum(measure()) + len(_GAP) * (len(kept) - 1) > room > 0 and name in headings:
            kept.remove(list(headings).index(name))
    widths = measure()
    right = frozenset(kept.index(i) for i in right if i in kept)
    headings = [headings[i] for i in kept]
    lines = [line._replace(cells=[line.cells[i] for i in kept if i < len(line.cells)]) for line in lines]

    def aligned(cells: Sequence[str]) -> str:
        padded = [c.rjust(widths[i]) if i in right else c.ljust(widths[i]) for i, c in enumerate(cells)]
        return _GAP.join(padded).rstrip()

    click.echo(aligned(headings))
    click.echo("-" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    for line in lines:
        text = aligned(line.cells)
        click.echo(click.style(text, **{line.style: True}) if line.style else text)


def bar(share: float) -> str:
    """A share of a whole as a bar of at most ten characters, to an eighth of one."""
    eighths = round(80 * min(max(share, 0.0), 1.0))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def console(**options: Any) -> Console:
    """A rich console that prints words as they are; as wide as needed where there is no terminal."""
    from rich.console import Console

    found = Console(markup=False, highlight=False, emoji=False, soft_wrap=False, **options)
    if not found.is_terminal:
        found.width = max(_WIDE, found.width)
    return found
