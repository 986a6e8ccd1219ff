"""How far from optimal: a proved floor and the best proved bound of the same gap, over depth, C, width and m.

    python examples/edelman2022/both_sides.py            the table of the README: m = 10^6
    python examples/edelman2022/both_sides.py --all      every m from 10^4 to 10^8, floors of errors less ramp losses,
    and K python examples/edelman2022/both_sides.py -o figures/both-sides.png

Margins are 1/2, or half the largest output where C is below 1. Computed: the best bound; measured against: the floor.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import Values, run

from boundcalc import Setting, evaluate
from boundcalc.base.rounding import down, up
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.floors import floor_of
from boundcalc.engine.search import Search
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import GREY, look
from boundcalc.theorems.policies import POLICIES

QUICK = {"quick": True}
DEPTHS, KNOBS, WIDTHS, SAMPLES = (1, 2, 4), (0.5, 1.0, 2.0), (64, 768), (10**4, 10**5, 10**6, 10**7, 10**8)


def at(depth: int, knob: float, d: int, m: int) -> Setting:
    """The setting of a cell."""
    margin = min(1.0, knob ** (2 * depth + 1)) / 2
    return Setting.of("edelman", depth=depth, C=knob, d=d, n_train=m, margin=margin)


def bounds(setting: Setting) -> tuple[float, float, float | None]:
    """The best gap bound, the best by covers alone, and K's (None where it does not apply); at most 1."""
    evaluator = Evaluator(setting)
    covers = Search(evaluator.paid, replace(POLICIES["best"], comparison=False), log_union=evaluator.log_union)
    compared = evaluator.value("comparison")
    k = None if compared.refusal is not None else compared.gap
    return evaluator.value("best").gap, evaluator.value("best", covers, risks=False).gap, k


def floor(setting: Setting, *, errors: bool = False) -> float:
    """The floor, 0 where none is known."""
    bound = floor_of(setting, "errors" if errors else "gap")
    return 0.0 if bound is None else bound.value


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """The best bound and the floor of every cell at m = 10^6: no floor is above a bound."""
    del store
    few = slice(1) if quick else slice(None)
    places = [(*cell, 10**6) for cell in itertools.product(DEPTHS[few], KNOBS[few], WIDTHS[few])]
    return {place: bounds(at(*place))[0] for place in places}, {place: floor(at(*place)) for place in places}


def table(samples: Sequence[int], *, whole: bool) -> Iterator[Sequence[str]]:
    """A row for each depth, C and m; the whole table has floors of errors less ramp losses, and K."""
    headings = ["floor", *(["floor, errors", "K"] if whole else []), "bound", "ratio", "covers alone"]
    yield ["depth", "C", "m", *(f"{what}, d {d}" for d in WIDTHS for what in headings)]
    yield ["---:"] * (3 + len(WIDTHS) * len(headings))
    for depth, knob, m in itertools.product(DEPTHS, KNOBS, samples):
        row = [str(depth), f"{knob:g}", f"10^{len(str(m)) - 1}"]
        for d in WIDTHS:
            setting = at(depth, knob, d, m)
            (best, covers, k), low = bounds(setting), floor(setting)
            row.append(down(low, 3))
            if whole:
                row += [down(floor(setting, errors=True), 3), "-" if k is None else up(k, 3)]
            row += [up(best, 3), "-" if best >= 1 else up(best / low, 2), up(covers, 3)]
        yield row


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Bounds and floors along m for each depth, at C = 1 and width 64."""
    del store
    sizes = [10**5, 10**7] if quick else [round(10 ** (k / 4)) for k in range(12, 33)]
    series: list[Series] = []
    ratios: list[float] = []
    for depth in DEPTHS:
        settings = [at(depth, 1.0, 64, m) for m in sizes]
        uppers, lowers = [evaluate(setting).gap for setting in settings], [floor(setting) for setting in settings]
        x = tuple(float(m) for m in sizes)
        series.append(Series("best", "bound", "gap", x, tuple(uppers), label=f"depth {depth}", panel=f"{depth}"))
        series.append(Series("gap-floor", "reference", "gap", x, tuple(lowers), panel=f"{depth}"))
        ratios.append(uppers[-1] / lowers[-1])
    apart = ", ".join(f"{ratio:.2g}" for ratio in ratios)
    return Figure(
        "both-sides",
        f"Floor and bound are {apart} times apart",
        f"width 64, 1 head, T = 512, norms at most 1, margin 0.5; 1, 2 and 4 blocks; factors at m = {sizes[-1]:,}",
        "The best proved bound of the generalization gap (red-brown) and a proved floor under every bound of this kind "
        "(grey), for 1, 2 and 4 blocks. The smallest possible bound lies in the shaded band. It is about the worst "
        "network and the worst distribution; trained networks do far better.",
        f"Three panels of bound and floor against the number of training sequences on logarithmic axes. Both fall like "
        f"one over the square root of m; at the right end they are {apart} times apart.",
        tuple(series),
    )


def draw(figure: Figure) -> Any:
    """A panel for each depth."""
    drawn, panels = canvas.sheet(figure, len(DEPTHS), size=(6.8, 2.6), sharey=True)
    for axes, depth in zip(panels, DEPTHS, strict=True):
        (bound,), (low,) = figure.of(key="best", panel=f"{depth}"), figure.of(key="gap-floor", panel=f"{depth}")
        axes.set(xscale="log", yscale="log", xlabel="training sequences m")
        for one, (right, above) in ((bound, (4, 5)), (low, (-6, -12))):
            if canvas.curve(axes, one) is not None:
                place = one.informative[len(one.informative) // 2]
                ink, where = look(one.key).colour, "left" if right > 0 else "right"
                axes.annotate(
                    look(one.key).name, place, xytext=(right, above), textcoords="offset points", color=ink, ha=where
                )
        canvas.between(axes, bound, low)
        canvas.vacuous(axes, [])
        axes.set_title(bound.label, loc="right", color=GREY)
    panels[0].set_ylabel("generalization gap")
    return drawn


if __name__ == "__main__":
    if {"-o", "--from", "--quick"} & {*sys.argv}:
        run(main, collect, draw, ("bound", "floor"))
    else:
        whole = "--all" in sys.argv
        for row in table(SAMPLES if whole else (10**6,), whole=whole):
            print("| " + " | ".join(row) + " |")
