"""Measured runs next to bounds: from the store of trials or from a CSV of your own."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from boundcalc.base.answers import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.files import plain_digits, read_table
from boundcalc.base.validate import hint
from boundcalc.lab.figures.data import Series

_LEVEL = 0.05
"""Share of all runs' intervals that may miss one risk: each gets its part (union bound)."""
_DRAWS = 1000
_NAMES: Mapping[str, tuple[str, ...]] = {
    "m": ("m", "n_train", "train_size", "num_train", "n_samples", "samples", "train_examples"),
    "T": ("t", "seq_len", "context", "block_size", "length"),
    "depth": ("depth", "layers", "n_layers", "n_layer", "num_layers"),
    "C": ("c",),
    "train": ("train", "train_error", "train_err", "training_error", "error_train"),
    "test": ("test", "test_error", "test_err", "val_error", "val_err", "eval_error", "eval_err", "error_test"),
    "train accuracy": ("train_accuracy", "train_acc", "accuracy_train", "acc_train"),
    "test accuracy": ("test_accuracy", "test_acc", "val_accuracy", "val_acc", "eval_accuracy", "eval_acc", "acc_test"),
    "n_test": ("n_test", "test_size", "num_test", "test_examples", "val_size", "eval_size"),
    "seed": ("seed", "run_seed"),
}
"""What columns are called, in lower case and with _ for any other sign."""
_PLACES = ("m", "T", "depth", "C")


class Run(NamedTuple):
    """One trained network.

    Attributes:
        places: its position on every axis that is known.
        train: training error.
        test: test error.
        n_test: number of test examples; 0 where it is not known.
        fits: whether no training margin is at most gamma.
        name: for messages.
    """

    places: Mapping[str, float]
    train: float
    test: float
    n_test: int
    fits: bool
    name: str

    def interval(self, level: float) -> tuple[float, float]:
        """An interval of the risk: exact where the test error is a count over n_test, else Hoeffding's."""
        digits = len(f"{self.test:.10f}".rstrip("0").partition(".")[2])
        written = 0.51 * 10.0**-digits  # how far from a count's share a number of so many digits may lie
        wrong = round(self.test * self.n_test)
        off = abs(wrong / self.n_test - self.test)
        if off < 1e-9 or off <= written < 0.5 / self.n_test:
            return clopper_pearson(wrong, self.n_test, 1 - level)
        return hoeffding(self.test, self.n_test, 1 - level)


def read_csv(files: Iterable[str], columns: Mapping[str, str]) -> list[Run]:
    """The runs of some CSV files; `columns` says which column holds what, where its name does not."""
    for name in columns:
        if name not in _NAMES:
            raise InvalidSetting(f"--column has no {name!r}{hint(name, _NAMES)}; it knows {', '.join(_NAMES)}")
    return [_run(f"{file}, line {i}", row, columns) for file in files for i, row in enumerate(_rows(Path(file)), 2)]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        lines = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read the points {path}: {error.strerror}") from None
    if len(lines) < 2:
        raise InvalidSetting(f"{path} has no rows: it needs a head such as m,train,test,n_test,seed and a line per run")
    return [dict(zip(lines[0], row, strict=True)) for row in lines[1:]]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower().removeprefix("config.").removeprefix("summary.")).strip("_")


def _run(where: str, row: Mapping[str, str], columns: Mapping[str, str]) -> Run:
    numbers: dict[str, float] = {}
    plain = {_plain(name): name for name in row}
    for what, names in _NAMES.items():
        column = columns.get(what)
        if column is not None and column not in row:
            raise InvalidSetting(
                f"{where}: there is no column {column!r}{hint(column, row)}; there are {', '.join(row)}"
            )
        column = column or next((plain[name] for name in names if name in plain), None)
        if column is not None and row[column] != "":
            numbers[what] = _number(where, column, row[column])
    for what in ("train", "test"):
        accuracy = numbers.pop(f"{what} accuracy", None)
        if what not in numbers and accuracy is not None:
            numbers[what] = 1 - accuracy
        if what not in numbers:
            raise InvalidSetting(
                f"{where}: no column holds the {what} error; there are {', '.join(row)}: say which, --column "
                f"{what}=NAME"
            )
        if not 0 <= numbers[what] <= 1:
            raise InvalidSetting(f"{where}: the {what} error is a share between 0 and 1, got {numbers[what]:g}")
    n = numbers.get("n_test", 0.0)
    if n != int(n) or n < 0:
        raise InvalidSetting(f"{where}: n_test counts examples, got {n:g}")
    places = {name: numbers[name] for name in _PLACES if name in numbers}
    return Run(places, numbers["train"], numbers["test"], int(n), numbers["train"] == 0, where)


def _number(where: str, column: str, text: str) -> float:
    try:
        value = float(plain_digits(text))
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise InvalidSetting(f"{where}: {column} is no number: {text!r}")
    return value


def measured(runs: Sequence[Run], letter: str, quantity: str) -> list[Series]:
    """Every run, with the interval of its risk, and the median per position with a bootstrap interval over runs.

    The risk is shown of runs that no training margin at most gamma: the bounds next to it suppose training error 0.
    """
    for run in runs:
        if letter not in run.places:
            names = ", ".join(run.places) or "nothing"
            raise InvalidSetting(
                f"{run.name}: no column holds {letter}, which the figure runs over (it has {names}): say which, "
                f"--column {letter}=NAME"
            )
    used = sorted((r for r in runs if quantity == "gap" or r.fits), key=lambda r: r.places[letter])
    if not used:
        raise NoSolution("no run has training error 0, of which the risk bound speaks: draw --quantity gap")
    groups: dict[float, list[float]] = {}
    rows: list[tuple[float, float, float | None, float | None]] = []
    for run in used:
        off = run.train if quantity == "gap" else 0.0
        ends = run.interval(_LEVEL / len(used)) if run.n_test else (None, None)
        low, high = (None if end is None else end - off for end in ends)
        rows.append((run.places[letter], run.test - off, low, high))
        groups.setdefault(run.places[letter], []).append(run.test - off)
    medians = [(at, *median(values)) for at, values in groups.items()]
    return [
        Series.of_rows("run", "measured", quantity, rows, quantity),
        Series.of_rows("median", "measured", quantity, medians, quantity),
    ]


def median(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The median of some runs with its 95% bootstrap interval, where there are at least three."""
    import numpy as np

    middle = statistics.median(values)
    if len(values) < 3:
        return middle, None, None
    draws = np.random.default_rng(0).choice(np.asarray(values), size=(_DRAWS, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return middle, float(low), float(high)
