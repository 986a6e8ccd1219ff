"""Sweeps: one question asked at every point of a grid, answered as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.validate import known_keys
from boundcalc.engine.bound import FIELDS, BoundValue
from boundcalc.engine.evaluate import compare
from boundcalc.setting import Architecture, Sample, Setting
from boundcalc.theorems import known_bound

MOST_POINTS = 10**6
"""A larger grid is a slip of the keyboard."""

RESULT_COLUMNS = ("name", "kind", *FIELDS, "dominant_share", "refusal", "risk_refusal")
"""What is kept of every bound, next to the values of the axes."""

_Point = dict[str, Any]


def sweep(
    setting: Setting, axes: Mapping[str, Iterable[Any]], bounds: Sequence[str] = ("best",)
) -> dict[str, list[Any]]:
    """Checked bounds at every point of a grid; over millions of points a theorem's `lambdify` gives its formula alone.

    Args:
        setting: what stays the same.
        axes: values by field of `Setting.but`; the last one runs fastest.
        bounds: policies and theorems.

    Returns:
        Equally long columns, one row per point and bound, as `pandas.DataFrame` takes them: the axes under the names
        that they were given (m or n_train), then `RESULT_COLUMNS`. Points that make no setting (d not divisible by
        heads, say) and bounds that do not apply are rows with a refusal.
    """
    known_keys("a sweep", axes, [*(f.name for part in (Architecture, Sample) for f in fields(part)), "C", "norms"])
    names = [known_bound(name) for name in bounds]
    grid = {name: [v.item() if hasattr(v, "item") else v for v in values] for name, values in axes.items()}  # NumPy's
    size_of(grid)
    points = run(lambda point: setting.but(**point), grid, names)
    rows = [point | result for point, results in points for result in results]
    return {name: [row[name] for row in rows] for name in (*grid, *RESULT_COLUMNS)}


def size_of(grid: Mapping[str, Sequence[Any]]) -> int:
    """The number of points, after refusing grids that are empty or too large."""
    if not grid:
        raise InvalidSetting("a sweep needs at least one axis, such as n_train=[1000, 10000]")
    for name, values in grid.items():
        if not values:
            raise InvalidSetting(f"the axis {name!r} has no values")
    total = math.prod(len(values) for values in grid.values())
    if total > MOST_POINTS:
        raise InvalidSetting(f"a sweep may have 10^6 points, got {total}: take coarser or fewer axes")
    return total


def run(
    make: Callable[[_Point], Setting], grid: Mapping[str, Sequence[Any]], bounds: Sequence[str]
) -> Iterator[tuple[_Point, list[dict[str, Any]]]]:
    """Every point with its results, as flat objects."""
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        try:
            results = [_flat(value) for value in compare(make(point), bounds)]
        except InvalidSetting as error:
            refused = dict.fromkeys(RESULT_COLUMNS) | {"kind": "bound", "refusal": str(error)}
            results = [refused | {"name": name} for name in bounds]
        yield point, results


def _flat(value: BoundValue) -> dict[str, Any]:
    result = value.to_json()
    dominant = result.pop("dominant") or {}
    result["dominant"], result["dominant_share"] = dominant.get("piece"), dominant.get("share")
    return {name: result.get(name) for name in RESULT_COLUMNS}
