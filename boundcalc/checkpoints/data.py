"""A user's own examples: from arrays, files, torch and Hugging Face datasets, or a loader of batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name, load_name, plain_digits, read_table
from boundcalc.base.npz import digest_of_arrays, read_arrays
from boundcalc.base.output import reading

Array = NDArray[Any]

_INPUTS = ("x", "input_ids", "tokens", "sequence", "pixel_values", "inputs", "features", "image", "rows")
_TEXTS = ("text", "sentence", "document", "review", "prompt", "question")
"""Columns that hold text as a rule, so that the refusal says which line holds some."""
_LABELS = ("y", "label", "labels", "target", "targets", "answer", "class")
_MASKS = ("mask", "attention_mask")
_FILES = (
    ".npz with x and y, .csv, .parquet, or FILE.py:NAME (arrays, a dataset, a loader, or a function that returns one)"
)

READS = "the model reads the columns "
"""How the note on the columns of a table of features begins."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Examples: tokens (T,), reals (d,), rows (T, d) or an image (channels, height, width) each, and a label each.

    Attributes:
        x: the sequences, without padding.
        y: labels 0, 1, ...
        notes: what was read otherwise than as it stands.
        words: of labels 0, 1, ... where they were words.
        groups: what each example belongs to, where a column says it.
    """

    x: Sequence[Array]
    y: NDArray[np.int64]
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not len(self.y):
            raise InvalidSetting(f"need as many sequences as labels, and at least one: {len(self.x)} and {len(self.y)}")
        kinds = {(x.ndim, x.shape[-1] if x.ndim == 2 or _real(x) else 0, x.dtype.kind in "iu") for x in self.x}
        if len(kinds) != 1 or self.x[0].ndim not in (1, 2, 3) or self.x[0].dtype.kind not in "iufb":
            raise InvalidSetting(
                "examples are tokens (T,), reals (d,) of one width, rows (T, d) of one width, or images (channels, "
                "height, width)"
            )
        if any(not sequence.shape[0] or not np.isfinite(sequence).all() for sequence in self.x):
            raise InvalidSetting("a sequence has no rows, or NaN or Inf in them")

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: Any) -> Sequences:
        """Some of them, in this order."""
        groups = None if self.groups is None else tuple(self.groups[int(i)] for i in places)
        return replace(self, x=[self.x[int(i)] for i in places], y=self.y[np.asarray(places)], groups=groups)

    @property
    def sha256(self) -> str:
        """Names them and their order by every bit; of one shape, as the same arrays in a file are named."""
        if len({x.shape for x in self.x}) == 1:
            return digest_of_arrays({"x": np.stack(list(self.x)), "y": self.y})
        return digest_of_arrays({"y": self.y} | {f"x{i}": x for i, x in enumerate(self.x)})

    @property
    def tokens(self) -> bool:
        """Whether the sequences are tokens."""
        return self.x[0].ndim == 1 and not _real(self.x[0])

    @property
    def longest(self) -> int:
        """Rows of the longest sequence; of images 0, which are cut into rows by the model."""
        return 0 if self.x[0].ndim == 3 else max(map(len, self.x))

    def batches(self, most: int = 256) -> Iterator[tuple[Array, Array]]:
        """Places and stacked sequences, such of one length together."""
        lengths = np.array([sequence.shape[0] for sequence in self.x])
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            for start in range(0, len(places), most):
                part = places[start : start + most]
                yield part, np.stack([self.x[i] for i in part])

    def first(self, n: int) -> Array:
        """Up to n sequences of one length, the commonest: a batch to try a model on."""
        return max(self.batches(len(self)), key=lambda batch: len(batch[0]))[1][:n]

    @property
    def arrays(self) -> tuple[Array, Array]:
        """All sequences as one array; refused where their lengths differ."""
        if len({sequence.shape for sequence in self.x}) > 1:
            raise InvalidSetting("sequences of several lengths are no array: this method needs sequences of one length")
        return np.stack(list(self.x)), self.y


def _real(x: Array) -> bool:
    """Whether an example is a vector of reals: tokens are whole numbers."""
    return x.ndim == 1 and x.dtype.kind not in "iu"


def sequences(source: Any, groups: str | None = None) -> Sequences:
    """Examples from whatever holds them; `groups` is the column that says what each belongs to."""
    if isinstance(source, Sequences):
        return source
    where = f"the {type(source).__name__}"
    if isinstance(source, str | Path):
        where = str(source)
        if is_name(where):
            value = load_name(where)
            makes = callable(value) and not hasattr(value, "__getitem__") and not hasattr(value, "__iter__")
            return sequences(value() if makes else value, groups)
        source = _read_file(Path(source))
    if isinstance(getattr(source, "column_names", None), list) and hasattr(source, "__len__"):
        shown = (getattr(source, "format", None) or {}).get("columns", source.column_names)
        source = source.with_format(None, columns=shown)[:]  # plain lists, of the columns that set_format shows
    if isinstance(source, tuple | list) and len(source) in (2, 3) and all(hasattr(a, "shape") for a in source):
        source = _fields(source)
    if isinstance(source, Mapping):
        return _of_columns(source, where, groups)
    if hasattr(source, "shape") or not (hasattr(source, "__getitem__") or hasattr(source, "__iter__")):
        raise InvalidSetting(
            f"examples are a file ({_FILES}), arrays (x, y) or (x, y, mask), a dictionary, a torch DataLoader or "
            f"Dataset, or a Hugging Face dataset; got {type(source).__name__}"
        )
    data: Any = source
    batched = hasattr(data, "dataset") and not hasattr(data, "__getitem__")  # a Subset has a dataset, too
    counted = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    columns: dict[str, list[Any]] = {}
    for item in map(_fields, (data[i] for i in range(len(data))) if counted else data):
        for name, value in item.items():
            columns.setdefault(name, []).extend(value if batched else [value])
    examples = _of_columns(columns, where, groups)
    if batched and hasattr(data.dataset, "__len__") and len(examples) != len(data.dataset):
        raise InvalidSetting(
            f"the loader gives {len(examples)} of {len(data.dataset)} examples: bounds are about all of them; "
            "drop_last=False, and no sampler that leaves some out"
        )
    return examples


def _fields(item: Any) -> Mapping[str, Any]:
    """What a loader or a dataset gives at a time, by names."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return dict(zip(("x", "y", "mask"), item, strict=False))
    raise InvalidSetting(f"an example, or a batch, is (x, y), (x, y, mask) or a dictionary; got {type(item).__name__}")


