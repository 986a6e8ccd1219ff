"""A user's own examples, of any length each: from arrays, files, torch and Hugging Face datasets, or a loader of batches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import is_name, load_name
from boundcalc.base.output import reading

_Array = NDArray[Any]

_INPUTS = ("x", "input_ids", "tokens", "sequence", "pixel_values", "inputs", "features", "image", "rows")
_LABELS = ("y", "label", "labels", "target", "targets", "answer", "class")
MASKS = ("mask", "attention_mask")
"""Names that examples are looked for under, in dictionaries and in columns."""
_FILES = (
    ".npz with x and y, .csv, .parquet, a folder of a dataset's save_to_disk, or what a name in a Python file holds or gives "
    "(data.py:train)"
)
_FORMS = (
    f"a file ({_FILES}), arrays (x, y) or (x, y, mask), a dictionary, a torch DataLoader or Dataset, or a Hugging Face "
    "dataset"
)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Examples: tokens (T,), rows (T, d) or an image (channels, height, width) each, and a label each.

    Attributes:
        x: the sequences, without padding.
        y: labels 0, 1, ...
        notes: what was read otherwise than as it stands.
    """

    x: Sequence[_Array]
    y: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not len(self.y):
            raise InvalidSetting(f"need as many sequences as labels, and at least one: {len(self.x)} and {len(self.y)}")
        kinds = {(each.ndim, each.shape[1:] if each.ndim == 2 else (), each.dtype.kind in "iu") for each in self.x}
        if len(kinds) != 1 or self.x[0].ndim not in (1, 2, 3):
            raise InvalidSetting(
                "sequences are tokens (T,), rows (T, d) of one width, or images (channels, height, width)"
            )
        if self.x[0].ndim == 1 and self.x[0].dtype.kind not in "iu":
            raise InvalidSetting("a sequence of numbers (T,) holds tokens 0, 1, ...: reals need rows (T, d)")
        if any(not each.shape[0] for each in self.x):
            raise InvalidSetting("a sequence has no rows")
        if any(not np.isfinite(each).all() for each in self.x):
            raise InvalidSetting("the sequences hold NaN or Inf")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "tokens" if self.tokens else "rows" if self.longest else "images"
        shapes = sorted({x.shape for x in self.x})
        size = f"{list(shapes[0])}" + (f" to {list(shapes[-1])}" if len(shapes) > 1 else "")
        return f"Sequences({len(self)} of {kind} {size}, labels {self.y.min()} to {self.y.max()})"

    @property
    def tokens(self) -> bool:
        """Whether the sequences are tokens."""
        return self.x[0].ndim == 1

    @property
    def longest(self) -> int:
        """Rows of the longest sequence; of images 0, which are cut into rows by the model."""
        return 0 if self.x[0].ndim == 3 else max(map(len, self.x))

    def batches(self, most: int = 256) -> Iterator[tuple[_Array, _Array]]:
        """Places and stacked sequences, such of one length together."""
        lengths = np.array([each.shape[0] for each in self.x])
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            for start in range(0, len(places), most):
                part = places[start : start + most]
                yield part, np.stack([self.x[i] for i in part])

    def first(self, n: int) -> _Array:
        """Up to n sequences of one length, the commonest: a batch to try a model on."""
        lengths = [each.shape[0] for each in self.x]
        length = max(set(lengths), key=lengths.count)
        return np.stack([each for each in self.x if each.shape[0] == length][:n])

    @property
    def arrays(self) -> tuple[_Array, _Array]:
        """All sequences as one array; refused where their lengths differ."""
        if len({each.shape for each in self.x}) > 1:
            raise InvalidSetting("sequences of several lengths are no array: this method needs sequences of one length")
        return np.stack(list(self.x)), self.y


def sequences(source: Any) -> Sequences:
    """Examples from whatever holds them."""
    if isinstance(source, Sequences):
        return source
    if isinstance(source, str | Path):
        return _named_in_python(str(source)) if is_name(str(source)) else _file(Path(source))
    if isinstance(source, Mapping):
        return _of_fields(source, "the dictionary")
    if isinstance(source, tuple | list) and len(source) in (2, 3) and all(hasattr(a, "shape") for a in source):
        return _together([_chunk(*source)])
    columns = getattr(source, "column_names", None)
    if isinstance(columns, list) and hasattr(source, "__len__"):
        return _of_fields(
            {name: list(table[name]) for table in [_plain(source)] for name in _shown(source)}, "the dataset"
        )
    if hasattr(source, "dataset") and hasattr(source, "__iter__"):
        found = _together(_batch(each) for each in source)
        whole: Any = getattr(source, "dataset", None)
        size = len(whole) if hasattr(whole, "__len__") else len(found)
        if len(found) != size:
            raise InvalidSetting(
                f"the loader gives {len(found)} of {size} examples: bounds are about all of them; drop_last=False, and no "
                "sampler that leaves some out"
            )
        return found
    if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not hasattr(source, "shape"):
        return _together(_single(source[i]) for i in range(len(source)))
    if hasattr(source, "__iter__") and not hasattr(source, "shape"):  # datasets that are read from front to back alone
        return _together(map(_single, source))
    raise InvalidSetting(f"examples are {_FORMS}; got {type(source).__name__}")


