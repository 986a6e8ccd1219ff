"""Measured points to lay under the curves of the page: runs of your own, or the trials of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boundcalc.lab.explore.content import FIELDS
from boundcalc.lab.figures.runs import Run, measured


def from_files(files: Sequence[str], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Median gaps along every letter that all runs of some CSV files have."""
    from boundcalc.lab.figures.runs import read_csv

    runs = read_csv(files, columns)
    letters = [letter for letter in FIELDS if all(letter in run.places for run in runs)]
    return [row for letter in letters or ["m"] for row in _rows(runs, letter)]


def from_store(path: str, chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Median gaps of trials along m."""
    from boundcalc.lab.figures import trials

    records = trials.select(Path(path), chosen)
    trials.refuse_mixture(records, {"m"})
    return _rows(trials.as_runs(records, 1.0), "m")


def _rows(runs: Sequence[Run], letter: str) -> list[dict[str, Any]]:
    """Medians with their bootstrap intervals."""
    _, middle = measured(runs, letter, "gap")
    low, high = middle.known("low"), middle.known("high")
    return [{"axis": letter, "x": x, "y": y, "low": low.get(x), "high": high.get(x)} for x, y in middle.known().items()]
