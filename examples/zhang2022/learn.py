"""The learning error does not grow with the input size (X5).

Supervised: the value of one more key from L pairs that share a latent z. Masked: the hidden token of a sequence whose
tokens share a law of their own. In both the Bayes risk falls with L. Models have no positions and weights projected
onto norm balls after every step, so that X5, which has no L in it, holds for the class they are trained in. Computed:
X5 (for masked tokens of the ramp loss of margin 1; for the supervised task only a proxy, as its rows are normal).
Measured: the lower end of the 95% interval of the gap. The slope of the gap against log L at matched m must not be
significantly positive.

    python examples/zhang2022/learn.py [-o figures/gap-vs-L.png]

Trials are kept in --store and not run again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import Interval, Values, fit_slope, mean_interval, run

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import GREEN
from boundcalc.lab.figures.runs import median
from boundcalc.lab.latent.bounds import learning_bound
from boundcalc.lab.train.run import run_sweep
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import Sweep, sweep_from_json
from boundcalc.setting import Architecture, Budget, Norms, Sample, Setting

QUICK: dict[str, Any] = {"L": (4, 8, 16), "m": (32,), "kind": ("masked",), "seeds": 3, "steps": 60, "tests": 512}
TASKS = {"supervised": {"task": "gaussian-linear"}, "masked": {"task": "masked-token", "alpha": 0.5}}
KINDS = ("W_patch", "W_QK", "W_V", "W_1", "readout")
"""Weight matrices that are kept in balls of the spectral norm."""
_ROW_RADIUS = 6.0
"""Rows of the supervised task are normal: nearly all of them are this short."""


def sweep(kind: str, L: tuple[int, ...], m: tuple[int, ...], seeds: int, steps: int, C: float, tests: int) -> Sweep:
    """The trials of one kind of task."""
    balls = {name: ["op", C] for name in KINDS if kind == "supervised" or name != "W_patch"}
    if kind == "masked":
        balls["embedding"] = ["F", C]  # no row of the table is longer than C
    model = {"style": "edelman", "depth": 1, "d": 16, "heads": 2, "positions": "none", "d_head": None}
    raw = {
        "name": f"latent-{kind}",
        "task": TASKS[kind],
        "model": model,
        "train": {"lr": 3e-3, "batch": 32, "steps": steps, "stop_loss": 0.0, "balls": balls},
        "n_test": tests,
        "seeds": seeds,
        "grid": {"task.L": list(L), "m": list(m)},
    }
    return sweep_from_json(raw)


def x5(kind: str, architecture: Architecture, m: int, C: float) -> float:
    """X5 for the class of the trials."""
    rows = kind == "supervised"
    budgets = {name: Budget(op=C) for name in KINDS if rows or name != "W_patch"}
    loss: dict[str, Any] = {"lipschitz": 2.0} if rows else {"margin": 1.0}  # squared error cut at 1: 2-Lipschitz
    if rows:
        architecture = replace(architecture, input_radius=_ROW_RADIUS)
    else:
        budgets["embedding"] = Budget(row=C)
    return learning_bound(Setting(architecture, Norms(budgets=budgets), Sample(n_train=m, delta=0.05, **loss))).value


def slopes(gaps: dict[tuple[int, int], list[float]]) -> dict[Any, Interval]:
    """Slope of the gap against log L: for every m, and for all m together with a level of its own for each."""
    fits: dict[Any, Interval] = {}
    everything: list[Any] = []
    for m in sorted({m for m, _ in gaps}):
        points = np.array([(np.log(L), gap) for (other, L), several in gaps.items() if other == m for gap in several])
        fits[f"m = {m}"] = fit_slope(*points.T)
        everything.append(points - points.mean(0))
    return fits | ({"all m": fit_slope(*np.concatenate(everything).T)} if len(everything) > 1 else {})


def main(
    L: tuple[int, ...] = (8, 32, 128, 512),
    m: tuple[int, ...] = (64, 256),
    kind: tuple[str, ...] = ("masked", "supervised"),
    seeds: int = 10,
    steps: int = 600,
    C: float = 6.0,
    tests: int = 4096,
    store: str = "boundcalc-runs.db",
) -> tuple[Values, Values]:
    """X5 and lower ends of the gaps, by kind, m and L; slopes against 0; gaps of single trials under (..., seed)."""
    computed, measured = Values(), Values()
    for name in kind:
        trials = sweep(name, L, m, seeds, steps, C, tests)
        with Store(Path(store)) as runs:
            run_sweep(trials, runs)
            records = {record.hash: record for record in runs.records()}
        gaps: dict[tuple[int, int], list[float]] = {}
        for trial in trials.trials:
            result = records[trial.hash].result
            if result["status"] == "done":
                length = trial.architecture.seq_len - 1
                gaps.setdefault((trial.m, length), []).append(float(result["gap"]))
                measured[name, trial.m, length, trial.seed] = float(result["gap"])
                computed[name, trial.m, length] = x5(name, trial.architecture, trial.m, C)
        for (size, length), several in gaps.items():
            gap = mean_interval(several)
            measured[name, size, length] = gap.low
            print(f"{name}, m = {size}, L = {length}: gap {gap}")
        for which, slope in slopes(gaps).items():
            verdict = "it rises" if slope.low > 0 else "it does not rise"
            print(f"{name}, {which}: slope of the gap against log L {slope}, {verdict}")
            computed[name, f"slope, {which}"], measured[name, f"slope, {which}"] = 0.0, slope.low
    return computed, measured


def collect(computed: Values, measured: Values) -> Figure:
    """Gaps of single trials over L for masked tokens, and their medians, by m."""
    series: list[Series] = []
    for m in sorted({key[1] for key in measured if key[0] == "masked" and len(key) == 4}):
        points = [(float(key[2]), gap) for key, gap in measured.items() if key[:2] == ("masked", m) and len(key) == 4]
        gaps = {x: [gap for other, gap in points if other == x] for x in sorted({x for x, _ in points})}
        middles = [(x, *median(several)) for x, several in gaps.items()]
        series += [
            Series.of_rows("run", "measured", "gap", points, f"{m}"),
            Series.of_rows("median", "measured", "gap", middles, f"{m}"),
        ]
    everything: list[Any] = []
    for one in (curve for curve in series if curve.key == "run"):
        rows = np.array([(np.log(x), y) for x, y in zip(one.x, one.y, strict=True)])
        everything.append(rows - rows.mean(0))
    slope = fit_slope(*np.concatenate(everything).T)
    rises = "grows" if slope.low > 0 else "does not grow"
    return Figure(
        "gap-vs-L",
        f"The gap {rises} with the input",
        "hidden tokens of sequences whose tokens share a law; one block, width 16, 2 heads, weights in norm balls",
        f"Test error less training error of trained networks against the number L of tokens that inform, at two sample "
        "sizes. Small dots: one network; large dots: medians with 95% bootstrap intervals. Slope against log L at "
        f"matched m: {slope}. X5 bounds it without L, vacuously at these m.",
        "Measured gaps for two sample sizes, on a linear axis from zero, against the length of the input on a "
        f"logarithmic axis. The medians {'rise' if slope.low > 0 else 'stay level or fall'} from the left to the "
        "right.",
        tuple(series),
    )


def draw(figure: Figure) -> Any:
    """Dots and medians, one shade of green for each m."""
    drawn, (axes,) = canvas.sheet(figure, size=(5.0, 2.9))
    panels = list(dict.fromkeys(one.panel for one in figure.series))
    labels = []
    for panel, colour in zip(panels, (GREEN, "#3A8F2F", "#00695C"), strict=False):
        (runs,), (middle,) = figure.of(key="run", panel=panel), figure.of(key="median", panel=panel)
        axes.plot(runs.x, runs.y, ".", ms=3, color=colour, alpha=0.5)
        y = [float(value or 0) for value in middle.y]
        low, high = (
            [value if end is None else end for value, end in zip(y, ends, strict=True)]
            for ends in (middle.low, middle.high)
        )
        spans = [np.subtract(y, low), np.subtract(high, y)]
        axes.errorbar(middle.x, y, yerr=spans, fmt="o-", ms=4, lw=1, elinewidth=1, color=colour)
        labels.append(((middle.x[-1], y[-1]), f"m = {panel}", colour))
    canvas.lengths(axes, figure.series[0].x)
    axes.set(xlabel="tokens L that inform", ylabel="test error less training error")
    axes.set_ylim(bottom=min(0.0, *(float(y or 0) for one in figure.series for y in one.y)))
    canvas.end_labels(axes, labels)
    return drawn


if __name__ == "__main__":
    run(main, collect, draw)
