"""`parity`: loss and error over training, and the step at which they fall."""

from __future__ import annotations

import statistics
from typing import Any

from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import many, task_words

_DEFAULT_RUNS = {"task": "parity"}
LEARNED, BEGUN = 0.99, 0.75
_ALL = ("train_loss", "test_loss", "test_error", "train_error")


def collect(spec: Spec) -> FigureData:
    """The curves of every trial, as they were recorded."""
    asked = spec if spec.runs else spec.but(runs=_DEFAULT_RUNS)
    online = asked.runs.get("m", 0) == 0
    chosen = runs.read(asked, vary="seed", online=online)
    series: list[Series] = []
    steps: list[int | None] = []
    lengths: list[int | None] = []
    fitted: list[int | None] = []
    for record in chosen:
        points = record.result["curves"]
        x = tuple(float(p["step"]) for p in points)
        for quantity in ("train_loss", "test_loss", "test_error") if online else _ALL:
            panel = "loss" if quantity.endswith("loss") else "error"
            name = "test" if quantity.startswith("test") else "fresh batches" if online else "training sample"
            y = tuple(float(p[quantity]) for p in points)
            series.append(
                Series(quantity, f"{name}, seed {record.config['seed']}", "measured", quantity, x, y, panel=panel)
            )
        learned = next((p["step"] for p in points if 1 - p["test_error"] >= LEARNED), None)
        begun = next((p["step"] for p in points if 1 - p["test_error"] >= BEGUN), None)
        steps.append(learned)
        fitted.append(next((p["step"] for p in points if p["train_error"] == 0), None))
        lengths.append(None if learned is None or begun is None else learned - begun)
    facts = {} if online else {"fitted": fitted}
    return runs.shown(series, chosen, learned=steps, transition=lengths, online=online, **facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, the loss of every seed; right, its test error; heavier, the seed that learns in the middle of all."""
    figure, (loss, error) = canvas.sheet(spec, 2, 0.7)
    _bundle(loss, data.of(quantity="train_loss"), "#D55E00", "training loss")
    _bundle(loss, data.of(quantity="test_loss"), "#0072B2", "test loss", dashes=(0, (4, 1.2)))
    _bundle(error, data.of(quantity="test_error"), "#111111", "test error")
    if not data.facts["online"]:
        _bundle(error, data.of(quantity="train_error"), "#D55E00", "training error", dashes=(0, (4, 1.2)))
    loss.set(yscale="log", xlabel="training step", ylabel="loss")
    drawn = [y for series in data.of(panel="loss") for y in series.y if y]
    loss.set_ylim(0.6 * min(drawn), 1.6 * max(drawn))
    canvas.plain_ticks(loss)
    error.set(xlabel="training step", ylabel="test error" if data.facts["online"] else "error", ylim=(-0.03, None))
    error.axhline(0.5, color="#666666", lw=0.9, ls=(0, (1, 1.2)), label="guessing (reference)", gid="guessing")
    reached = sorted(s for s in data.facts["learned"] if s is not None)
    if reached:
        marks = error.plot(reached, [1 - LEARNED] * len(reached), ls="none", marker="o", color="#009E73", ms=3.4)[0]
        marks.set(label="a seed reaches 99% (measured)", markerfacecolor="white", zorder=4, gid="learned")
    finish(figure, f"{task_words(data.facts['task'])}: a line a seed, heavy the median one", title=spec.title)
    return figure


def _bundle(axes: Any, series: list[Series], colour: str, label: str, dashes: Any = "-") -> None:
    """One thin line per trial, and one heavier: the trial that learns in the middle of all."""
    order = sorted(series, key=lambda s: len(s.x))
    middle = order[len(order) // 2] if order else None
    for one in series:
        heavy = one is middle
        line = axes.plot(one.x, canvas.known(one.y), color=colour, ls=dashes, lw=1.7 if heavy else 0.5)[0]
        line.set_alpha(1 if heavy else 0.45)
        line.set(gid=canvas.gid(one), zorder=3 if heavy else 2)
        line.set_label(f"{label} (measured)" if heavy else "_")


def caption(spec: Spec, data: FigureData) -> str:
    """When the transition comes and how long it takes."""
    steps = [s for s in data.facts["learned"] if s is not None]
    count = len(data.facts["learned"])
    if not steps:
        return f"None of {many(count, 'trial')} reaches 99% within the steps allowed."
    reach = (
        f"{len(steps)} of {many(count, 'trial')} reach 99% test accuracy, at steps {min(steps)} to {max(steps)} "
        f"(median {statistics.median(steps):g})."
    )
    if not data.facts["online"]:
        return f"{reach} {_late(data)}"
    lengths = [s for s in data.facts["transition"] if s is not None]
    return f"{reach} From 75% on this takes at most {max(lengths)} steps, however long they waited: the transition is sudden."


def _late(data: FigureData) -> str:
    """How long after the last training error the test error falls."""
    pairs = [
        (fit, learned)
        for fit, learned in zip(data.facts["fitted"], data.facts["learned"], strict=True)
        if fit is not None and learned is not None
    ]
    late = [learned - fit for fit, learned in pairs if learned > fit]
    if not late:
        return "None of them was right on all its training examples before that: generalisation is not late here."
    return (
        f"{many(len(late), 'trial')} had no training error left before that, at a median step of "
        f"{statistics.median(fit for fit, learned in pairs if learned > fit):g}, and generalise {min(late)} to {max(late)} "
        f"steps later (median {statistics.median(late):g})."
    )
