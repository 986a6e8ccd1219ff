"""A user's own examples: from arrays, files, torch and Hugging Face datasets, or a loader of batches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import plain_digits, read_table
from boundcalc.base.load import is_name, load_name
from boundcalc.base.npz import plain_arrays
from boundcalc.base.output import reading
from boundcalc.checkpoints.examples import (
    INPUTS,
    LABELS,
    MASKS,
    Array,
    Sequences,
    groups_in,
    of_arrays,
    of_batch,
    of_fields,
    together,
)

FILES = (
    ".npz with x and y, .csv, .parquet, a folder of a dataset's save_to_disk, or FILE.py:NAME (arrays, a dataset, a "
    "loader, or a function that returns one)"
)

READS = "the model reads the columns "
"""How the note on the columns of a table of features begins."""
_FORMS = (
    f"a file ({FILES}), arrays (x, y) or (x, y, mask), a dictionary, a torch DataLoader or Dataset, or a Hugging Face "
    "dataset"
)


def sequences(source: Any, groups: str | None = None) -> Sequences:
    """Examples from whatever holds them; `groups` is the column that says what each belongs to."""
    read = _sequences(source, groups)
    if groups is not None and read.groups is None:
        raise InvalidSetting(f"examples of {type(source).__name__} have no columns: no {groups!r} says their groups")
    return read


def _sequences(source: Any, groups: str | None) -> Sequences:
    if isinstance(source, Sequences):
        return source
    if isinstance(source, str | Path):
        if is_name(str(source)):
            return _named_in_python(str(source), groups)
        saved = _saved_dataset(Path(source))
        return _examples_in(Path(source), groups) if saved is None else sequences(saved, groups)
    if isinstance(source, Mapping):
        return of_fields(source, "the dictionary", groups)
    if isinstance(source, tuple | list) and len(source) in (2, 3) and all(hasattr(a, "shape") for a in source):
        return together([of_arrays(*source)])
    columns = getattr(source, "column_names", None)
    if isinstance(columns, list) and hasattr(source, "__len__"):
        return of_fields(
            {name: list(table[name]) for table in [_plain(source)] for name in _columns_shown(source)},
            "the dataset",
            groups,
        )
    if hasattr(source, "dataset") and hasattr(source, "__iter__"):
        examples = together(of_batch(batch, groups) for batch in source)
        whole: Any = getattr(source, "dataset", None)
        size = len(whole) if hasattr(whole, "__len__") else len(examples)
        if len(examples) != size:
            raise InvalidSetting(
                f"the loader gives {len(examples)} of {size} examples: bounds are about all of them; drop_last=False, "
                "and no sampler that leaves some out"
            )
        return examples
    if not hasattr(source, "shape") and (hasattr(source, "__getitem__") or hasattr(source, "__iter__")):
        places = hasattr(source, "__getitem__") and hasattr(source, "__len__")  # else it is read from front to back
        items = (source[i] for i in range(len(source))) if places else source
        return together(of_batch(item, groups, one=True) for item in items)
    raise InvalidSetting(f"examples are {_FORMS}; got {type(source).__name__}")


def _named_in_python(word: str, groups: str | None) -> Sequences:
    """What a name in a Python file stands for: examples, or a function that gives them."""
    value = load_name(word)
    if callable(value) and not hasattr(value, "__getitem__") and not hasattr(value, "__iter__"):
        value = value()
    return sequences(value, groups)


def _columns_shown(source: Any) -> list[str]:
    """The columns of a Hugging Face dataset; of one with chosen columns (set_format), these."""
    chosen = getattr(source, "format", None)
    return list(chosen["columns"] if isinstance(chosen, Mapping) and "columns" in chosen else source.column_names)


def _plain(source: Any) -> Any:
    """The dataset without the format (tensors, frames, arrow) in which set_format shows its columns."""
    return source.with_format(None) if hasattr(source, "with_format") else source


def _saved_dataset(path: Path) -> Any | None:
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


def _examples_in(path: Path, groups: str | None) -> Sequences:
    """What a file holds, by its ending."""
    if not path.is_file():
        raise InvalidSetting(f"there is no file {path}: need {FILES}")
    if path.suffix == ".npz":
        ours = {"made_by"}  # how this package marks what it writes
        with plain_arrays(path) as file:
            fields = {name: file[name] for name in file.files if name not in ours}
        return of_fields(fields, str(path), groups)
    if path.suffix in (".csv", ".parquet"):
        return _columns(read_columns(path), str(path), groups)
    raise InvalidSetting(f"{path} has no known ending: need {FILES}")


def read_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a CSV (text) or Parquet file by their names."""
    if path.suffix == ".parquet":
        return _parquet(path)
    try:
        rows = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read {path}: {error.strerror or error}") from None
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


