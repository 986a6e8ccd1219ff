"""Plain tables and paragraphs.

`rich` draws trees, progress and tables with long texts. It takes as long to import as the bounds take to compute, so
the tables of bounds are written without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import Console

_Style = Literal["bold", "dim", ""]
_PARAGRAPH = 100
"""Characters of a line of text."""
_WIDE = 200
_GAP = "   "


class Line(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    style: _Style = ""


def terminal_width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    except (OSError, ValueError, AttributeError):
        return None


def wrapped(words: Iterable[str], *, first: str = "", width: int | None = None) -> list[str]:
    """Words put into lines, the later ones indented as far as the first."""
    if width is None:
        width = min(_PARAGRAPH, terminal_width() or _PARAGRAPH)
    lines = [first]
    for word in words:
        if len(lines[-1]) + len(word) > width and lines[-1].strip():
            lines.append(" " * len(first))
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]


def prose(text: str, *, indent: int = 0) -> str:
    """A text for where it is printed: on a terminal too narrow for them, sentences break between words, formulas do not."""
    width = terminal_width()
    if width is None:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= width or (not indent and (line.startswith(" ") or "<=" in line)):
            lines.append(line)
        else:
            lines += wrapped(line[indent:].split(), first=line[:indent], width=width)
    return "\n".join(lines)


def write_table(
    headings: Sequence[str], lines: Sequence[Line], *, keys: int = 1, right: frozenset[int] = frozenset()
) -> None:
    """Aligned columns under a rule; `right` names the columns aligned to the right.

    On a terminal that is too narrow the columns are spread over several tables, each with the first `keys` columns.
    """
    rows = [headings, *(line.cells for line in lines)]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(headings))]
    for i, columns in enumerate(_parts(widths, keys)):
        if i:
            click.echo()
        _write_part(headings, lines, columns, widths, right)


def _parts(widths: Sequence[int], keys: int) -> list[list[int]]:
    """Columns put into tables that fit the terminal."""
    limit = terminal_width()
    first = list(range(keys))
    parts = [list(first)]
    for i in range(keys, len(widths)):
        columns = [*parts[-1], i]
        if limit is not None and len(parts[-1]) > keys and _width(columns, widths) > limit:
            parts.append([*first, i])
        else:
            parts[-1] = columns
    return parts


def _width(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[i] for i in columns) + len(_GAP) * (len(columns) - 1)


def _write_part(
    headings: Sequence[str], lines: Sequence[Line], columns: Sequence[int], widths: Sequence[int], right: frozenset[int]
) -> None:
    def text(cells: Sequence[str]) -> str:
        shown = [(i, cells[i] if i < len(cells) else "") for i in columns]
        return _GAP.join(c.rjust(widths[i]) if i in right else c.ljust(widths[i]) for i, c in shown).rstrip()

    click.echo(text(headings))
    click.echo("-" * _width(columns, widths))
    plain = "NO_COLOR" in os.environ
    for line in lines:
        shown = text(line.cells)
        click.echo(shown if plain or not line.style else click.style(shown, **{line.style: True}))


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