def _read_file(path: Path) -> Any:
    """The columns of a file, by its ending."""
    reading(path, "data")
    if not path.is_file() or path.suffix not in (".npz", ".csv", ".parquet"):
        raise InvalidSetting(f"{path} is no file of examples: need {_FILES}")
    if path.suffix != ".npz":
        return read_columns(path)
    return {name: array for name, array in read_arrays(path).items() if name != "made_by"}  # this package's own mark


def read_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a CSV (text) or Parquet file by their names."""
    if path.suffix == ".parquet":
        try:
            from pyarrow import ArrowException, parquet
        except ModuleNotFoundError:
            raise InvalidSetting(f"reading {path} needs pyarrow: pip install pyarrow") from None
        try:
            return parquet.read_table(path).to_pydict()
        except (ArrowException, OSError) as error:
            raise InvalidSetting(f"{path} is not a Parquet file: {' '.join(str(error).split())[:100]}") from None
    try:
        rows = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read {path}: {error.strerror or error}") from None
    if len(rows) < 2 or all(_number(cell) is not None for cell in rows[0]):
        raise InvalidSetting(f"{path} needs a first line of names, such as x,y, and a line for each example")
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}


def _of_columns(columns: Mapping[str, Any], where: str, groups: str | None) -> Sequences:
    """A column of sequences, or columns of numbers; one of labels, perhaps one of masks and one of groups."""
    if splits := [str(name) for name, value in columns.items() if hasattr(value, "column_names")]:
        raise InvalidSetting(
            f"{where} holds datasets by name ({', '.join(splits)}): give one of them, such as data[{splits[0]!r}]"
        )
    named, label, mask = (
        next((name for name in names if name in columns), "") for names in ((*_INPUTS, *_TEXTS), _LABELS, _MASKS)
    )
    rest = [name for name in columns if name not in (named, label, mask, groups)]
    for name, what, names in ((label, "labels", _LABELS), (named or rest, "sequences", _INPUTS)):
        if not name:
            raise InvalidSetting(f"{where} has no {what}: it has {', '.join(columns)}; need one of {', '.join(names)}")
    if groups is not None and groups not in columns:
        raise InvalidSetting(f"{where} has no column {groups!r} of groups: it has {', '.join(columns)}")

    def cells(name: str, read: Callable[[Any], Any]) -> list[Any]:
        values: list[Any] = []
        for line, cell in enumerate(columns[name], 2):
            try:
                values.append(read(cell))
            except ValueError as error:
                raise InvalidSetting(f"{where}, line {line}, column {name!r}: {str(cell)[:40]!r} {error}") from None
        return values

    y, notes, words = _labels(columns[label], lambda: cells(label, _cell))
    if not named:
        rows = list(np.array([cells(name, lambda cell: float(_cell(cell))) for name in rest]).T)
        notes.append(f"{READS}{', '.join(rest)}, in this order")
    else:
        rows = cells(named, _sequence)
        notes += [f"not read: {', '.join(rest)}"] if rest else []
    if any(map(_real, rows)):  # 5 among 4.9 and 5.1 is no token
        rows = [row.astype(np.float64) if row.ndim == 1 else row for row in rows]
    if mask:
        rows = _unpadded(rows, cells(mask, _sequence))
        notes += ["padding is cut off: the model sees each sequence by itself"] if len(set(map(len, rows))) > 1 else []
    names = None if groups is None else tuple(str(group).strip() for group in columns[groups])
    return Sequences(rows, y, tuple(notes), words, names)


_TRUTH = {"true": 1, "false": 0}


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(plain_digits(text))
        except ValueError:
            continue
    return None


def _cell(value: Any) -> Any:
    """A number, or the number that a text stands for."""
    if isinstance(value, str):
        word = value.strip().lower()
        value = _TRUTH.get(word, _number(word))
        value = int(value) if isinstance(value, float) and value.is_integer() and "." not in word else value
    if value is None or np.asarray(value).dtype.kind not in "iufb":
        raise ValueError("where a number should be")
    return value


def _sequence(value: Any) -> Array:
    """An array, a list, or text: "[3, 1, 4]", "3 1 4" or "[[0.5, 1], [2, 3]]"."""
    if isinstance(value, str):
        text = value.strip()
        numbers = None if text.startswith("[") else [_number(word) for word in re.split(r"[\s,;]+", text)]
        if numbers is not None and None in numbers:
            raise ValueError(
                "where a sequence of numbers should be; text is tokenised first, as the model was trained: 3 1 4 are "
                "tokenizer(text)['input_ids']"
            )
        value = json.loads(text) if numbers is None else numbers
    array = _as_array(value)
    if array.dtype.kind not in "iufb" or not array.size:
        raise ValueError("where a sequence of numbers should be")
    return array


def _as_array(value: Any) -> Array:
    """A tensor or anything else as an array."""
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _labels(column: Any, numbers: Callable[[], list[Any]]) -> tuple[NDArray[np.int64], list[str], tuple[str, ...]]:
    """Labels 0, 1, ..., what to say of them, and the words that they were; `numbers` of the cells that are text."""
    labels = [_as_array(label) for label in column]
    if any(label.dtype == object and label.size and label.ravel()[0] is None for label in labels):
        raise InvalidSetting("an example has no label (None): leave such examples out")
    texts = [str(label).strip() for label in labels] if all(label.dtype.kind == "U" for label in labels) else [""]
    if all(text and _number(text) is None and text.lower() not in _TRUTH for text in texts):
        words, places = np.unique(texts, return_inverse=True)
        note = ", ".join(f"{word} {at}" for at, word in enumerate(words))
        return places, [f"labels are numbered alphabetically: {note}"], tuple(map(str, words))
    if any(label.size != 1 for label in labels):
        raise InvalidSetting(f"labels are whole numbers or truth values, one a sequence; got {labels[0].shape} each")
    y = np.array([np.asarray(number).ravel()[0] for number in numbers()])
    if y.dtype.kind not in "iubf" or (y != np.floor(y)).any():
        raise InvalidSetting(f"labels are whole numbers 0, 1, ... or truth values, one a sequence; got {y.dtype}")
    y = y.astype(np.int64)
    values = set(y.tolist())
    if values == {-1}:
        raise InvalidSetting("all labels are -1, as in datasets without any: give a split with labels")
    if -1 in values and values <= {-1, 1}:
        return (y + 1) // 2, ["labels -1 and 1 are read as 0 and 1"], ()
    if min(values, default=0) < 0:
        raise InvalidSetting(f"labels are 0, 1, ...; got {min(values)}")
    return y, [], ()


def _unpadded(rows: Sequence[Array], mask: Sequence[Array]) -> list[Array]:
    """The rows that the mask shows, which lie in one piece."""
    if [len(row) for row in rows] != [len(seen) for seen in mask]:
        raise InvalidSetting("need a mask for each sequence, with an entry for each of its rows")
    cut: list[Array] = []
    for row, seen in zip(rows, mask, strict=True):
        places = np.flatnonzero(seen)
        if not len(places) or places[-1] - places[0] + 1 != len(places):
            raise InvalidSetting("a mask hides rows inside of a sequence, or all: padding lies before or after it")
        cut.append(row[places[0] : places[-1] + 1])
    return cut