def _columns(table: Mapping[str, list[Any]], where: str, groups: str | None) -> Sequences:
    """A column of sequences, or columns of numbers; one of labels, perhaps one of masks and one of groups."""
    label, named, mask = (
        next((name for name in names if name in table), None) for names in (LABELS, (*INPUTS, *_TEXTS), MASKS)
    )
    if label is None:
        raise InvalidSetting(f"{where} has no labels: it has {', '.join(table)}; need one of {', '.join(LABELS)}")
    of_group = groups_in(table, where, groups)
    rest = [name for name in table if name not in (label, named, mask, groups)]
    if rest and (named or mask):
        raise InvalidSetting(f"{where} has a column {rest[0]!r} that nothing reads: leave it out")
    if named is None and not rest:
        raise InvalidSetting(f"{where} has no sequences: need one of {', '.join(INPUTS)}, or columns of numbers")
    x, seen = (
        [_sequence(cell, f"{where}, line {at}", name) for at, cell in _cells(table, name)] for name in (named, mask)
    )
    if named is None:
        columns = [
            [float(_cell(cell, f"{where}, line {at}", name)) for at, cell in _cells(table, name)] for name in rest
        ]
        x = list(np.array(columns).T)
    y: list[Any] = [cell.strip() for cell in table[label] if isinstance(cell, str)]
    if not y or not all(word and _number(word) is None and word.lower() not in _TRUTH for word in y):
        y = [_cell(cell, f"{where}, line {at}", label) for at, cell in _cells(table, label)]
    sequences = replace(of_arrays(x, y, seen or None), groups=of_group)
    read = (f"{READS}{', '.join(rest)}, in this order",) if named is None else ()
    return replace(sequences, notes=(*sequences.notes, *read))


_TEXTS = ("text", "sentence", "document", "review", "prompt", "question")
"""Columns that hold text as a rule, so that the refusal says which line holds some."""
_TRUTH = {"true": 1, "false": 0}


def _cells(table: Mapping[str, list[Any]], name: str | None) -> Iterator[tuple[int, Any]]:
    """The cells of a column, with their lines in the file."""
    return enumerate(table[name], 2) if name else iter(())


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(plain_digits(text))
        except ValueError:
            continue
    return None


def _cell(value: Any, where: str, column: str) -> int | float:
    if isinstance(value, str):
        word = value.strip().lower()
        number = _TRUTH.get(word, _number(word))
    else:
        number = int(value) if isinstance(value, bool) else value
    if not isinstance(number, int | float):
        raise InvalidSetting(f"{where}, column {column!r}: {str(value)[:40]!r} where a number should be")
    whole = isinstance(number, float) and number.is_integer() and isinstance(value, str) and "." not in value
    return int(number) if whole else number


_TOKENISE = "text is tokenised first, as the model was trained: 3 1 4 are tokenizer(text)['input_ids']"


def _sequence(value: Any, where: str, column: str | None) -> Array:
    """A list, or text: "[3, 1, 4]", "3 1 4" or "[[0.5, 1], [2, 3]]"."""
    place = f"{where}, column {column!r}"
    if isinstance(value, str):
        text = value.strip()
        if not text.startswith("[") and any(_number(word) is None for word in re.split(r"[\s,;]+", text)):
            raise InvalidSetting(f"{place}: {text[:40]!r} where a sequence of numbers should be; {_TOKENISE}")
        try:
            value = json.loads(text) if text.startswith("[") else [_number(word) for word in re.split(r"[\s,;]+", text)]
        except ValueError:
            raise InvalidSetting(f"{place}: {text[:40]!r} where a sequence should be, such as 3 1 4") from None
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" or not array.size:
        raise InvalidSetting(f"{place}: {str(value)[:40]!r} where a sequence of numbers should be")
    return array
