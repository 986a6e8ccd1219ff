"""Sweeps: one question asked at every point of a grid, answered as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import up
from boundcalc.base.table import as_html, as_text
from boundcalc.base.validate import known_keys, spelling
from boundcalc.engine.bound import FIELDS, BoundValue
from boundcalc.engine.evaluate import compare
from boundcalc.setting import Architecture, Sample, Setting
from boundcalc.theorems import known_bound

MOST_POINTS = 10**6
"""A larger grid is a slip of the keyboard."""

RESULT_COLUMNS = ("name", "kind", *FIELDS, "dominant_share", "refusal", "risk_refusal")
"""What is kept of every bound, next to the values of the axes."""

_ALONE = frozenset({"n_train", "delta", "margin", "train_error", "lipschitz", "C", "seq_len", "depth", "input_radius"})
"""Fields whose values are valid or not whatever the others are."""

_SHOWN = ("name", "kind", "gap", "risk", "strategy")
_FIRST = 10
"""Columns and rows that a sweep shows of itself."""


def _cell(value: Any) -> str:
    """Bounds are rounded up."""
    return "-" if value is None else up(value, 4) if isinstance(value, float) else str(value)


_Point = dict[str, Any]
_Make = Callable[[_Point], Setting]


@dataclass(frozen=True)
class Sweep:
    """A grid's answers.

    Attributes:
        axes: the values of each axis.
        columns: equally long lists, one row per point and bound: the axes, then `RESULT_COLUMNS`. What
            `pandas.DataFrame` takes.
    """

    axes: Mapping[str, Sequence[Any]]
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def _head(self) -> tuple[str, list[tuple[str, ...]]]:
        """What was swept, and the first rows as text."""
        axes = " x ".join(f"{name} ({len(list(values))})" for name, values in self.axes.items())
        names = (*self.axes, *_SHOWN)
        first = itertools.islice(self.records(), _FIRST)
        rows = [(*(str(row[a]) for a in self.axes), *(_cell(row[name]) for name in _SHOWN)) for row in first]
        more = f"; the first {_FIRST}" if len(self) > _FIRST else ""
        return f"sweep of {axes}: {len(self)} rows{more}", [names, *rows]

    def __repr__(self) -> str:
        return "\n".join([self._head[0], as_text(self._head[1])])

    def _repr_html_(self) -> str:
        return f"<p>{self._head[0]}</p>{as_html(self._head[1])}"

    def records(self) -> Iterator[dict[str, Any]]:
        """The rows."""
        names = list(self.columns)
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(names, values, strict=True))


def sweep(
    setting: Setting,
    axes: Mapping[str, Iterable[Any]],
    bounds: Sequence[str] = ("best",),
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Checked bounds at every point of a grid; over millions of points a theorem's `lambdify` gives its formula alone.

    Args:
        setting: what stays the same.
        axes: values by field of `Setting.but`; the last one runs fastest.
        bounds: policies and theorems.
        progress: called with the number of points done and of all.

    Returns:
        Columns, under the names that the axes were given (m or n_train). Points that make no setting (d not divisible
        by heads, say) and bounds that do not apply are rows with a refusal.
    """
    known_keys("a sweep", axes, [*(f.name for part in (Architecture, Sample) for f in fields(part)), "C", "norms"])
    names = [known_bound(name) for name in bounds]
    grid = {name: [_plain(value) for value in values] for name, values in axes.items()}

    def make(point: _Point) -> Setting:
        return setting.but(**point)

    total = checked_size(make, grid)
    columns: dict[str, list[Any]] = {name: [] for name in (*grid, *RESULT_COLUMNS)}
    for done, (point, results) in enumerate(run(make, grid, names), start=1):
        for result in results:
            for name, value in (point | result).items():
                columns[name].append(value)
        if progress is not None:
            progress(done, total)
    return Sweep(grid, columns)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else value


def checked_size(make: _Make, grid: Mapping[str, Sequence[Any]]) -> int:
    """The number of points, after refusing grids that are empty or too large and values that no point could have."""
    if not grid:
        raise InvalidSetting("a sweep needs at least one axis, such as n_train=[1000, 10000]")
    for name, values in grid.items():
        if not values:
            raise InvalidSetting(f"the axis {name!r} has no values")
    total = math.prod(len(values) for values in grid.values())
    if total > MOST_POINTS:
        raise InvalidSetting(f"a sweep may have 10^6 points, got {total}: take coarser or fewer axes")
    for name in grid:
        for value in _telling(grid[name]) if spelling(name, _ALONE) in _ALONE else ():
            make({name: value})
    return total


def _telling(values: Sequence[Any]) -> Sequence[Any]:
    """The values to try: of numbers, the extremes are refused if any is."""
    numbers = all(isinstance(value, int | float) and value == value for value in values)
    return (min(values), max(values)) if numbers else values


def run(
    make: _Make, grid: Mapping[str, Sequence[Any]], bounds: Sequence[str]
) -> Iterator[tuple[_Point, list[dict[str, Any]]]]:
    """Every point with its results, as flat objects."""
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        try:
            results = [_flat(value) for value in compare(make(point), bounds)]
        except InvalidSetting as error:
            results = [_refused(name, str(error)) for name in bounds]
        yield point, results


def _refused(name: str, why: str) -> dict[str, Any]:
    return dict.fromkeys(RESULT_COLUMNS) | {"name": name, "kind": "bound", "refusal": why}


def _flat(value: BoundValue) -> dict[str, Any]:
    result = value.to_json()
    dominant = result.pop("dominant") or {}
    result["dominant"], result["dominant_share"] = dominant.get("piece"), dominant.get("share")
    return {name: result.get(name) for name in RESULT_COLUMNS}
