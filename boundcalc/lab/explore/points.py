"""Measured points to lay under the curves: from a CSV of one's own, or from a store of trials."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.output import reading
from boundcalc.lab.explore.content import FIELDS

ENDS = ("gap", "low", "high")
MOST = 2000
"""Points in one page."""


def from_csv(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV with a column for one letter (m, T, ...) and `gap`; `low` and `high` are the ends of an interval."""
    reading(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidSetting(f"{path} is no CSV: {error}") from None
    names = list(rows[0]) if rows else []
    letters = [name for name in names if name in FIELDS]
    unknown = [name for name in names if name not in FIELDS and name not in ENDS]
    if not rows or "gap" not in names or not letters or unknown:
        got = f"it has {', '.join(map(str, names))}" if names else "it is empty"
        raise InvalidSetting(
            f"{path} needs a header with gap, one or more of {', '.join(FIELDS)}, and at will low and high; {got}"
        )
    if len(rows) > MOST:
        raise InvalidSetting(f"{path} has {len(rows)} rows, at most {MOST} fit into a page")
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 2):
        values = {name: _number(path, number, name, row[name]) for name in names if row[name] not in (None, "")}
        if "gap" not in values:
            raise InvalidSetting(f"{path}, line {number}: there is no gap")
        ends = {name: values[name] for name in ("low", "high") if name in values}
        found += [{"axis": name, "x": values[name], "y": values["gap"], **ends} for name in letters if name in values]
    return found


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidSetting(f"{path}, line {line}: {name} must be a number, got {text!r}")
    return value


def from_store(path: str, runs: Mapping[str, Any], along: str) -> list[dict[str, Any]]:
    """Mean gaps of trials along m, T or depth, with their 95% intervals."""
    from boundcalc.lab.plot import measured
    from boundcalc.lab.plot.spec import Spec

    figure = {"m": "gap-vs-m", "T": "gap-vs-T", "depth": "gap-vs-depth"}[along]
    records = measured.read(Spec(figure, store=path, runs=runs), vary=along)
    series = measured.errors(records, along, ["gap"])
    if not series:
        raise NoSolution(f"{path} has no trial with a measured gap")
    (one,) = series
    low, high = one.known("low"), one.known("high")
    return [{"axis": along, "x": x, "y": y, "low": low.get(x), "high": high.get(x)} for x, y in one.known().items()]
