"""`gap-slopes`: how a gap grows with m, T and C, promised for a class of norm balls and met by members of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.gap import AXES
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.predicted import curves
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import setting_words, short
from boundcalc.setting import Setting

_DEFAULT_BOUNDS = ("best", "trauger", "log-T")
_AXES = {axis: AXES[f"gap-vs-{axis}"] for axis in ("m", "T", "C")}


def collect(spec: Spec) -> FigureData:
    """Gaps of members fitted to coin tosses, and the bounds of their class, along three axes."""
    from boundcalc.lab.train.slopes import SlopesPlan, fitted

    plan = SlopesPlan()
    if spec.values:
        plan = replace(plan, samples=spec.whole)
    if spec.repetitions:
        plan = replace(plan, seeds=spec.repetitions // plan.starts)
    base = plan.setting(plan.m, plan.T, plan.C)
    bounds = spec.bounds or _DEFAULT_BOUNDS
    series: list[Series] = []
    slopes: dict[str, dict[str, float]] = {}
    known: dict[tuple[int, int, float], Any] = {}
    for axis, places in plan.places.items():
        x = tuple(float({"m": m, "T": T, "C": C}[axis]) for m, T, C in places)
        for place in places:
            if place not in known:
                known[place] = fitted(plan, *place)
        found = [known[place] for place in places]
        gaps = [(at, one.gap, plan.seeds) for at, one in zip(x, found, strict=True)]
        seen = Series.measured("measured", "members of the class", "gap", gaps)
        here = [replace(one, panel=axis) for one in (seen, *curves(base, _AXES[axis].field, x, bounds, ("gap",)))]
        series += here
        slopes[axis] = {one.key: slope for one in here if (slope := _slope(one)) is not None}
    facts = {
        "setting": base.to_json(),
        "slopes": slopes,
        "largest": max(one.largest for one in known.values()),
        "seeds": plan.seeds,
        "starts": plan.starts,
    }
    return FigureData(tuple(series), facts)


def _slope(one: Series) -> float | None:
    """Of log gap in log of the axis, by least squares over the places where the value says something."""
    rows = [
        (math.log(x), math.log(y))
        for x, y, empty in zip(one.x, one.y, one.vacuous, strict=True)
        if y is not None and y > 0 and not empty
    ]
    if len(rows) < 2:
        return None
    centre = sum(x for x, _ in rows) / len(rows)
    return sum((x - centre) * y for x, y in rows) / sum((x - centre) ** 2 for x, _ in rows)


def draw(spec: Spec, data: FigureData) -> Any:
    """A panel for each axis, the same heights in all."""
    figure, places = canvas.sheet(spec, 3, 0.95, share_y=True)
    for axes, (name, axis) in zip(places, _AXES.items(), strict=True):
        shown = data.of(panel=name)
        heights = canvas.Heights.for_series(shown, uncapped=spec.uncapped)
        heights.dress(axes)
        canvas.few_lengths(axes, [x for one in shown for x in one.x])
        canvas.draw_all(axes, shown, heights)
        axes.set(xlabel=axis.words, ylabel="gap of the ramp loss")
        canvas.draw_band(axes, shown, heights)
    setting = Setting.from_json(data.facts["setting"])
    finish(figure, f"labels are coin tosses · {setting_words(setting)}", title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Predicted and measured slopes side by side."""
    facts = data.facts
    setting = Setting.from_json(facts["setting"])
    parts = [f"in {axis}: {_told(slopes)}" for axis, slopes in facts["slopes"].items()]
    silent = sorted({one.key for one in data.of(kind="bound") if not one.telling})
    text = (
        "The gap of a class of norm balls fixed before the data: what is proved, and what members that were fitted to coin "
        f"tosses have (the best of {facts['starts']} on each of {facts['seeds']} samples; no certified norm above "
        f"{facts['largest']:.5f} of its limit). Slopes of log gap, {'; '.join(parts)}, around m = "
        f"{short(setting.sample.n_train)}, T = {setting.architecture.seq_len}, C = {setting.norms.C:g}."
    )
    return text + (f" {', '.join(silent)} says nothing at these m." if silent else "")


def _told(slopes: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {slope:+.2f}" for name, slope in slopes.items())
