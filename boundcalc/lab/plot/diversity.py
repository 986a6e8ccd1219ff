"""`kappa`: what the diversity of pretext tasks is worth downstream, beside X6."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import short

_REPETITIONS = 50
_HEADS = {
    "induced": ("first", "head $wM^+$"),
    "best": ("second", "head of least bound"),
    "fitted": ("third", "head fitted to labels"),
}


def collect(spec: Spec) -> FigureData:
    """Downstream errors of three heads, and X6 for two of them, by the condition number."""
    from boundcalc.lab.latent.experiments.transfer import TransferPlan, transfer

    rows = transfer(TransferPlan(repetitions=spec.repetitions or _REPETITIONS))
    within = [row for row in rows if math.isfinite(row.kappa)]
    beyond = [row for row in rows if not math.isfinite(row.kappa)]
    x = tuple(row.kappa for row in within)
    series: list[Series] = []
    for name, (key, label) in _HEADS.items():
        found = [(row.kappa, getattr(row, name), 0) for row in within]
        series.append(Series.measured(key, label, "downstream error", found))
        if name != "fitted":
            bounds = tuple(row.bound if name == "induced" else row.best_bound for row in within)
            label = "X6, $wM^+$" if name == "induced" else "X6, least"
            series.append(Series(key, label, "bound", "downstream error", x, bounds))
    facts = {
        "pretext": [row.pretext.value for row in within],
        "violations": sum(row.violations for row in rows),
        "repetitions": spec.repetitions or _REPETITIONS,
        "beyond": [
            {"best": row.best.value, "bound": row.best_bound, "fitted": row.fitted.value, "reason": row.reason}
            for row in beyond
        ],
    }
    return FigureData(tuple(series), facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """Errors and bounds on log axes."""
    figure, (axes,) = canvas.sheet(spec, 1, 0.9)
    canvas.draw_all(axes, data.series, canvas.Heights())
    for line in axes.lines:
        if line.get_gid() == "downstream error:first:measured":
            line.set(markersize=6, markerfacecolor="none")  # a ring around the marks that coincide with it
    axes.set(xscale="log", yscale="log", xlabel=r"$\kappa = |wM^+|$", ylabel="downstream squared error")
    about = f"linear pretext tasks, Gaussian rows · {data.facts['repetitions']} runs a place"
    finish(figure, about, title=spec.title, words={"measured": "measured, 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What kappa costs, and what is left where it is infinite."""
    by_kind = {(s.key, s.kind): s for s in data.series}
    seen, bound = by_kind["first", "measured"], by_kind["first", "bound"]
    above = [b / y for b, y in zip(bound.y, seen.y, strict=True) if b and y]
    text = (
        f"At an unchanged pretext error the downstream error of the head wM^+ goes from {short(seen.y[0] or 0)} at "
        f"kappa = {short(seen.x[0])} to {short(seen.y[-1] or 0)} at kappa = {short(seen.x[-1])}; X6 is {min(above):.1f} "
        f"to {max(above):.1f} times above it, and was exceeded in {data.facts['violations']} runs."
    )
    for row in data.facts["beyond"]:
        text += (
            f" Where the pretext tasks miss the downstream direction kappa is infinite and wM^+ has no bound; the head "
            f"of least bound still has one, {short(row['bound'])}, against {short(row['best'])} measured."
        )
    return text
