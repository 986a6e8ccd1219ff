"""Rows as a table, for prompts and notebooks: the first row names the columns."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_html(rows: Sequence[Sequence[str]]) -> str:
    """A table of HTML."""
    head, *body = ["".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in _tagged(rows)]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"


def _tagged(rows: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    return [("td" if number else "th", row) for number, row in enumerate(rows)]
