"""Drawing series on axes, each kind in its own way; matplotlib is imported here, when a figure is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boundcalc.lab.plot.data import Series, normalised, refuse_mixture
from boundcalc.lab.plot.lettering import ends, legend_label, says_nothing
from boundcalc.lab.plot.style import FILLS, HATCHES, Look, look, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from boundcalc.lab.plot.spec import Spec

LARGEST = 290.0
"""Base-10 logarithm beyond which values are drawn as exponents."""
_MARKS = 6
"""Marks along a curve."""
_FIT_DASHES = ((0, (6, 1.5, 1, 1.5)), (0, (7, 1.5)), (0, (2, 1)))
"""Fits are told apart where colours are lost."""


def new_figure(width: str, ratio: float) -> Figure:
    """An empty figure of a named width, without any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size(width, ratio), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def known(values: Sequence[float | None]) -> list[float]:
    """Values as matplotlib takes them: what is missing is not drawn."""
    return [math.nan if value is None else value for value in values]


@dataclass(frozen=True)
class Heights:
    """Where values go on the vertical axis.

    Attributes:
        uncapped: bounds above 1 at their size.
        exponents: the axis holds base-10 logarithms, because some values are beyond floats.
    """

    uncapped: bool = False
    exponents: bool = False

    @classmethod
    def for_series(cls, series: Sequence[Series], *, uncapped: bool) -> Heights:
        """The heights that a panel's series need."""
        logs = [log for s in series for log in s.log10 if log is not None]
        return cls(uncapped, uncapped and any(log > LARGEST for log in logs))

    def of(self, series: Series) -> list[float]:
        """Ordinates of a series; nan where there is none."""
        return [self._one(series, i) for i in range(len(series.x))]

    def _one(self, series: Series, i: int) -> float:
        log, value = (series.log10[i] if series.log10 else None), series.y[i]
        if log is not None and self.uncapped and (log > 0 or self.exponents):
            return log if self.exponents else 10.0**log
        return math.nan if value is None else self.at(value)

    def at(self, value: float) -> float:
        """The ordinate of a plain value."""
        if not self.exponents:
            return value
        return math.log10(value) if value > 0 else math.nan

    def dress(self, axes: Axes) -> None:
        """The scale of the axis: decades."""
        if self.exponents:
            from matplotlib.ticker import FuncFormatter, MaxNLocator

            axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:.0f}}}$"))
        else:
            axes.set_yscale("log")


