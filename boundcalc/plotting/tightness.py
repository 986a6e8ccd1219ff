"""`tightness`: how many times each bound exceeds what was measured."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.plotting import canvas, gap
from boundcalc.plotting.data import FigureData, Series
from boundcalc.plotting.predicted import curves
from boundcalc.plotting.spec import Spec
from boundcalc.plotting.style import look
from boundcalc.plotting.words import short

DEFAULT_BOUNDS = ("best", "edelman", "trauger", "parameters", "published")


def collect(spec: Spec) -> FigureData:
    """Uncapped bound over measured gap at every m of the trials; where no error was seen, over the upper end."""
    from boundcalc.plotting import measured as runs

    chosen = runs.read(spec, vary="m")
    setting = runs.setting_of(chosen, spec, gap.setting_of(spec.but(figure="gap-vs-m")))
    quantity = spec.quantities[0]
    seen = runs.errors(chosen, "m", [quantity])[0]
    predicted = curves(setting, "n_train", seen.x, spec.bounds or DEFAULT_BOUNDS, [quantity]) + runs.a_posteriori(
        chosen, "m", [quantity], setting
    )
    series = [_ratio(one, seen) for one in predicted]
    facts = {"setting": setting.to_json(), "task": runs.described(chosen), "quantity": quantity}
    return FigureData((seen, *predicted, *series), facts, tuple(r.hash for r in chosen))


def _ratio(bound: Series, seen: Series) -> Series:
    """Uncapped bound over measured value; its low end uses the upper end of the interval."""
    known = {x: i for i, x in enumerate(seen.x)}
    rows: list[tuple[float, float | None, float, float | None]] = []
    for x, log in zip(bound.x, bound.log10, strict=True):
        i = known.get(x)
        if i is None or log is None:
            continue
        value, low, high = seen.y[i] or 0.0, seen.low[i] or 0.0, seen.high[i] or 0.0
        if high <= 0:
            continue
        rows.append((x, _over(log, value), _over(log, high) or 0.0, _over(log, low)))
    x, y, low, high = (tuple(column) for column in zip(*rows, strict=True)) if rows else ((), (), (), ())
    return Series(bound.key, bound.label, bound.kind, "ratio", x, y, (), low, high, panel="ratio")


def _over(log10: float, value: float) -> float | None:
    return 10.0 ** min(log10 - math.log10(value), canvas.LARGEST) if value > 0 else None


def draw(spec: Spec, data: FigureData) -> Any:
    """Ratios on a log axis; 1 would be a bound met exactly."""
    width = spec.size or "column"
    figure = canvas.new_figure(width, canvas.ratio_for(1, width, 0.9))
    axes = figure.subplots()
    shown = data.of(panel="ratio")
    canvas.refuse_mixture(shown)
    for index, one in enumerate(shown):
        seen = look(one.key, index)
        free = one.kind == "a_posteriori"
        known = [(x, y) for x, y in zip(one.x, one.y, strict=True) if y is not None]
        least = [(x, low) for x, y, low in zip(one.x, one.y, one.low, strict=True) if y is None and low]
        style: dict[str, Any] = {"ls": "none", "marker": "d", "ms": 5} if free else {"ls": "-", "marker": seen.mark}
        if one.key == "best" and not free:
            style["lw"] = 2.3
        line = axes.plot([x for x, _ in known], [y for _, y in known], color=seen.colour, **style)[0]
        line.set(label=canvas.legend_label(one), gid=canvas.gid(one))
        if least:
            marks = axes.plot(
                [x for x, _ in least], [y for _, y in least], ls="none", marker=(2, 0, 0), color=seen.colour
            )
            marks[0].set(marker="$\\uparrow$", ms=5, gid=canvas.gid(one, "at least"))
            marks[0].set_label("at least (no error)" if index == 0 else "_")
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
    if not ratios:
        return "No error was measured at any m, so every ratio is unbounded from above."
    (low, at_low), (high, at_high) = min(ratios), max(ratios)
    return (
        f"`{best.key}` exceeds what was measured {short(low)}-fold at m = {short(at_low)} and {short(high)}-fold at "
        f"m = {short(at_high)}: the gap closes long before a bound can see it, so ratios grow with m."
    )
