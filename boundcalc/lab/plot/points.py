"""Measurements of one's own: a CSV with a row per run, or what wandb and TensorBoard export."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from boundcalc.base.confidence import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.texts import plain_digits, read_table
from boundcalc.base.words import hint
from boundcalc.lab.plot.data import Series

_LEVEL = 0.05
"""What an interval may miss."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "m": ("m", "n_train", "train_size", "num_train", "n_samples", "samples", "train_examples"),
    "T": ("t", "seq_len", "context", "block_size", "length"),
    "depth": ("depth", "layers", "n_layers", "n_layer", "num_layers"),
    "C": ("c",),
    "train": ("train", "train_error", "train_err", "training_error", "error_train"),
    "test": ("test", "test_error", "test_err", "val_error", "val_err", "eval_error", "eval_err", "error_test"),
    "train accuracy": ("train_accuracy", "train_acc", "accuracy_train", "acc_train"),
    "test accuracy": (
        *("test_accuracy", "test_acc", "val_accuracy", "val_acc", "eval_accuracy", "eval_acc"),
        *("validation_accuracy", "accuracy_test", "acc_test"),
    ),
    "n_test": ("n_test", "test_size", "num_test", "test_examples", "val_size", "eval_size"),
    "seed": ("seed", "run_seed"),
}
"""What columns are called, in lower case and with _ for any other sign."""
_IN_NAME = re.compile(r"(?:^|[^A-Za-z])(m|n_train|T|seq_len|depth|C|seed)[=_:-]?(\d+(?:\.\d+)?)(?![\d.]*[A-Za-z])")


class Point(NamedTuple):
    """One run: its place on every axis that is known, and its errors."""

    places: Mapping[str, float]
    train: float
    test: float
    n_test: int
    file: str


def read(files: Iterable[str], columns: Mapping[str, str]) -> list[Point]:
    """The runs of some files; `columns` says which column holds what, where its name does not."""
    for name in columns:
        if name not in _NAMES:
            raise InvalidSetting(f"--column has no {name!r}{hint(name, _NAMES)}; it knows {', '.join(_NAMES)}")
    runs: dict[str, dict[str, str]] = {}
    rows: list[tuple[str, dict[str, str]]] = []
    for file in files:
        head, body = _table(Path(file))
        if [word.lower() for word in head[:3]] == ["wall time", "step", "value"]:
            run, tag = _tensorboard(Path(file))
            runs.setdefault(run, {})[tag] = body[-1][2]
        elif any(" - " in word for word in head):
            for run, tag, value in _wandb_lines(head, body):
                runs.setdefault(run, {})[tag] = value
        else:
            rows += [(f"{file}, line {i}", dict(zip(head, row, strict=True))) for i, row in enumerate(body, 2)]
    rows += [(f"run {name}", {**_places_in(name), **values}) for name, values in runs.items()]
    return [_point(where, row, columns) for where, row in rows]


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        lines = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read the points {path}: {error.strerror}") from None
    if len(lines) < 2:
        raise InvalidSetting(f"{path} has no rows: it needs a head such as m,train,test,n_test,seed and a line per run")
    head, *body = lines
    return head, body


def _tensorboard(path: Path) -> tuple[str, str]:
    """The run and the tag of a scalar that TensorBoard exported: run-NAME-tag-TAG.csv; its last value counts."""
    run, tag, name = path.stem.partition("-tag-")
    if not tag:
        raise InvalidSetting(
            f"{path} is a scalar of TensorBoard: leave it the name that it was exported with, run-NAME-tag-TAG.csv, for "
            "NAME says the m of the run (m64_seed0) and TAG what was measured"
        )
    return run.removeprefix("run-"), name


