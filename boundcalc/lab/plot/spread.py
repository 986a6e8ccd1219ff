"""`attention` and `norms` share this: medians over trials, with the range from tenth to ninetieth percentile."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import Series
from boundcalc.lab.plot.lettering import QUIET, ends, legend_label
from boundcalc.lab.plot.style import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _quantile(values: Sequence[float], share: float) -> float:
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
    rows: list[tuple[float, tuple[float, ...], int]] = []
    for x, group in groups:
        values = [v for record in group if (v := value(record)) is not None]
        if values:
            middle = statistics.median(values), _quantile(values, 0.1), _quantile(values, 0.9)
            rows.append((x, middle, len(values)))
    return Series.measured(key, label, quantity, rows, panel=panel) if rows else None


def axis_of(spec: Any, records: Sequence[Any]) -> str:
    """What the trials differ in: T, depth or steps of training, else m; where nothing differs, their blocks."""
    places = {name: sorted({runs.where(r, name) for r in records}) for name in ("T", "depth", "steps", "m")}
    differing = [name for name in ("T", "depth", "steps") if len(places[name]) > 1]
    if len(differing) > 1:
        first, second = differing[:2]
        raise InvalidSetting(
            f"the trials differ in {first} and in {second}: choose one, such as --runs {second}={places[second][0]}"
        )
    if differing:
        return differing[0]
    return "block" if len(places["m"]) == 1 and places["depth"][0] > 1 else "m"


WORDS = {"T": "T (bits)", "m": "training samples m", "depth": "depth", "block": "block", "steps": "training steps"}
MEDIANS = "measured: median, bars hold 80% of the trials"
_APART = 0.05
"""By how much of the mean step along the axis series are moved sideways, so that intervals can be told apart."""


def draw_spread(axes: Axes, series: Sequence[Series], letter: str, *, joined: bool = True) -> None:
    """Medians, with bars from the tenth to the ninetieth percentile; where they are not joined, from how many trials."""
    logarithmic = letter in ("T", "m")
    for index, one in enumerate(series):
        seen = look(one.key, index)
        x = canvas.known(one.x)
        if len(x) > 1:
            shift = _APART * (index - (len(series) - 1) / 2)
            if logarithmic:
                x = [at * (x[-1] / x[0]) ** (shift / (len(x) - 1)) for at in x]
            else:
                x = [at + shift * (x[-1] - x[0]) / (len(x) - 1) for at in x]
        y, low, high = canvas.known(one.y), canvas.known(one.low), canvas.known(one.high)
        between = [[a - b for a, b in zip(y, low, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
        bars = axes.errorbar(x, y, yerr=between, color=seen.colour, marker=seen.mark, elinewidth=0.6)
        bars.set_label(legend_label(one))
        bars.lines[0].set(gid=canvas.gid(one, one.panel), linestyle="-" if joined else "none")
        ends(axes, one, bars.lines[0], one.x, y)
    if not joined:
        _counts(axes, series[0])
    if letter in ("T", "m"):
        canvas.plain_lengths(axes, [at for s in series for at in s.x])


def _counts(axes: Axes, one: Series) -> None:
    """How many trials stand behind each median, along the top."""
    for x, count in zip(one.x, one.count, strict=True):
        axes.annotate(_few(count), (x, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", color=QUIET)
    where: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate("trials:", (0, 1), xytext=(-6, 0), ha="right", va="bottom", color=QUIET, **where)


def _few(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.2g}k"
