"""`attention-mass`: histograms of attention by the size of its weights, over tasks of which few or all positions matter."""

from __future__ import annotations

import itertools
import math
from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import QUIET, finish
from boundcalc.lab.plot.spec import Spec

_ON, _OFF = "on positions that matter (measured)", "on the others (measured)"
_COLUMNS = 3


def collect(spec: Spec) -> FigureData:
    """Trains networks on every task, and sorts their attention by the size of its weights."""
    from boundcalc.lab.train.attending import EDGES, AttendingPlan, attending

    plan = AttendingPlan(steps=spec.whole[0]) if spec.values else AttendingPlan()
    rows = attending(plan)
    x = tuple(math.sqrt(low * high) for low, high in itertools.pairwise(EDGES))
    series: list[Series] = []
    for row in rows:
        series.append(Series("first", _ON, "measured", "share", x, row.mass, panel=row.name))
        series.append(Series("second", _OFF, "measured", "share", x, row.rest, panel=row.name))
    facts: dict[str, Any] = {
        "seeds": plan.seeds,
        "heads": plan.heads,
        "rows": [{k: v for k, v in row.to_json().items() if k not in ("mass", "rest")} for row in rows],
    }
    return FigureData(tuple(series), facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """A panel for each task."""
    facts = data.facts
    rows = -(-len(facts["rows"]) // _COLUMNS)
    figure, places = canvas.sheet(
        spec, len(facts["rows"]), 0.55, usual="wide", wide=0.33 * rows, rows=rows, share_y=True
    )
    for axes, row in zip(places, facts["rows"], strict=False):
        _bars(axes, data.of(panel=row["name"]), first=axes is places[0])
        axes.set_title(row["name"])
        said = f"{row['on_them']:.0%} on {row['matter']} of {row['positions']}\nlooks at {row['looks_at']:.1f}"
        axes.annotate(said, (0.03, 0.97), xycoords="axes fraction", va="top", color=QUIET)
        axes.axvline(1.0, color="#444444", lw=0.7, ls=(0, (1, 1.2)))
        axes.set(xscale="log", ylim=(0, 1))
        axes.set_xticks([2.0**i for i in (-5, -3, -1, 1, 3, 5)], ["1/32", "1/8", "1/2", "2", "8", "32"])
        axes.minorticks_off()
        axes.set_xlabel("weight / even weight")
    for axes in places:
        place = axes.get_subplotspec()
        if place is not None and place.is_first_col():
            axes.set_ylabel("share of attention")
    heads = f"{facts['heads']} heads, by how much each adds"
    about = f"attention of the row that is read, {heads} · {facts['seeds']} networks a task"
    finish(figure, about, title=spec.title)
    return figure


def _bars(axes: Any, shown: list[Series], *, first: bool) -> None:
    """Stacked: what lies on positions that matter, and on it the rest."""
    edges = [x / math.sqrt(2) for x in shown[0].x]
    heights = [[float(y or 0.0) for y in one.y] for one in shown]
    bars = [(one, number) for number, one in enumerate(shown)]
    canvas.draw_stack(axes, bars, edges, heights, named=first, width=[0.92 * x for x in edges], align="edge")


def caption(spec: Spec, data: FigureData) -> str:
    """Where attention is sparse and where it is nearly even."""
    few = [row for row in data.facts["rows"] if row["even"] < 0.5]  # fewer than half matter
    every = [row for row in data.facts["rows"] if row not in few]

    def told(rows: list[dict[str, Any]]) -> str:
        return "; ".join(
            f"{row['name']}: {row['on_them']:.0%} (even attention: {row['even']:.0%}), heads look at {row['looks_at']:.1f} of "
            f"{row['positions']} positions, test error {row['error']:.2g}"
            for row in rows
        )

    return (
        "Each bar is the share of all attention whose weights have that size, 1 being the even weight; filled where the "
        f"position matters. Share on positions that matter, where few do: {told(few)}. Where all do: {told(every)}. Medians "
        "over networks."
    )
