"""Parity is learned after a plateau, suddenly; from few examples it generalises long after it fits them.

    python examples/edelman2022/parity.py [-o figures/parity.png]     (110 networks: three minutes)
    python examples/edelman2022/parity.py --late                      (150 examples of 16 bits: two minutes)

Computed: the last step at which a seed is not yet 75% right (with --late: the step from which it makes no training
error).
Measured: the first step at which it is 99% right. By seed; the first lies below the second.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from common import TINY_PARITY, Values, preset, run, trained
from parity_growth import draw_growth, growth_of

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import GREEN, GREY
from boundcalc.lab.figures.trials import describe

QUICK = {"quick": True}

LEARNED, BEGUN = 0.01, 0.25


def records(quick: bool, store: Path | None, late: bool) -> list[Any]:
    """One network per seed."""
    tiny = {"name": "parity", "task": {"task": "parity", "T": 6, "s": 2}, **TINY_PARITY, **({"m": 48} if late else {})}
    return trained(tiny if quick else preset("parity-late" if late else "parity"), store)


def first(points: list[dict[str, float]], name: str, limit: float) -> float | None:
    """The first step at which an error is at most so large."""
    return next((point["step"] for point in points if point[name] <= limit), None)


def main(quick: bool = False, store: Path | None = None, late: bool = False) -> tuple[Values, Values]:
    """By seed that learns: a step at which it had not, and the first at which it had."""
    before: Values = {}
    after: Values = {}
    for record in records(quick, store, late):
        points = record.result["curves"]
        learned, fits = first(points, "test_error", LEARNED), first(points, "train_error", 0.0)
        if learned is not None and not (late and fits is None):
            seed = record.config["seed"]
            waiting = [point["step"] for point in points if point["test_error"] > BEGUN and point["step"] < learned]
            before[seed] = float(fits or 0) if late else max(waiting, default=0.0)
            after[seed] = learned
    return before, after


def collect(quick: bool = False, store: Path | None = None, late: bool = False) -> Figure:
    """The accuracy of every seed over training, and (unless `late`) the steps that parities of other sizes take."""
    trials = records(quick, store, late)
    series: list[Series] = []
    learned: list[float | None] = []
    for record in trials:
        points = record.result["curves"]
        x = tuple(float(point["step"]) for point in points)
        y = tuple(1 - float(point["test_error"]) for point in points)
        series.append(Series("seed", "measured", "accuracy", x, y, label=f"seed {record.config['seed']}"))
        learned.append(first(points, "test_error", LEARNED))
    steps = sorted(step for step in learned if step is not None)
    facts: dict[str, Any] = {"learned": learned}
    share = f"{len(steps)} of {len(learned)} networks reach 99%" + (
        f", the median one at step {statistics.median_high(steps):g}" if steps else ""
    )
    caption = f"Left: one line per seed, the median one bold; {share}. "
    if not late:
        waits, laws, text = growth_of(quick, store)
        series += waits
        facts |= laws
        cut = any(learned < seeds for some in laws["learned"].values() for learned, seeds in some)
        caption += "Right: steps until then, median and range over seeds" + (
            "; arrows: beyond the budget. " if cut else ". "
        )
        caption += f"Exponents of T (95%): {text}."
    return Figure(
        "parity",
        "Parity: nothing, then everything",
        describe(trials) if late else f"left: {describe(trials)}; right: s of T bits, 10 networks each",
        caption,
        "Left, accuracy of ten networks over training: flat at one half, then a jump to one. Right, the steps until "
        "that jump grow as a power of the number of bits, the steeper the more bits the parity has.",
        tuple(series),
        facts,
    )


def draw(figure: Figure) -> Any:
    """Left, one line per seed; right, the growth with T and s."""
    both = "laws" in figure.facts
    drawn, panels = canvas.sheet(figure, 1 + both, size=(6.8 if both else 3.6, 2.9))
    axes = panels[0]
    order = sorted(figure.of(key="seed"), key=lambda one: one.x[-1])
    for one in order:
        bold = one is order[(len(order) - 1) // 2]
        axes.plot(
            one.x, one.known().values(), color=GREEN, lw=1.8 if bold else 0.7, alpha=1 if bold else 0.5, gid=one.label
        )
    axes.axhline(0.5, color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    axes.annotate(
        "guessing", (axes.get_xlim()[0], 0.5), xytext=(4, -16), textcoords="offset points", color=GREY, ha="left"
    )
    axes.set(xlabel="training step", ylabel="right on new sequences", ylim=(0, 1.03))
    canvas.percent(axes.yaxis)
    if both:
        draw_growth(panels[1], figure)
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("not before step", "learned at step"))
