"""Files that people write and others send: read within a limit, and read strictly.

A key given twice, NaN, Infinity and numbers beyond every float are all taken without a word by the standard library:
one of two values is dropped, or a number appears that no file contains. Nothing that is given may be ignored.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.validate import shown

MOST = 8_000_000
"""Bytes of a text that is read: a document takes up to forty times as much memory."""


def read_text(
    path: str | Path, what: str = "", error: type[BoundcalcError] = InvalidSetting, *, most: int = MOST, more: str = ""
) -> str:
    """The text of a file, without a byte-order mark; a file that cannot be opened is an `OSError`.

    Args:
        path: of a file, a device or a pipe.
        what: it is ("the sweep file", "--norms"), for messages.
        error: raised for what is no UTF-8, what is longer than `most` bytes, and a named pipe without a writer.
        most: bytes that are read.
        more: what to do with more than that.
    """
    name = f"{what} {path}".strip()
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as raw, io.BufferedReader(raw) as file:
        first = raw.read(1)
        if first == b"" and Path(path).is_fifo():
            raise error(f"cannot read {name}: this pipe has no writer")
        os.set_blocking(descriptor, True)
        data = (first or b"") + file.read(most)
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


# -- JSON


def parse_json(text: str, where: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON text; `where` it is from names it in messages.

    Raises:
        error: the text is not JSON, has a key twice in one object, or a number that is not finite.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise error(f"{where} gives the key {shown(twice)} twice in one object: remove one of them")
        return values

    def finite(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise error(f"{where} holds {shown(digits)}, which is beyond every float: give a finite number")
        return value

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=finite, parse_float=finite)
    except BoundcalcError:
        raise
    except RecursionError:
        raise error(f"{where} is not JSON that can be read: it is nested too deep") from None
    except ValueError as wrong:  # a malformed text, or a whole number of thousands of digits
        raise error(f"{where} is not JSON: {wrong}") from None


def read_json(path: str | Path, what: str = "", error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON file; `what` it is ("--norms") names it in errors. A missing file is an `OSError`."""
    return parse_json(read_text(path, what, error), str(path), error)


# -- tables


def read_table(path: str | Path) -> list[list[str]]:
    """The rows of a CSV file, cells stripped, empty rows left out; the first names the columns, each once."""
    import csv

    text = read_text(path, more="write larger data as .npz")
    try:
        cells = ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline="")))
        rows = [row for row in cells if any(row)]
    except csv.Error as error:
        raise InvalidSetting(f"{path} is no CSV: {error}") from None
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InvalidSetting(f"{path}: line {line} has {len(row)} cells, the first has {len(rows[0])}")
    for name, count in Counter(rows[0] if rows else ()).items():
        if count > 1:
            raise InvalidSetting(f"{path} has two columns {name!r}: leave one out")
    return rows


# -- Python files


def is_name(word: object) -> bool:
    """Whether a word such as "mine.py:bound" names something in a Python file."""
    file, _, name = word.rpartition(":") if isinstance(word, str) else ("", "", "")
    return file.endswith(".py") and name.isidentifier()


def load_name(word: str) -> Any:
    """What "mine.py:bound" stands for. The file is executed; what lies next to it can be imported by it."""
    from importlib.util import module_from_spec, spec_from_file_location

    if not is_name(word):
        raise InvalidSetting(f"need a Python file and a name in it, such as mine.py:bound; got {word!r}")
    file, _, name = word.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InvalidSetting(f"there is no file {file}, in which {name!r} was to be found")
    spec: Any = spec_from_file_location(f"boundcalc_user_{path.stem}", path)
    sys.modules[spec.name] = module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
        return getattr(module, name)
    except Exception as error:
        raise InvalidSetting(f"{file} does not give {name!r}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
