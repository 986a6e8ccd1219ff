"""`parity-growth`: the steps until a parity is learned, against T, for each number of bits that matter."""

from __future__ import annotations

import math
import statistics
from contextlib import suppress
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.curves import LEARNED
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import ORDINALS
from boundcalc.lab.plot.words import many, task_words
from boundcalc.lab.train.waiting import Waited, growth


def collect(spec: Spec) -> FigureData:
    """The median over seeds of the step at which 99% are right, and its range; seeds that never get there count as latest."""
    asked = spec if spec.runs else spec.but(runs={"task": "parity"})
    chosen = runs.read(asked, vary=("T", "s"), online=True)
    series: list[Series] = []
    places: list[dict[str, Any]] = []
    laws: dict[str, Any] = {}
    for look, (s, group) in zip(ORDINALS, runs.grouped(chosen, "s"), strict=False):
        rows: list[tuple[float, tuple[float, ...], int]] = []
        waited: dict[float, list[Waited]] = {}
        most = max(float(p["step"]) for record in group for p in record.result["curves"])
        for T, some in runs.grouped(group, "T"):
            waited[T] = [_waited(record) for record in some]
            steps = sorted(one.until for one in waited[T])
            reached = [step for step in steps if math.isfinite(step)]
            middle = statistics.median_low(steps)
            if middle in reached:
                rows.append((T, (middle, steps[0], min(most, steps[-1])), len(steps)))
            known = middle if middle in reached else None
            places.append({"s": s, "T": T, "learned": len(reached), "of": len(steps), "median": known})
        if rows:
            series.append(Series.measured(look, f"s = {s:g}", "steps", rows))
            with suppress(NoSolution):
                law = growth(waited)
                laws[f"{s:g}"] = vars(law)
                label = f"$T^{{{law.exponent:.1f}}}$, s = {s:g}"
                x = tuple(T for T, _, _ in rows)
                series.append(Series(look, label, "fit", "steps", x, tuple(law(T) for T in x)))
    return runs.shown(series, chosen, places=places, laws=laws)


def _waited(record: Any) -> Waited:
    """Between which looks a trial learned."""
    steps = [float(p["step"]) for p in record.result["curves"]]
    right = (k for k, p in enumerate(record.result["curves"]) if 1 - p["test_error"] >= LEARNED)
    first = next(right, None)
    if first is None:
        return Waited(steps[-1], math.inf)
    return Waited(steps[first - 1] if first else 0.0, steps[first])


def draw(spec: Spec, data: FigureData) -> Any:
    """Medians and ranges."""
    figure, (axes,) = canvas.sheet(spec, 1, 0.8, wide=0.8)
    axes.set_yscale("log")
    canvas.draw_all(axes, data.series, canvas.Heights())
    canvas.plain_lengths(axes, [float(place["T"]) for place in data.facts["places"]])
    canvas.plain_ticks(axes)
    axes.set(xlabel="T, bits", ylabel="steps until 99% are right")
    task = {**data.facts["task"], "s": None}
    about = f"{task_words(task, but=('T', 'm'))} · fresh batches · bars from the first to the last seed"
    finish(figure, about, title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Steps by place, and where seeds fail."""
    parts = [
        f"{place['median']:g} steps at s = {place['s']:g}, T = {place['T']:g}"
        + ("" if place["learned"] == place["of"] else f" ({place['learned']} of {many(place['of'], 'seed')} learn)")
        if place["median"] is not None
        else f"none by the median at s = {place['s']:g}, T = {place['T']:g} ({place['learned']} of {place['of']} learn)"
        for place in data.facts["places"]
    ]
    text = f"Median over seeds of the step from which 99% are right: {'; '.join(parts)}."
    laws = [
        f"T^{law['exponent']:.2f} [{law['low']:.2f}, {law['high']:.2f}] at s = {s}"
        for s, law in data.facts["laws"].items()
    ]
    if not laws:
        return text
    return (
        f"{text} They grow like {', '.join(laws)} (95% bootstrap intervals; a trial that never learned counts as one that "
        "would have later)."
    )
