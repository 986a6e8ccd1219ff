"""Examples from .npz, .csv and .parquet files, and datasets that were saved as folders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import plain_arrays
from boundcalc.base.output import reading
from boundcalc.base.texts import plain_digits, read_table
from boundcalc.checkpoints.examples import INPUTS, LABELS, MASKS, Array, Sequences, of_arrays, of_fields

FILES = (
    ".npz with x and y, .csv, .parquet, a folder of a dataset's save_to_disk, or what a name in a Python file holds or gives "
    "(data.py:train)"
)


def saved_dataset(path: Path) -> Any | None:
    """The dataset that Hugging Face's library saved as a folder; None where a path is none."""
    reading(path, "data")
    if not (path / "dataset_info.json").is_file() and not (path / "dataset_dict.json").is_file():
        return None
    try:
        from datasets import load_from_disk
    except ModuleNotFoundError:
        raise InvalidSetting(
            f"reading the folder {path} needs the library that wrote it: pip install datasets, or write it as .parquet"
        ) from None
    return load_from_disk(str(path))


def examples_in(path: Path) -> Sequences:
    """What a file holds, by its ending."""
    if not path.is_file():
        raise InvalidSetting(f"there is no file {path}: need {FILES}")
    if path.suffix == ".npz":
        ours = {"made_by"}  # how this package marks what it writes
        with plain_arrays(path) as file:
            fields = {name: file[name] for name in file.files if name not in ours}
        return of_fields(fields, str(path))
    if path.suffix == ".csv":
        return _columns(_csv(path), str(path))
    if path.suffix == ".parquet":
        return _columns(_parquet(path), str(path))
    raise InvalidSetting(f"{path} has no known ending: need {FILES}")


def _csv(path: Path) -> dict[str, list[Any]]:
    try:
        rows = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read {path}: {error}") from None
    if len(rows) < 2 or all(_number(cell) is not None for cell in rows[0]):
        raise InvalidSetting(f"{path} needs a first line of names, such as x,y, and a line for each example")
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}


def _parquet(path: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise InvalidSetting(
            f"reading {path} needs pyarrow: pip install pyarrow, or write it as .csv or .npz"
        ) from None
    try:
        return parquet.read_table(path).to_pydict()
    except (ArrowException, OSError) as error:
        raise InvalidSetting(f"{path} is not a Parquet file: {' '.join(str(error).split())[:100]}") from None


def _columns(table: Mapping[str, list[Any]], where: str) -> Sequences:
    """One column of sequences, or one column for every token, or for every entry of a row (x0_0, x0_1, ..., x1_0, ...)."""
    label = next((name for name in LABELS if name in table), None)
    if label is None:
        raise InvalidSetting(f"{where} has no labels: it has {', '.join(table)}; need one of {', '.join(LABELS)}")
    named = next((name for name in INPUTS if name in table), None)
    mask = next((name for name in MASKS if name in table), None)
    y = [_cell(value, where) for value in table[label]]
    if named is not None:
        seen = None if mask is None else [_sequence(value, where) for value in table[mask]]
        known = {label, named, mask}
        _all_read(table, known, where)
        return of_arrays([_sequence(value, where) for value in table[named]], y, seen)
    names = [name for name in table if name not in (label, mask)]
    numbered = [re.fullmatch(r"\D*(\d+)[_.,](\d+)\D*", name) for name in names]
    if names and all(numbered):
        places = [(int(m[1]), int(m[2])) for m in numbered if m]
        rows, width = max(t for t, _ in places) + 1, max(j for _, j in places) + 1
        if len(set(places)) != rows * width:
            raise InvalidSetting(
                f"{where}: columns name {len(places)} of {rows} x {width} entries of a sequence of rows"
            )
        x = np.empty((len(y), rows, width))
        for name, (t, j) in zip(names, places, strict=True):
            x[:, t, j] = [_cell(value, where) for value in table[name]]
        return of_arrays(x, y)
    cells = [[table[name][i] for name in names] for i in range(len(y))]
    tokens = [[_cell(value, where) for value in row if value not in ("", None)] for row in cells]
    if any(not isinstance(value, int) for row in tokens for value in row):
        raise InvalidSetting(
            f"{where}: columns {', '.join(names[:3])}, ... hold reals: say which row and entry each is (x0_0, x0_1, ...), or "
            "write one column x of lists"
        )
    return of_arrays([np.array(row, dtype=np.int64) for row in tokens], y)


def _all_read(table: Mapping[str, Any], known: set[str | None], where: str) -> None:
    rest = [name for name in table if name not in known]
    if rest:
        raise InvalidSetting(f"{where} has a column {rest[0]!r} that nothing reads: leave it out")


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(plain_digits(text))
        except ValueError:
            continue
    return None


def _cell(value: Any, where: str) -> int | float:
    if isinstance(value, str):
        word = value.strip().lower()
        found = {"true": 1, "false": 0}.get(word, _number(word))
    else:
        found = int(value) if isinstance(value, bool) else value
    if not isinstance(found, int | float):
        raise InvalidSetting(f"{where} holds {value!r} where a number should be")
    return (
        int(found)
        if isinstance(found, float) and found.is_integer() and isinstance(value, str) and "." not in value
        else found
    )


def _sequence(value: Any, where: str) -> Array:
    """A list, or text: "[3, 1, 4]", "3 1 4" or "[[0.5, 1], [2, 3]]"."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text) if text.startswith("[") else [_cell(w, where) for w in re.split(r"[\s,;]+", text)]
        except ValueError:
            raise InvalidSetting(f"{where} holds {value[:40]!r} where a sequence should be, such as 3 1 4") from None
    found = np.asarray(value)
    if found.dtype.kind not in "iufb" or not found.size:
        raise InvalidSetting(f"{where} holds {str(value)[:40]!r} where a sequence of numbers should be")
    return found
