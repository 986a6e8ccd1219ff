"""Examples of any length each, from arrays and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting

Array = NDArray[Any]

INPUTS = ("x", "input_ids", "tokens", "sequence", "pixel_values", "inputs", "features", "image", "rows")
LABELS = ("y", "label", "labels", "target", "targets", "answer", "class")
MASKS = ("mask", "attention_mask")
"""Names that examples are looked for under, in dictionaries and in columns."""


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
        if any(not sequence.shape[0] for sequence in self.x):
            raise InvalidSetting("a sequence has no rows")
        if any(not np.isfinite(sequence).all() for sequence in self.x):
            raise InvalidSetting("the sequences hold NaN or Inf")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "tokens" if self.tokens else ("reals", "rows", "images")[self.x[0].ndim - 1]
        shapes = sorted({x.shape for x in self.x})
        size = f"{list(shapes[0])}" + (f" to {list(shapes[-1])}" if len(shapes) > 1 else "")
        return f"Sequences({len(self)} of {kind} {size}, labels {self.y.min()} to {self.y.max()})"

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
        lengths = [sequence.shape[0] for sequence in self.x]
        length = max(set(lengths), key=lengths.count)
        return np.stack([sequence for sequence in self.x if sequence.shape[0] == length][:n])

    @property
    def arrays(self) -> tuple[Array, Array]:
        """All sequences as one array; refused where their lengths differ."""
        if len({sequence.shape for sequence in self.x}) > 1:
            raise InvalidSetting("sequences of several lengths are no array: this method needs sequences of one length")
        return np.stack(list(self.x)), self.y


def _real(x: Array) -> bool:
    """Whether an example is a vector of reals: tokens are whole numbers."""
    return x.ndim == 1 and x.dtype.kind not in "iu"


def as_array(value: Any) -> Array:
    """A tensor or anything else as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def _of_words(y: Array) -> tuple[Array, tuple[str, ...]]:
    """Labels that are words, numbered in alphabetical order; others as they are."""
    words = y.dtype.kind in "OU" and all(isinstance(label, str) and label.strip() for label in y.ravel())
    if not words or y.ndim != 1:
        return y, ()
    names, numbers = np.unique(np.array([label.strip() for label in y]), return_inverse=True)
    return numbers, tuple(map(str, names))


def _labels(value: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if (
        isinstance(value, list) and len({np.shape(as_array(label)) for label in value}) > 1
    ):  # one a row, of ragged sequences
        longest = max(np.size(as_array(label)) for label in value)
        value = np.array(
            [[-1] * (longest - np.size(as_array(label))) + list(as_array(label).ravel()) for label in value]
        )
    y = as_array(value)
    if y.dtype == object and any(label is None for label in y.ravel()):
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


def of_arrays(x: Any, y: Any, mask: Any = None) -> Sequences:
    """Sequences and labels, a mask perhaps, whatever they are kept in."""
    y, words = (
        _of_words(as_array(y)) if not isinstance(y, list) or all(isinstance(part, str) for part in y) else (y, ())
    )
    labels, notes = _labels(y)
    if words:
        notes = (
            *notes,
            "labels are numbered alphabetically: " + ", ".join(f"{word} {at}" for at, word in enumerate(words)),
        )
    if isinstance(x, list | tuple) or (hasattr(x, "dtype") and as_array(x).dtype == object):
        rows = [as_array(row) for row in x]
        if any(map(_real, rows)):  # 5 among 4.9 and 5.1 is no token
            rows = [row.astype(np.float64) if row.ndim == 1 and row.dtype.kind in "iu" else row for row in rows]
    else:
        whole = as_array(x)
        if whole.ndim not in (2, 3, 4):
            raise InvalidSetting(
                "x is (n, T) tokens, (n, d) reals, (n, T, d) rows or (n, channels, height, width) images; got "
                f"{whole.shape}"
            )
        rows = list(whole)
    if mask is not None:
        rows = _unpadded(rows, [as_array(part) for part in mask])
        if len({len(part) for part in rows}) > 1:
            notes = (*notes, "padding is cut off: the model sees each sequence by itself")
    return Sequences(rows, labels, notes, words)


def _unpadded(rows: Sequence[Array], mask: Sequence[Array]) -> list[Array]:
    if len(rows) != len(mask):
        raise InvalidSetting(f"{len(rows)} sequences, but {len(mask)} masks")
    cut: list[Array] = []
    for row, seen in zip(rows, mask, strict=True):
        if len(row) != len(seen):
            raise InvalidSetting(f"a mask of {len(seen)} entries for a sequence of {len(row)} rows")
        places = np.flatnonzero(seen)
        if not len(places) or places[-1] - places[0] + 1 != len(places):
            raise InvalidSetting("a mask hides rows inside of a sequence, or all: padding lies before or after it")
        cut.append(row[places[0] : places[-1] + 1])
    return cut


def of_fields(fields: Mapping[str, Any], where: str, groups: str | None = None) -> Sequences:
    """Sequences and labels by their names, and the column of groups."""
    splits = [name for name, value in fields.items() if hasattr(value, "column_names")]
    if splits:
        raise InvalidSetting(
            f"{where} holds datasets by name ({', '.join(map(str, splits))}): give one of them, such as "
            f"data[{splits[0]!r}]"
        )
    keys = [next((name for name in names if name in fields), None) for names in (INPUTS, LABELS, MASKS)]
    for key, what, names in zip(keys, ("sequences", "labels"), (INPUTS, LABELS), strict=False):
        if key is None:
            hint = ": tokenise its text first" if what == "sequences" and "text" in fields else ""
            raise InvalidSetting(
                f"{where} has no {what}{hint}: it has {', '.join(map(str, fields))}; need one of {', '.join(names)}"
            )
    x, y, mask = (None if key is None else fields[key] for key in keys)
    examples = of_arrays(x, y, mask)
    rest = [str(name) for name in fields if name not in (*keys, groups)]
    notes = (*examples.notes, f"not read: {', '.join(rest)}") if rest else examples.notes
    return replace(examples, groups=groups_in(fields, where, groups), notes=notes)


def groups_in(fields: Mapping[str, Any], where: str, column: str | None) -> tuple[str, ...] | None:
    """What each example belongs to, by the column that says it."""
    if column is None:
        return None
    if column not in fields:
        raise InvalidSetting(f"{where} has no column {column!r} of groups: it has {', '.join(map(str, fields))}")
    return tuple(str(group).strip() for group in list(fields[column]))


def of_batch(item: Any, groups: str | None = None, *, one: bool = False) -> Sequences:
    """What a loader gives at a time; `one`: one example of a dataset."""
    what = "an example" if one else "a batch"
    if isinstance(item, Mapping):
        return of_fields({name: [value] for name, value in item.items()} if one else item, what, groups)
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        x, y, *mask = item
        return of_arrays([x], [as_array(y)], [mask[0]] if mask else None) if one else of_arrays(x, y, *mask)
    raise InvalidSetting(f"{what} is (x, y), (x, y, mask) or a dictionary; got {type(item).__name__}")


def together(parts: Iterable[Sequences]) -> Sequences:
    """All parts, in order."""
    parts = list(parts)
    if not parts:
        raise InvalidSetting("there are no examples")
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    if len({part.words for part in parts}) > 1:
        raise InvalidSetting("labels are words, of which batches have different ones: number them 0, 1, ...")
    y = np.concatenate([part.y for part in parts])
    groups = [name for part in parts for name in part.groups or ()]
    return Sequences([x for part in parts for x in part.x], y, tuple(notes), parts[0].words, tuple(groups) or None)
