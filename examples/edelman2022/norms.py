"""How bounds grow with the norms and with depth: what is cheap below norm 1, and what depth costs.

    python examples/edelman2022/norms.py -o figures/norms.png

Computed: the best bound; measured against: the proved floor under it; by axis and value.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from common import Values, run

from boundcalc import Setting
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.gap import curves
from boundcalc.lab.figures.names import GREY, look

QUICK = {"quick": True}
SETTING = Setting.of("edelman", depth=2)
AXES: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "C": ("C", "norm budget C of every matrix", tuple(round(2 ** (k / 4), 4) for k in range(-8, 13))),
    "depth": ("depth", "depth (blocks), at C = 1", tuple(range(1, 13))),
}
BOUNDS = ("best", "T-free", "parameters")


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Three bounds and the floor along C and along depth."""
    del store
    series: list[Series] = []
    for letter, (field, _, values) in AXES.items():
        some = values[:: 4 if letter == "C" else 6] if quick else values
        series += [replace(one, panel=letter) for one in curves(SETTING, field, some, BOUNDS)]
    best = {one.panel: one.known() for one in series if one.key == "best"}
    below, above = (best["C"][1.0] / best["C"][min(best["C"])], best["C"][max(best["C"])] / best["C"][1.0])
    first, last = min(best["depth"]), max(best["depth"])
    deeper = best["depth"][last] / best["depth"][first]
    title = f"Small norms gain {below:,.0f}-fold; {last:g} blocks cost {deeper:.0f}-fold"
    return Figure(
        "norms",
        title,
        "width 64, 1 head, T = 512, m = 1,000,000, margin 0.12; left: depth 2, right: norms at most 1",
        "Bounds of the generalization gap and the proved floor under them. Below C = 1 (dotted) the best bound falls "
        f"fast, above it grows only {above:.1f}-fold, as the number of weights bounds the class. From {first:g} to "
        f"{last:g} blocks it grows {deeper:.0f}-fold at C = 1.",
        "Two panels with bounds on logarithmic axes, against the norm budget and against depth. The best bound rises "
        "steeply up to norm 1 and flattens above; with depth it grows steadily; the floor lies far below.",
        tuple(series),
    )


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """The best bound, and the floor, by axis and value: no floor is above a bound."""
    figure = collect(quick, store)

    def values(key: str) -> Values:
        return {(one.panel, x): y for one in figure.of(key=key) for x, y in one.known().items()}

    floors = values("gap-floor")
    return {place: y for place, y in values("best").items() if place in floors}, floors


def draw(figure: Figure) -> Any:
    """Two panels with one axis of values."""
    drawn, panels = canvas.sheet(figure, 2, size=(6.8, 2.8), sharey=True)
    for axes, (letter, (_, words, _)) in zip(panels, AXES.items(), strict=True):
        shown = {one.key: one for one in figure.of(panel=letter)}
        axes.set(yscale="log", xlabel=words)
        if letter == "C":
            canvas.lengths(axes, [2.0**k for k in range(-2, 4)])
            axes.axvline(1, color=GREY, lw=0.8, ls=(0, (1, 1.5)), zorder=0.4)  # below the vacuous band
        ends = [(canvas.curve(axes, one), look(key).name, look(key).colour) for key, one in shown.items()]
        canvas.between(axes, shown["best"], shown["gap-floor"])
        canvas.vacuous(axes, [])
        if letter == "depth":
            canvas.end_labels(axes, ends)
    panels[0].set_ylabel("generalization gap")
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("bound", "floor"))
