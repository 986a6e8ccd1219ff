"""`tightness`: how many times each bound exceeds what was measured."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.plot import canvas, gap
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.predicted import curves
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import look
from boundcalc.lab.plot.words import short

_DEFAULT_BOUNDS = ("best", "log-T", "trauger", "parameters", "closed", "published")


def collect(spec: Spec) -> FigureData:
    """Uncapped bound over measured gap at every m of the trials; where no error was seen, over the upper end.

    Trivial bounds have no ratio: they are the number 1, whatever was measured.
    """
    from boundcalc.lab.plot import measured as runs

    chosen = runs.read(spec, vary="m")
    setting = runs.setting_of(chosen, spec, gap.setting_of(spec.but(figure="gap-vs-m")))
    quantity = spec.quantities[0]
    seen = runs.errors(chosen, "m", [quantity], setting.sample.margin)[0]
    predicted = curves(setting, "n_train", seen.x, spec.bounds or _DEFAULT_BOUNDS, [quantity]) + runs.a_posteriori(
        chosen, "m", [quantity], setting
    )
    series = [_ratio(one, seen) for one in predicted]
    kept = [one for one in series if one.x]
    if not kept:
        raise NoSolution("there is nothing to divide: every bound is trivial at these m, or no test example was seen")
    facts = {"setting": setting.to_json(), "task": runs.described(chosen), "quantity": quantity}
    return FigureData((seen, *predicted, *kept), facts, tuple(r.hash for r in chosen))


def _ratio(bound: Series, seen: Series) -> Series:
    """Uncapped bound over measured value, vacuous where the bound is; the low end uses the upper end of the interval."""
    known = {x: i for i, x in enumerate(seen.x)}
    rows: list[tuple[float, float | None, float, float, float | None]] = []
    for x, log in zip(bound.x, bound.log10, strict=True):
        i = known.get(x)
        if i is None or log is None:
            continue
        value, low, high = seen.y[i] or 0.0, seen.low[i] or 0.0, seen.high[i] or 0.0
        if high <= 0:
            continue
        rows.append((x, _over(log, value), log, _over(log, high) or 0.0, _over(log, low)))
    x, y, logs, low, high = (tuple(column) for column in zip(*rows, strict=True)) if rows else ((),) * 5
    return Series(bound.key, bound.label, bound.kind, "ratio", x, y, logs, low, high, panel="ratio")


def _over(log10: float, value: float) -> float | None:
    return 10.0 ** min(log10 - math.log10(value), canvas.LARGEST) if value > 0 else None


def draw(spec: Spec, data: FigureData) -> Any:
    """Ratios on a log axis; 1 would be a bound met exactly."""
    width = spec.size or "column"
    figure = canvas.new_figure(width, canvas.ratio_for(1, width, 0.9))
    axes = figure.subplots()
    shown = data.of(panel="ratio")
    canvas.refuse_mixture(shown)
    heights = canvas.Heights()
    labelled = False
    for index, one in enumerate(shown):
        seen = look(one.key, index)
        if one.kind == "a_posteriori":
            canvas.draw_marks(axes, one, heights, seen)
        else:
            canvas.draw_curve(axes, one, heights, seen, index, hollow=True)
        least = [(x, low) for x, y, low in zip(one.x, one.y, one.low, strict=True) if y is None and low]
        if least:
            marks = axes.plot([x for x, _ in least], [y for _, y in least], ls="none", color=seen.colour)
            marks[0].set(marker="$\\uparrow$", ms=5, gid=canvas.gid(one, "at least"))
            marks[0].set_label("_" if labelled else "at least (no error measured)")
            labelled = True
    line = axes.axhline(1, color="#666666", lw=0.9, ls=(0, (1, 1.2)), label="bound = measured (reference)", gid="one")
    line.set_zorder(1)
    word = "gap" if data.facts["quantity"] == "gap" else "risk"
    axes.set(xscale="log", yscale="log", xlabel="training samples m", ylabel=f"{word} bound (uncapped) / measured")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.5), high * 1.5)
    _plain(axes, [x for s in shown for x in s.x])
    canvas.plain_ticks(axes)
    if spec.title:
        axes.set_title(spec.title)
    canvas.legend(figure)
    return figure


def _plain(axes: Any, values: list[float]) -> None:
    """The m of the trials as ticks, as many as fit."""
    from matplotlib.ticker import NullLocator

    ticks = sorted(set(values))
    if not ticks:
        return
    apart = max(1.15, (ticks[-1] / ticks[0]) ** (1 / 8))
    kept = ticks[:1]
    for tick in ticks[1:]:
        if tick / kept[-1] >= apart:
            kept.append(tick)
    axes.set_xticks(kept, [f"{x:g}" for x in kept])
    axes.xaxis.set_minor_locator(NullLocator())


def caption(spec: Spec, data: FigureData) -> str:
    """The least and the largest ratio of the best bound."""
    best = next((s for s in data.of(panel="ratio") if s.key == "best" and s.kind == "bound"), data.of(panel="ratio")[0])
    ratios = [(y, x) for x, y in zip(best.x, best.y, strict=True) if y]
    none = [(low, x) for x, y, low in zip(best.x, best.y, best.low, strict=True) if y is None and low]
    parts: list[str] = []
    if ratios:
        (low, at_low), (high, at_high) = min(ratios), max(ratios)
        parts.append(
            f"is {_times(low)} what was measured at m = {short(at_low)} and {_times(high)} at m = {short(at_high)}"
        )
    if none:
        low, at = min(none)
        where = f"from m = {short(min(x for _, x in none))} on" if len(none) > 1 else f"at m = {short(at)}"
        parts.append(f"is at least {_times(low)} the measured upper end {where}, where no error was seen")
    vacuous = not any(s.telling for s in data.of(panel="ratio"))
    drawn = {s.key for s in data.of(panel="ratio", kind="bound")}
    trivial = [f"`{s.key}`" for s in data.of(panel=data.facts["quantity"], kind="bound") if s.key not in drawn]
    if trivial:
        are = "are" if len(trivial) > 1 else "is"
        parts.append(f"says by how much, as {', '.join(trivial)} {are} trivial at these m")
    end = "Every bound is vacuous at these m, so ratios grow as the gap closes." if vacuous else ""
    return f"`{best.key}` {' and '.join(parts)}. {end}".strip()


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < 1e4 else f"{short(ratio)} times"
