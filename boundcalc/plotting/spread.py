"""`attention` and `norms` share this: medians over trials, with the range from tenth to ninetieth percentile."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from boundcalc.errors import InvalidSetting
from boundcalc.plotting.data import Series


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def medians(
    groups: Sequence[tuple[float, Sequence[Any]]],
    value: Callable[[Any], float | None],
    *,
    key: str,
    label: str,
    quantity: str,
    panel: str,
) -> Series | None:
    """A measured series of medians; None where no trial has the value."""
    rows: list[tuple[float, float, float, float, int]] = []
    for x, group in groups:
        values = [v for record in group if (v := value(record)) is not None]
        if values:
            rows.append((x, statistics.median(values), quantile(values, 0.1), quantile(values, 0.9), len(values)))
    if not rows:
        return None
    x, y, low, high, count = zip(*rows, strict=True)
    return Series(key, label, "measured", quantity, x, y, (), low, high, count, panel=panel)


def axis_of(spec: Any, records: Sequence[Any]) -> str:
    """What the trials differ in: T, else m, else depth; more than one of T and depth is refused."""
    from boundcalc.plotting import measured as runs

    differing = [name for name in ("T", "depth") if len({runs.where(r, name) for r in records}) > 1]
    if len(differing) > 1:
        raise InvalidSetting("the trials differ in T and in depth: choose one, such as --runs depth=1")
    return differing[0] if differing else "m"