def _wandb_lines(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """(run, tag, last value) of a line plot that wandb exported: columns "NAME - TAG"."""
    for column, word in enumerate(head):
        run, dash, tag = word.rpartition(" - ")
        values = [row[column] for row in body if row[column]]
        if dash and values and not tag.endswith(("__MIN", "__MAX")):
            yield run, tag, values[-1]


def _places_in(name: str) -> dict[str, str]:
    """What the name of a run says: m64_seed0."""
    return {word: value for word, value in _IN_NAME.findall(name)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower().removeprefix("config.").removeprefix("summary.")).strip("_")


def _point(where: str, row: Mapping[str, str], columns: Mapping[str, str]) -> Point:
    found: dict[str, float] = {}
    plain = {_plain(name): name for name in row}
    for what, called in _NAMES.items():
        column = columns.get(what)
        if column is not None and column not in row:
            raise InvalidSetting(
                f"{where}: there is no column {column!r}{hint(column, row)}; there are {', '.join(row)}"
            )
        column = column or next((plain[name] for name in called if name in plain), None)
        if column is not None and row[column] != "":
            found[what] = _number(where, column, row[column])
    for what in ("train", "test"):
        accuracy = found.pop(f"{what} accuracy", None)
        if what not in found and accuracy is not None:
            found[what] = 1 - accuracy
        if what not in found:
            raise InvalidSetting(
                f"{where}: no column holds the {what} error; there are {', '.join(row)}: say which, --column {what}=NAME"
            )
        if not 0 <= found[what] <= 1:
            raise InvalidSetting(
                f"{where}: the {what} error is a share between 0 and 1, got {found[what]:g} (percent? divide by 100)"
            )
    n = found.get("n_test", 0.0)
    if n != int(n) or n < 0:
        raise InvalidSetting(f"{where}: n_test counts examples, got {n:g}")
    places = {name: found[name] for name in ("m", "T", "depth", "C") if name in found}
    return Point(places, found["train"], found["test"], int(n), where)


def _number(where: str, column: str, text: str) -> float:
    try:
        value = float(plain_digits(text))
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise InvalidSetting(f"{where}: {column} is no number: {text!r}")
    return value


def series(points: Sequence[Point], letter: str, quantities: Sequence[str]) -> list[Series]:
    """The mean gap (or, of runs without training error, the mean test error) at every place, with 95% intervals.

    The interval of one run is Clopper and Pearson's; of k runs, the mean of the ends of theirs at level 1 - 0.05/k: it holds
    whether or not they share test examples.
    """
    places: dict[float, list[Point]] = {}
    for point in points:
        if letter not in point.places:
            known = ", ".join(point.places) or "nothing"
            raise InvalidSetting(
                f"{point.file}: no column holds {letter}, which the figure runs over (it has {known}): say which, "
                f"--column {letter}=NAME"
            )
        places.setdefault(point.places[letter], []).append(point)
    found: list[Series] = []
    for quantity in quantities:
        rows = [
            (x, _mean(used, subtract=quantity == "gap"), len(used))
            for x, group in sorted(places.items())
            if (used := group if quantity == "gap" else [point for point in group if point.train == 0])
        ]
        if not rows:
            raise NoSolution("no run has training error 0, of which the risk bound speaks: draw --quantity gap")
        exact = ", 95% interval" if rows[0][1][1] is not None else ""
        found.append(Series.measured("measured", f"measured{exact}", quantity, rows, panel=quantity))
    return found


def _mean(points: Sequence[Point], *, subtract: bool) -> tuple[float, float | None, float | None]:
    train = statistics.fmean(point.train for point in points) if subtract else 0.0
    mean = statistics.fmean(point.test for point in points) - train
    if not all(point.n_test for point in points):
        return mean, None, None
    ends = [_interval(point, _LEVEL / len(points)) for point in points]
    low, high = (statistics.fmean(end) for end in zip(*ends, strict=True))
    return mean, low - train, high - train


def _interval(point: Point, level: float) -> tuple[float, float]:
    """Of one run's risk: exact where its test error is a count over n_test, else (a loss, rounded shares) Hoeffding's."""
    digits = len(f"{point.test:.10f}".rstrip("0").partition(".")[2])
    written = 0.51 * 10.0**-digits  # how far from the share of a count a number of so many digits may lie
    wrong = round(point.test * point.n_test)
    off = abs(wrong / point.n_test - point.test)
    if off < 1e-9 or off <= written < 0.5 / point.n_test:
        return clopper_pearson(wrong, point.n_test, 1 - level)
    return hoeffding(point.test, point.n_test, 1 - level)