def _named_in_python(word: str) -> Sequences:
    """What a name in a Python file stands for: examples, or a function that gives them."""
    found = load_name(word)
    if callable(found) and not hasattr(found, "__getitem__") and not hasattr(found, "__iter__"):
        found = found()
    return sequences(found)


def _shown(source: Any) -> list[str]:
    """The columns of a Hugging Face dataset; of one that was told which to show (set_format), these."""
    chosen = getattr(source, "format", None)
    return list(chosen["columns"] if isinstance(chosen, Mapping) and "columns" in chosen else source.column_names)


def _plain(source: Any) -> Any:
    """The dataset without its clothes: what set_format makes of columns (tensors, frames, arrow) is how they are shown."""
    return source.with_format(None) if hasattr(source, "with_format") else source


# -- from arrays


def _array(value: Any) -> _Array:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def _labels(value: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if (
        isinstance(value, list) and len({np.shape(_array(each)) for each in value}) > 1
    ):  # one a row, of ragged sequences
        longest = max(np.size(_array(each)) for each in value)
        value = np.array([[-1] * (longest - np.size(_array(each))) + list(_array(each).ravel()) for each in value])
    y = _array(value)
    if y.dtype == object and any(each is None for each in y.ravel()):
        raise InvalidSetting("an example has no label (None): leave such examples out")
    notes: tuple[str, ...] = ()
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and y.dtype.kind in "iu":
        notes = ("an answer for every row: the last one of each sequence is what is certified",)
        y = np.array([row[row >= 0][-1] if (row >= 0).any() else -1 for row in y])
    if y.dtype.kind == "f" and y.size and (y == np.round(y)).all():
        y = y.astype(np.int64)
    if y.ndim != 1 or y.dtype.kind not in "iub":
        raise InvalidSetting(
            f"labels are whole numbers 0, 1, ... or truth values, one a sequence; got {y.dtype} {y.shape}"
        )
    y = y.astype(np.int64)
    if y.size and y.max() == -1:
        raise InvalidSetting(
            "all labels are -1, which is how datasets say that they have none: give a split with labels"
        )
    if y.size and y.min() == -1 and set(np.unique(y)) <= {-1, 1}:
        return (y + 1) // 2, (*notes, "labels -1 and 1 are read as 0 and 1")
    if y.size and y.min() < 0:
        raise InvalidSetting(f"labels are 0, 1, ...; got {y.min()}")
    return y, notes


def _chunk(x: Any, y: Any, mask: Any = None) -> Sequences:
    labels, notes = _labels(y)
    if isinstance(x, list | tuple) or (hasattr(x, "dtype") and _array(x).dtype == object):
        rows = [_array(each) for each in x]
    else:
        whole = _array(x)
        if whole.ndim not in (2, 3, 4):
            raise InvalidSetting(
                f"x is (n, T) tokens, (n, T, d) rows or (n, channels, height, width) images; got {whole.shape}"
            )
        rows = list(whole)
    if mask is not None:
        rows = _unpadded(rows, [_array(each) for each in mask])
        if len({len(each) for each in rows}) > 1:
            notes = (*notes, "padding is cut off: the model sees each sequence by itself")
    return Sequences(rows, labels, notes)


def _unpadded(rows: Sequence[_Array], mask: Sequence[_Array]) -> list[_Array]:
    if len(rows) != len(mask):
        raise InvalidSetting(f"{len(rows)} sequences, but {len(mask)} masks")
    found: list[_Array] = []
    for row, seen in zip(rows, mask, strict=True):
        if len(row) != len(seen):
            raise InvalidSetting(f"a mask of {len(seen)} entries for a sequence of {len(row)} rows")
        places = np.flatnonzero(seen)
        if not len(places) or places[-1] - places[0] + 1 != len(places):
            raise InvalidSetting("a mask hides rows inside of a sequence, or all: padding lies before or after it")
        found.append(row[places[0] : places[-1] + 1])
    return found


def _of_fields(fields: Mapping[str, Any], where: str) -> Sequences:
    splits = [name for name, value in fields.items() if hasattr(value, "column_names")]
    if splits:
        raise InvalidSetting(
            f"{where} holds datasets by name ({', '.join(map(str, splits))}): give one of them, such as data[{splits[0]!r}]"
        )
    keys = [next((name for name in names if name in fields), None) for names in (_INPUTS, _LABELS, MASKS)]
    for key, what, names in zip(keys, ("sequences", "labels"), (_INPUTS, _LABELS), strict=False):
        if key is None:
            hint = ": tokenise its text first" if what == "sequences" and "text" in fields else ""
            raise InvalidSetting(
                f"{where} has no {what}{hint}: it has {', '.join(map(str, fields))}; need one of {', '.join(names)}"
            )
    x, y, mask = (None if key is None else fields[key] for key in keys)
    found = _chunk(x, y, mask)
    rest = [str(name) for name in fields if name not in keys]
    return replace(found, notes=(*found.notes, f"not read: {', '.join(rest)}")) if rest else found


def _batch(item: Any) -> Sequences:
    if isinstance(item, Mapping):
        return _of_fields(item, "a batch")
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return _chunk(*item)
    raise InvalidSetting(f"a batch is (x, y), (x, y, mask) or a dictionary; got {type(item).__name__}")


def _single(item: Any) -> Sequences:
    """One example of a dataset, as a batch of one."""
    if isinstance(item, Mapping):
        return _of_fields({name: [value] for name, value in item.items()}, "an example")
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        x, y, *mask = item
        return _chunk([x], [_array(y)], [mask[0]] if mask else None)
    raise InvalidSetting(f"an example is (x, y), (x, y, mask) or a dictionary; got {type(item).__name__}")


def _together(parts: Iterable[Sequences]) -> Sequences:
    found = list(parts)
    if not found:
        raise InvalidSetting("there are no examples")
    notes = dict.fromkeys(note for part in found for note in part.notes)
    return Sequences([x for part in found for x in part.x], np.concatenate([part.y for part in found]), tuple(notes))


# -- from files


def _file(path: Path) -> Sequences:
    reading(path, "data")
    if (path / "dataset_info.json").is_file() or (path / "dataset_dict.json").is_file():
        try:
            from datasets import load_from_disk
        except ModuleNotFoundError:
            raise InvalidSetting(
                f"reading the folder {path} needs the library that wrote it: pip install datasets, or write it as .parquet"
            ) from None
        return sequences(load_from_disk(str(path)))
    if not path.is_file():
        raise InvalidSetting(f"there is no file {path}: need {_FILES}")
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as file:
                ours = {"made_by"}  # how this package marks what it writes
                return _of_fields({name: file[name] for name in file.files if name not in ours}, str(path))
        except (OSError, ValueError, EOFError) as error:
            if isinstance(error, InvalidSetting):
                raise
            raise InvalidSetting(f"{path} is not an .npz file of plain arrays: {error}") from None
    if path.suffix == ".csv":
        return _columns(_csv(path), str(path))
    if path.suffix == ".parquet":
        return _columns(_parquet(path), str(path))
    raise InvalidSetting(f"{path} has no known ending: need {_FILES}")


def _csv(path: Path) -> dict[str, list[Any]]:
    import csv

    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidSetting(f"cannot read {path}: {error}") from None
    if len(rows) < 2 or all(_number(cell) is not None for cell in rows[0]):
        raise InvalidSetting(f"{path} needs a first line of names, such as x,y, and a line for each example")
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if wrong is not None:
        raise InvalidSetting(f"{path}: line {wrong + 1} has {len(rows[wrong])} cells, the first has {len(rows[0])}")
    return {name.strip(): [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}


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
    label = next((name for name in _LABELS if name in table), None)
    if label is None:
        raise InvalidSetting(f"{where} has no labels: it has {', '.join(table)}; need one of {', '.join(_LABELS)}")
    named = next((name for name in _INPUTS if name in table), None)
    mask = next((name for name in MASKS if name in table), None)
    y = [_cell(value, where) for value in table[label]]
    if named is not None:
        seen = None if mask is None else [_sequence(value, where) for value in table[mask]]
        known = {label, named, mask}
        _all_read(table, known, where)
        return _chunk([_sequence(value, where) for value in table[named]], y, seen)
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
        return _chunk(x, y)
    cells = [[table[name][i] for name in names] for i in range(len(y))]
    tokens = [[_cell(value, where) for value in row if value not in ("", None)] for row in cells]
    if any(not isinstance(value, int) for row in tokens for value in row):
        raise InvalidSetting(
            f"{where}: columns {', '.join(names[:3])}, ... hold reals: say which row and entry each is (x0_0, x0_1, ...), or "
            "write one column x of lists"
        )
    return _chunk([np.array(row, dtype=np.int64) for row in tokens], y)


def _all_read(table: Mapping[str, Any], known: set[str | None], where: str) -> None:
    rest = [name for name in table if name not in known]
    if rest:
        raise InvalidSetting(f"{where} has a column {rest[0]!r} that nothing reads: leave it out")


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
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


def _sequence(value: Any, where: str) -> _Array:
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
