"""Measured runs next to bounds: from the store of trials or from a CSV of your own."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from boundcalc.base.answers import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.files import plain_digits, read_table
from boundcalc.base.validate import fraction, number, size, spelling
from boundcalc.lab.figures.data import Series

_LEVEL = 0.05
"""Share of all runs' intervals that may miss one risk: each gets its part (union bound)."""
_DRAWS = 1000
_PLACES = ("m", "T", "depth", "C")
_COLUMNS = (*_PLACES, "train", "test", "n_test", "seed")
"""Of a CSV file of runs; its other columns are left alone."""


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


def read_csv(files: Iterable[str]) -> list[Run]:
    """The runs of some CSV files, with columns m (T, depth or C), train and test (errors), n_test."""
    return [_run(f"{file}, line {i}", row) for file in files for i, row in enumerate(_rows(Path(file)), 2)]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        lines = read_table(path)
    except OSError as error:
        raise InvalidSetting(f"cannot read the points {path}: {error.strerror}") from None
    if len(lines) < 2:
        raise InvalidSetting(f"{path} has no rows: it needs a head such as m,train,test,n_test,seed and a line per run")
    return [dict(zip(lines[0], row, strict=True)) for row in lines[1:]]


def _run(where: str, row: Mapping[str, str]) -> Run:
    values: dict[str, float] = {}
    for name, text in ((spelling(name, _COLUMNS), text) for name, text in row.items() if text):
        if name in _COLUMNS:
            try:
                values[name] = number(f"{where}: {name}", float(plain_digits(text)))
            except ValueError:
                raise InvalidSetting(f"{where}: {name} is no number: {text!r}") from None
    for name in ("train", "test"):
        if name not in values:
            raise InvalidSetting(f"{where}: no column {name!r} holds the {name} error; there are {', '.join(row)}")
        fraction(f"{where}: the {name} error", values[name], ends=True)
    n = size(f"{where}: n_test", values.get("n_test", 0), least=0)
    places = {name: values[name] for name in _PLACES if name in values}
    return Run(places, values["train"], values["test"], n, values["train"] == 0, where)


def measured(runs: Sequence[Run], letter: str, quantity: str) -> list[Series]:
    """Every run, with the interval of its risk, and the median per position with a bootstrap interval over runs.

    The risk is shown of runs that no training margin at most gamma: the bounds next to it suppose training error 0.
    """
    for run in runs:
        if letter not in run.places:
            names = ", ".join(run.places) or "nothing"
            raise InvalidSetting(f"{run.name}: no column {letter!r}, which the figure runs over (it has {names})")
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
        Series.of_rows("run", "measured", quantity, rows),
        Series.of_rows("median", "measured", quantity, medians),
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
