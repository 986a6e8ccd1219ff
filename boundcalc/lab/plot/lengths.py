"""`gap-vs-L`: gaps of trained attention models against the input size, beside bounds with and without log T."""

from __future__ import annotations

from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import rounded_up, task_words

BOUNDS = {"zhang2022": "X5, no T", "closed": "closed form, log T"}
_DEFAULT_RUNS = {"task": "masked-token"}
_DELTA = 0.05
_LOSSES = {"masked": "of the ramp loss, $\\gamma$ = 1", "supervised": "of the squared error cut at 1"}
"""What the bounds are of, by kind of task."""


def collect(spec: Spec) -> FigureData:
    """Measured gaps by L and m; X5 and the closed form for the class that the models were kept in by training.

    For tokens they bound the gap of the ramp loss of margin 1, not that of errors, so they have a panel of their own.
    """
    from boundcalc.lab.latent.experiments.learn import TASKS, LearnPlan, flatness, gap_points, gap_rows, with_bounds

    asked = spec if spec.runs else spec.but(runs=_DEFAULT_RUNS)
    chosen = runs.read(asked, vary=("T", "m"))
    if runs.where(chosen[0], "task") not in TASKS.values():
        raise NoSolution(f"gap-vs-L is about latent-variable tasks: `{runs.make_runs(asked)}` trains on them")
    radius = chosen[0].config["optimisation"]["balls"].get("W_QK", (None, None))[1]
    points = gap_points(record.to_json() for record in chosen)
    rows = gap_rows(points)
    if not rows:
        raise NoSolution(f"every L and m needs two trials: `{runs.make_runs(asked)}` trains more")
    models = {runs.where(record, "T"): record.trial.architecture for record in chosen}
    series: list[Series] = []
    for m in sorted({row.m for row in rows}):
        own = [row for row in rows if row.m == m]
        x = tuple(float(row.length) for row in own)
        seen = [(row.length, row.gap, row.trials) for row in own]
        series.append(Series.measured("measured", "measured, 95% interval", "gap", seen, panel=f"m = {m}"))
        if radius is None or m != rows[0].m:
            continue  # free weights are in no class fixed before the data; divided by the first value, m hardly matters
        bounded = [with_bounds(row, LearnPlan(C=radius), models[row.length], _DELTA) for row in own]
        # rows of the supervised task are normal: no radius holds for all, and what assumes one is a proxy
        kind = "proxy" if own[0].kind == "supervised" else "bound"
        for key, values in (("zhang2022", [r.x5 for r in bounded]), ("closed", [r.log_t for r in bounded])):
            sizes = [value or 1.0 for value in values]
            series.append(Series.capped(key, BOUNDS[key], "ramp gap", x, sizes, kind=kind, panel="growth"))
    slopes = [found.to_json() for found in flatness(points)]
    return runs.shown(series, chosen, kind=rows[0].kind, slopes=slopes, radius=radius, delta=_DELTA)


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel per m, and one for how bounds, or proxies, change."""
    names = list(dict.fromkeys(s.panel for s in data.of(kind="measured")))
    growth = data.of(panel="growth")
    count = len(names) + bool(growth)
    figure, places = canvas.sheet(spec, count, 0.8)
    drawn = [
        v for s in data.of(kind="measured") for v in (*s.known("low").values(), *s.known("high").values()) if v > 0
    ]
    ends = (0.8 * min(drawn), 1.0)  # the same for all m: what shrinks with m is seen to
    for axes, name in zip(places, names, strict=False):
        shown = data.of(panel=name)
        heights = canvas.Heights()
        heights.dress(axes)
        canvas.draw_all(axes, shown, heights)
        axes.set(xlabel="L, tokens that inform", ylabel="generalization gap", title=name, ylim=ends)
        canvas.plain_lengths(axes, [x for s in shown for x in s.x])
        canvas.draw_band(axes, shown, heights)
        canvas.plain_ticks(axes)
    if growth:
        canvas.draw_growth(places[-1], growth)
        places[-1].set(xlabel="L, tokens that inform", title=f"growth alone ({names[0]})")
        canvas.plain_lengths(places[-1], [x for s in growth for x in s.x])
    task, radius = data.facts["task"], data.facts["radius"]
    about = task_words(task, but=("T", "m"))
    if radius is not None:
        about += f" · every norm kept at most {radius:g} by training"
    if growth:
        bounds = "proxies" if data.of(kind="proxy") else "bounds"
        about += f" · {bounds} {_LOSSES[data.facts['kind']]}, $\\delta$ = {data.facts['delta']:g}"
    finish(figure, about, title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Whether the gap rises with L, and what the bounds do."""
    facts = data.facts
    parts: list[str] = []
    for found in facts["slopes"]:
        if found["m"] is None:
            continue
        value, low, high = found["slope"]
        parts.append(f"by {value:.3f} [{low:.3f}, {high:.3f}] at m = {found['m']}")
    rises = any(found["rises"] for found in facts["slopes"])
    verdict = "it grows" if rises else "it does not grow"
    changes = f"Per unit of log L the gap measured changes {', '.join(parts)}: {verdict}." if parts else ""
    words: list[str] = []
    for one in data.of(panel="growth"):
        change = (one.log10[-1] or 0.0) - (one.log10[0] or 0.0)
        grows = "is constant" if abs(change) < 1e-9 else f"grows {10**change:.3g}-fold"
        size = "" if one.kind == "proxy" else f", at {rounded_up(10 ** (one.log10[0] or 0.0))} uncapped"
        words.append(f"{one.label.partition(',')[0]} {grows}{size}")
    if words:
        proxies = bool(data.of(kind="proxy"))
        what = (
            "Proxies of X5 and of the closed form" if proxies else "X5 and the closed form, which bound the ramp loss,"
        )
        changes += f" {what} from L = {data.series[0].x[0]:g} to {data.series[0].x[-1]:g}: {'; '.join(words)}."
    bounds = data.of(kind="bound")
    if bounds and all(all(s.vacuous) for s in bounds):
        changes += " Both are vacuous at this m: the figure shows the absence of growth, not tightness."
    return changes