def plain_ticks(axes: Axes) -> None:
    """Powers of ten where there are several, else plain numbers."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and high / low < 150:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")


def plain_lengths(axes: Axes, values: Sequence[float]) -> None:
    """A binary log axis whose ticks are the lengths themselves, as many as fit."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    ticks = sorted(set(values))
    most = 9 if max(len(f"{tick:g}") for tick in ticks) < 5 else 6
    ticks = ticks[:: -(-len(ticks) // most)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def few_lengths(axes: Axes, values: Sequence[float]) -> None:
    """The same where there is room for four or five."""
    ticks = sorted(set(values))
    plain_lengths(axes, ticks[:: max(1, -(-len(ticks) // 5))])


def draw_all(axes: Axes, series: Sequence[Series], heights: Heights, *, joined: bool = False) -> None:
    """Every series in the way of its kind; a proxy beside anything else is refused.

    `joined`: computed values are of something that is between the places, too, so that a line joins them.
    """
    refuse_mixture(series)
    for index, one in enumerate(series):
        seen = look(one.key, index)
        if all(y is None for y in one.y):
            continue  # refused or trivial throughout: the caption says so
        if one.kind == "measured":
            draw_measured(axes, one, heights, seen)
        elif one.kind == "a_posteriori":
            draw_marks(axes, one, heights, seen)
        elif one.kind == "computed" and joined:
            draw_plain(axes, one, heights, seen.colour, width=1.1)
        elif one.kind == "computed":
            draw_computed(axes, one, heights, seen)
        elif one.kind in ("reference", "fit"):
            dashes = (0, (1, 1.2)) if one.kind == "reference" else _FIT_DASHES[index % 3]
            draw_plain(axes, one, heights, seen.colour, dashes)
        else:
            draw_curve(axes, one, heights, seen, index)


def draw_plain(
    axes: Axes, series: Series, heights: Heights, colour: str, dashes: Any = "-", width: float = 0.9
) -> None:
    """A line without marks."""
    y = heights.of(series)
    line = axes.plot(series.x, y, color=colour, lw=width, ls=dashes, label=legend_label(series))[0]
    line.set_zorder(4 if series.kind == "fit" else 1.5)
    line.set_gid(gid(series))
    ends(axes, series, line, series.x, y)


def draw_computed(axes: Axes, series: Series, heights: Heights, seen: Look) -> None:
    """Exact values of something explicit: marks alone, hollow, since nothing is claimed between them."""
    y = heights.of(series)
    marks = axes.plot(series.x, y, ls="none", marker=seen.mark, color=seen.colour, label=legend_label(series))[0]
    marks.set(markerfacecolor="white", gid=gid(series), zorder=3)
    ends(axes, series, marks, series.x, y)


def gid(series: Series, part: str = "") -> str:
    """What an artist is called, so that it can be found again (and is, in SVG)."""
    return ":".join(word for word in (series.quantity, series.key, series.kind, part) if word)


def draw_curve(axes: Axes, series: Series, heights: Heights, seen: Look, index: int) -> None:
    """A curve where it says something. Where it is vacuous it is drawn only uncapped: dashed, with hollow marks."""
    y, x, vacuous = heights.of(series), list(series.x), series.vacuous
    thick = 2.3 if series.key == "best" else 1.1
    z = 2.0 if series.key == "best" else 2.2 + 0.01 * index
    telling = [i for i in range(len(x)) if not vacuous[i] and not math.isnan(y[i])]
    uncapped = heights.uncapped and any(empty and not math.isnan(v) for empty, v in zip(vacuous, y, strict=True))
    if not telling and not uncapped:
        return  # the band that says nothing names it
    every = max(1, len(x) // _MARKS)
    marked = [i for i in telling if (i + index) % every == 0] or telling[:1]
    solid = [math.nan if vacuous[i] else value for i, value in enumerate(y)]
    line = axes.plot(
        x, solid, color=seen.colour, lw=thick, marker=seen.mark or None, markevery=marked, label=legend_label(series)
    )[0]
    line.set(zorder=z, gid=gid(series), solid_capstyle="round")
    ends(axes, series, line, x, y if uncapped else solid)
    if not uncapped:
        return
    near = [vacuous[i] or (i > 0 and vacuous[i - 1]) or (i + 1 < len(x) and vacuous[i + 1]) for i in range(len(x))]
    dashed = [value if near[i] else math.nan for i, value in enumerate(y)]
    empty = [i for i in range(len(x)) if vacuous[i] and (len(x) == 1 or (i + index) % every == 0)]
    rest = axes.plot(x, dashed, color=seen.colour, lw=0.8 * thick, ls=(0, (3, 2)), marker=seen.mark or None)[0]
    rest.set(markevery=empty, markerfacecolor="white", zorder=z - 0.5, gid=gid(series, "vacuous"))
    if not telling:
        line.set(linestyle=(0, (3, 2)), markerfacecolor="white")


def draw_marks(axes: Axes, series: Series, heights: Heights, seen: Look) -> None:
    """A-posteriori bounds: large marks that no line joins, each for trained weights; vacuous ones hollow, if uncapped."""
    y, vacuous = heights.of(series), series.vacuous
    label = legend_label(series)
    for part, wanted in (("", False), ("vacuous", True)):
        at = [i for i in range(len(y)) if vacuous[i] is wanted and not math.isnan(y[i])]
        if not at or (wanted and not heights.uncapped):
            continue
        drawn = axes.plot([series.x[i] for i in at], [y[i] for i in at], ls="none", marker="d", ms=4.5, label=label)[0]
        drawn.set(color=seen.colour, markerfacecolor="white" if wanted else seen.colour)
        drawn.set(zorder=3.2, gid=gid(series, part))
        label = "_"


def draw_measured(axes: Axes, series: Series, heights: Heights, seen: Look) -> None:
    """Measured values with their intervals; where nothing was seen, the upper end alone, pointing down."""
    from matplotlib.lines import Line2D

    rows = [i for i, y in enumerate(series.y) if y is not None]
    shares = series.quantity == "share"  # on an axis from 0, where 0 is a place as any other
    seen_at = [i for i in rows if shares or (series.y[i] or 0) > 0]
    none_at = [i for i in rows if i not in seen_at and series.high and (series.high[i] or 0) > 0]
    y = [heights.at(float(series.y[i] or 0)) for i in seen_at]
    if seen_at:
        errors: Any = None
        if series.low and series.high:
            bounds = [(series.low[i] or 0.0, series.high[i] or 0.0) for i in seen_at]
            floor = min(v for v in (*(e[0] for e in bounds), *(float(series.y[i] or 1) for i in seen_at)) if v > 0) / 10
            floor = 0.0 if shares else floor
            lows = [heights.at(max(low, floor)) for low, _ in bounds]
            highs = [heights.at(high) for _, high in bounds]
            errors = [
                [max(0.0, a - b) for a, b in zip(y, lows, strict=True)],
                [max(0.0, b - a) for a, b in zip(y, highs, strict=True)],
            ]
        found = axes.errorbar(
            [series.x[i] for i in seen_at],
            y,
            yerr=errors,
            fmt=(seen.mark or "o") if series.quantity != "risk" else "s",
            ms=3.2,
            color=seen.colour,
            markerfacecolor="white" if seen.colour != "#111111" else seen.colour,
            elinewidth=0.7,
            label=legend_label(series),
        )
        found.lines[0].set(gid=gid(series), zorder=3)
        if series.key != "measured":  # which is no name
            ends(axes, series, found.lines[0], [series.x[i] for i in seen_at], y)
    if none_at:
        ends_at = [heights.at(float(series.high[i] or 0)) for i in none_at]
        none = "no error seen: 95% upper end (measured)"
        label = none if series.quantity in ("gap", "risk") else legend_label(series)
        marks = Line2D([series.x[i] for i in none_at], ends_at, ls="none", marker="v", ms=4, color=seen.colour)
        marks.set(markerfacecolor="white", gid=gid(series, "none"), zorder=3, label=label)
        axes.add_line(marks)
        axes.update_datalim([(series.x[i], end) for i, end in zip(none_at, ends_at, strict=True)])
        axes.autoscale_view()


def draw_band(axes: Axes, series: Sequence[Series], heights: Heights) -> None:
    """The band from 1 upwards, when everything else is drawn, and which bounds are in it everywhere."""
    drawable = [one for one in series if one.kind == "bound" and ("trivial" in one.refusal or any(one.log10))]
    silent = [one.label for one in drawable if not one.telling]
    says_nothing(axes, heights.at(1.0), silent if not heights.uncapped else (), capped=not heights.uncapped)


def draw_stack(
    axes: Axes,
    bars: Sequence[tuple[Series, int]],
    left: Sequence[float],
    heights: Sequence[Sequence[float]],
    *,
    named: bool,
    **bar: Any,
) -> None:
    """Bars on top of each other, each series of a fill and a hatch by its number."""
    bottom = [0.0] * len(left)
    for (one, number), part in zip(bars, heights, strict=True):
        drawn = axes.bar(left, part, bottom=bottom, color=FILLS[number % len(FILLS)], **bar)
        for each in drawn:
            each.set(hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.3)
        drawn.set_label(one.label if named else "_")
        drawn.patches[0].set_gid(f"{one.panel}:{one.key}")
        bottom = [a + b for a, b in zip(bottom, part, strict=True)]


def draw_proxies(axes: Axes, series: Sequence[Series]) -> None:
    """Proxies on their own axis, each divided by its first value."""
    shown = [normalised(s) for s in series]
    refuse_mixture(shown)
    for index, one in enumerate(shown):
        draw_curve(axes, one, Heights(), look(one.key, index), index)
    values = [y for one in shown for y in one.y if y]
    if values and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.set_ylabel("proxy / its first value")


def draw_growth(axes: Axes, series: Sequence[Series]) -> None:
    """Bounds, or proxies, each divided by its first value: how they change, whatever their size.

    The axis begins at 0, so that a change of some per cent looks like one.
    """
    if any(one.kind == "proxy" for one in series):
        draw_proxies(axes, series)
    else:
        for index, one in enumerate(series):
            draw_curve(axes, normalised(one), Heights(), look(one.key, index), index)
        axes.set_ylabel("bound / its first value")
    if axes.get_yscale() == "linear":
        axes.set_ylim(0, 1.25 * max(y for one in series for y in normalised(one).y if y is not None))


def sheet(
    spec: Spec,
    count: int,
    one: float,
    *,
    usual: str = "",
    wide: float | None = None,
    share_y: bool = False,
    rows: int = 1,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """An empty figure and its panels: side by side (in so many rows), or one above the other where it is narrow.

    Args:
        spec: says the size; unsaid, it is `usual`, or one column for one panel and both for several.
        count: of panels.
        one: height of each in a narrow figure, over its width.
        usual: size.
        wide: height over width where the figure is not narrow; unset, what suits so many panels in a row.
        share_y: whether panels have one vertical axis.
        rows: of panels.
        widths: of the panels in a row, over one another.
    """
    width = spec.size or usual or ("column" if count == 1 else "wide")
    narrow = is_narrow(width)
    if wide is None:
        wide = {1: 0.62, 2: 0.46}.get(count, 0.4)
    figure = new_figure(width, one * count if narrow else wide)
    shape = (count, 1) if narrow else (rows, -(-count // rows))
    ratios = None if narrow else widths
    found: Any = figure.subplots(*shape, squeeze=False, sharey=share_y, width_ratios=ratios)
    return figure, list(found.flat)


def is_narrow(width: str) -> bool:
    """Whether a figure takes one column of two."""
    return width in ("column", "neurips-half")
