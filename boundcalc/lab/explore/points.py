"""Measured points to lay under the curves: runs of one's own, or a store of trials, as figures read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.explore.content import FIELDS
from boundcalc.lab.plot.data import Series


def from_files(files: Sequence[str], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Mean gaps along every letter that all runs of some CSV files have."""
    from boundcalc.lab.plot import points

    runs = points.read(files, columns)
    letters = [letter for letter in FIELDS if all(letter in run.places for run in runs)]
    if not letters:
        points.series(runs, "m", ["gap"])  # says what is missing
    return [each for letter in letters for one in points.series(runs, letter, ["gap"]) for each in _rows(one, letter)]


def from_store(path: str, runs: Mapping[str, Any], along: str) -> list[dict[str, Any]]:
    """Mean gaps of trials along m, T or depth, with their 95% intervals."""
    from boundcalc.lab.plot import measured
    from boundcalc.lab.plot.runs import read
    from boundcalc.lab.plot.spec import Spec

    records = read(Spec(f"gap-vs-{along}", store=path, runs=runs), vary=along)
    series = measured.errors(records, along, ["gap"])
    if not series:
        raise NoSolution(f"{path} has no trial with a measured gap")
    return _rows(series[0], along)


def _rows(one: Series, letter: str) -> list[dict[str, Any]]:
    low, high = one.known("low"), one.known("high")
    return [{"axis": letter, "x": x, "y": y, "low": low.get(x), "high": high.get(x)} for x, y in one.known().items()]
