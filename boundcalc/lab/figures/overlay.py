"""`overlay`: measured errors, certificates of one trained network, and the bound of a class of networks, over m."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.gap import SMALL, curves, least_m, number
from boundcalc.lab.figures.names import GREEN, GREY, in_order, look
from boundcalc.lab.figures.runs import measured
from boundcalc.lab.figures.trials import as_runs, class_of, describe
from boundcalc.lab.train.store import Record
from boundcalc.setting import Setting

BOUNDS = ("best", "published")
METHODS = ("holdout", "p2l", "occam", "pac-bayes")
_VALUES = tuple(round(10 ** (k / 8)) for k in range(32, 65))


def collect(
    trials: Sequence[Record],
    certified: Iterable[Record],
    wanted: Setting,
    bounds: Sequence[str] = (),
    values: Sequence[float] = (),
) -> Figure:
    """Errors of trials, certificates of trials of the same task, and the bounds of the class that holds the trials."""
    runs = as_runs(trials, wanted.sample.margin)
    setting = class_of(trials, wanted)
    seen = measured(runs, "m", "risk")
    names = bounds or BOUNDS
    proved = curves(setting, "n_train", values or _VALUES, names, "risk")
    task = trials[0].config["task"]
    promised = certificates([r for r in certified if r.config["task"] == task], wanted.sample.delta)
    if not promised:
        raise NoSolution("the store has no certificates of this task: `boundcalc sweep ... --certify all` makes them")
    needs = {name: least_m(setting, name, SMALL) for name in names}
    series = (*seen, *promised, *proved)
    facts = {"setting": setting.complete_json(), "needs": needs, "trials": len(trials)}
    caption = (
        "Green: test error of trained networks, small dots one each, large dots medians with 95% bootstrap intervals. "
        "Blue: certificates of one trained network. Red-brown: what is proved for every network of these norms, a "
        "class chosen after training. The axis is logarithmic; bounds of 1 or more are vacuous."
    )
    alt = (
        "Error against the number of training sequences. Measured error falls first, certificates of one network "
        "follow a factor of ten to the right, and the bound of the whole class many orders of magnitude further right."
    )
    return Figure("overlay", title(series, needs), describe(trials), caption, alt, series, facts)


def certificates(records: Iterable[Record], delta: float) -> list[Series]:
    """By method and m: the median and the range of the certified risks; 1 where a certificate was refused."""
    risks_of: dict[str, dict[int, list[float]]] = {}
    for record in records:
        for stored in record.certificates:
            plan, risk = stored["asked"], stored["entry"]["risk"]
            if plan["delta"] == delta and not plan["prefix"] and plan["method"] in METHODS:
                by_m = risks_of.setdefault(plan["method"], {})
                by_m.setdefault(int(record.config["m"]), []).append(1.0 if risk is None else float(risk))
    series: list[Series] = []
    for method in in_order(list(risks_of)):
        risks: Mapping[int, list[float]] = dict(sorted(risks_of[method].items()))
        rows = [(float(m), median(values), min(values), max(values)) for m, values in risks.items()]
        series.append(Series.of_rows(method, "certificate", "risk", rows))
    return series


def _first_below(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The position from which on values stay at most `SMALL`."""
    first = None
    for x, y in sorted(pairs, reverse=True):
        if y > SMALL:
            break
        first = x
    return first


def _sizes(series: Sequence[Series]) -> tuple[float | None, float | None]:
    """The m from which on the measured median, and the best certificate, are at most `SMALL`."""
    seen = next((_first_below(list(one.known().items())) for one in series if one.key == "median"), None)
    certified = [
        at for one in series if one.kind == "certificate" and (at := _first_below(one.informative)) is not None
    ]
    return seen, min(certified, default=None)


def title(series: Sequence[Series], needs: Mapping[str, float | None]) -> str:
    """The claim of the figure: how much more data a promise takes than training does."""
    seen, certified = _sizes(series)
    proved = needs.get("best")
    if seen is None or certified is None or proved is None:
        return "Measured error, certificates and bounds"
    factors = " or ".join(number(float(f"{at / seen:.1g}")) for at in (certified, proved))
    return f"Proof costs {factors} times the data"


def draw(figure: Figure) -> Any:
    """One panel; every curve has its name next to it."""
    drawn, (axes,) = canvas.sheet(figure, size=(5.6, 3.4))
    axes.set(xscale="log", yscale="log", xlabel="training sequences m", ylabel="error on new sequences")
    canvas.percent(axes.yaxis)
    every, middle = figure.of(key="run")[0], figure.of(key="median")[0]
    canvas.runs(axes, every, middle)
    labels: list[tuple[tuple[float, float] | None, str, str]] = []
    silent: list[str] = []
    for one in figure.of(kind="certificate"):
        seen = look(one.key)
        if not one.informative:
            silent.append(seen.name)
            continue
        labels.append((canvas.curve(axes, one), seen.name, seen.colour))
        x, y = zip(*one.informative, strict=True)
        low, high = one.known("low"), one.known("high")
        spans = [[b - low[a] for a, b in zip(x, y, strict=True)], [high[a] - b for a, b in zip(x, y, strict=True)]]
        axes.errorbar(x, y, yerr=spans, fmt="none", ecolor=seen.colour, elinewidth=0.7)
    bounds = [one for one in figure.series if one.promises]
    for one in bounds:
        if canvas.curve(axes, one) is None:
            silent.append(f"{look(one.key).name} stay here up to {number(max(one.x))} sequences")
            continue
        at = next(pair for pair in one.informative if pair[1] < 0.5 or pair is one.informative[-1])
        text = "proved for every network\nof these norms (class\nchosen after training)"
        axes.annotate(text, at, xytext=(16, 0), textcoords="offset points", color=look(one.key).colour, va="center")
    canvas.vacuous(axes, silent, top=4)
    axes.set_xlim(right=max(x for one in bounds for x in one.x) * 20)
    canvas.end_labels(axes, labels)
    seen, certified = _sizes(figure.series)
    axes.axhline(SMALL, color=GREY, lw=0.6, ls=(0, (1, 2)), zorder=1)
    places = [("measured", seen), ("certified", certified), ("proved", figure.facts["needs"].get("best"))]
    marked = [at for _, at in places if at is not None]
    for left, right in itertools.pairwise(marked):
        axes.annotate(
            "", (right, SMALL), (left, SMALL), arrowprops={"arrowstyle": "<->", "lw": 0.8, "shrinkA": 3, "shrinkB": 3}
        )
        factor = f"x{number(float(f'{right / left:.2g}'))}" if right / left >= 10 else f"x{right / left:.2g}"
        middle = math.sqrt(left * right), SMALL
        axes.annotate(factor, middle, xytext=(-2, -4), textcoords="offset points", ha="center", va="top")
    axes.annotate("measured", (0.01, 0.6), xycoords=axes.get_yaxis_transform(), color=GREEN, ha="left", va="bottom")
    sample = figure.facts["setting"]["sample"]
    canvas.note(
        drawn,
        f"{canvas.RUNS} Certificates: median and range over networks.\nBound: training error 0 at margin "
        f"{sample['margin']:g}, delta = {sample['delta']:g}.",
    )
    return drawn
