"""Text files, read within a limit: a file that somebody sends must not fill the memory of this machine."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

from boundcalc.base.errors import BoundcalcError, InvalidSetting

MOST = 8_000_000
"""Bytes of a text that is read: a document takes up to forty times as much memory."""


def read_text(
    path: str | Path, what: str = "", error: type[BoundcalcError] = InvalidSetting, *, most: int = MOST, more: str = ""
) -> str:
    """The text of a file, without a byte-order mark.

    Args:
        path: of a file, a device or a pipe. A file that cannot be opened is an `OSError`.
        what: it is ("the sweep file", "--norms"), for messages.
        error: raised for what is no UTF-8, what is longer than `most` bytes, and a named pipe that nobody writes to.
        most: bytes that are read.
        more: what to do with more than that.
    """
    name = f"{what} {path}".strip()
    pipe = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(pipe, "rb", buffering=0) as file:
        try:
            first = file.read(1)
        finally:
            os.set_blocking(pipe, True)
        if first == b"" and Path(path).is_fifo():
            raise error(f"cannot read {name}: nobody writes to this pipe")
        parts = [first or b""]
        left = most
        while left > 0 and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    data = b"".join(parts)
    if len(data) > most:
        raise error(
            f"{name} has more than {most:,} bytes, which is the most that is read of a text{more and ': '}{more}"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"cannot read {name}: it is not text") from None


def plain_digits(text: str) -> str:
    """The text of a number; a `ValueError` if it is written in digits of another script, which Python would take."""
    if not text.isascii():
        raise ValueError(f"{text!r} is no number in the digits 0 to 9")
    return text


def read_table(path: str | Path) -> list[list[str]]:
    """The rows of a CSV file, cells stripped, empty rows left out; the first names the columns, each once."""
    text = read_text(path, more="write larger data as .npz")
    try:
        cells = ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline="")))
        rows = [row for row in cells if any(row)]
    except csv.Error as error:
        raise InvalidSetting(f"{path} is no CSV: {error}") from None
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InvalidSetting(f"{path}: line {line} has {len(row)} cells, the first has {len(rows[0])}")
    twice = next((name for i, name in enumerate(rows[0]) if name in rows[0][:i]), None) if rows else None
    if twice is not None:
        raise InvalidSetting(f"{path} has two columns {twice!r}: leave one out")
    return rows
