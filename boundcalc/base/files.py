"""Files that people write and others send: read within a limit, and read strictly.

A key given twice, NaN, Infinity and numbers beyond every float are all taken without a word by the standard library:
one of two values is dropped, or a number appears that no file contains. Nothing that is given may be ignored.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Never

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.validate import shown

MOST = 8_000_000
"""Bytes of a text that is read: a document takes up to forty times as much memory."""
_MOST_SLOW = 500_000
"""Bytes of YAML and TOML that are read: their libraries take seconds for as much."""
_SLOW = (".yaml", ".yml", ".toml")
SUFFIXES = (".json", *_SLOW)


def read_text(
    path: str | Path, what: str = "", error: type[BoundcalcError] = InvalidSetting, *, most: int = MOST, more: str = ""
) -> str:
    """The text of a file, without a byte-order mark.

    Args:
        path: of a file, a device or a pipe. A file that cannot be opened is an `OSError`.
        what: it is ("the sweep file", "--norms"), for messages.
        error: raised for what is no UTF-8, what is longer than `most` bytes, and a named pipe without a writer.
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
            raise error(f"cannot read {name}: this pipe has no writer")
        data = bytearray(first or b"")
        while len(data) <= most and (part := file.read(most + 1 - len(data))):
            data += part
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


# -- JSON, YAML, TOML


def parse_json(text: str, where: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON text; `where` it is from names it in messages.

    Raises:
        error: the text is not JSON, has a key twice in one object, or a number that is not finite.
    """
    import json

    def refuse(why: str) -> Never:
        raise error(f"{where} {why}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in pairs:
            if key in out:
                refuse(f"gives the key {shown(key)} twice in one object: remove one of them")
            out[key] = value
        return out

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            refuse(f"holds the number {shown(digits)}, which is beyond every float: give a finite one")
        return value

    def constant(word: str) -> Never:
        refuse(f"holds {word}, which is no number of JSON: give a finite one")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant, parse_float=finite)
    except BoundcalcError:
        raise
    except RecursionError:
        raise error(f"{where} is not JSON that can be read: it is nested too deep") from None
    except ValueError as wrong:  # a malformed text, or a whole number of thousands of digits
        raise error(f"{where} is not JSON: {wrong}") from None


def read_json(path: str | Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a JSON file; `what` it is ("--norms") names it in errors. A missing file is an `OSError`."""
    return parse_json(read_text(path, what, error), str(path), error)


def read_document(path: Path, what: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a .yaml, .toml or (any other ending) JSON file; a missing file is an `OSError`."""
    most = _MOST_SLOW if path.suffix.lower() in _SLOW else MOST
    return parse_document(path, read_text(path, what, error, most=most), error)


def parse_document(path: Path, text: str, error: type[BoundcalcError] = InvalidSetting) -> Any:
    """The value of a text in the format that the ending of `path` names; raises `error` where it is none."""
    suffix = path.suffix.lower()
    if suffix not in _SLOW:
        return parse_json(text, str(path), error)
    try:
        if suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        import yaml  # type: ignore[import-not-found, import-untyped]

        return yaml.safe_load(text)
    except ModuleNotFoundError:
        raise error(f"{path} is YAML, which needs PyYAML: pip install pyyaml, or write it as JSON") from None
    except RecursionError:
        raise error(f"{path} cannot be read: it is nested too deep") from None
    except Exception as wrong:  # each library has its own
        kind = "TOML" if suffix == ".toml" else "YAML"
        raise error(f"{path} is not {kind}: {' '.join(str(wrong).split())}") from None


def assignments(words: Iterable[str], option: str) -> dict[str, Any]:
    """Words like "lr=0.01" of a repeated option: the values are JSON where they are, else text.

    A name is given once.
    """
    import json

    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidSetting(f"{option} takes NAME=VALUE, got {word!r}")
        if name in values:
            raise InvalidSetting(f"{option} sets {name!r} twice")
        try:
            json.loads(text)
        except ValueError:
            values[name] = text
        else:
            values[name] = parse_json(text, f"{option} {name}")
    return values


# -- tables


def read_table(path: str | Path) -> list[list[str]]:
    """The rows of a CSV file, cells stripped, empty rows left out; the first names the columns, each once."""
    import csv
    import io

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
