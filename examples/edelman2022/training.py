"""What changes when a conjunction is learned: test accuracy, attention on the true bits, and the norm of W_QK, over
training.

    python examples/edelman2022/training.py [-o figures/training.png]     (220 networks: three minutes)

The networks are the same up to the step at which they are stopped. Computed: the share of its attention that the best
head would put on the true bits if attention were even; measured: its median over seeds; by training step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import TINY, Values, by, preset, run, trained

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import GREEN, GREY
from boundcalc.lab.figures.runs import median
from boundcalc.lab.figures.trials import describe

QUICK = {"quick": True}

STEPS = [1, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200]
STRIPS = {
    "accuracy": "right on new sequences",
    "attention": "attention of the best\nhead on the true bits",
    "norm": "spectral norm of W_QK\n(largest head)",
}


def records(quick: bool, store: Path | None) -> list[Any]:
    """Networks stopped after more and more steps, 20 seeds each."""
    sweep = preset("conjunction", name="training", seeds=20, grid={"T": 128, "m": 80, "train.steps": STEPS})
    if quick:
        sweep = {"name": "training", "task": {"task": "conjunction", "s": 3}, **TINY, "train": dict(TINY["train"])}
        sweep |= {"seeds": 3, "grid": {"T": 16, "m": 64, "train.steps": [1, 10, 100]}}
    sweep["train"]["stop_loss"] = 0.0
    return trained(sweep, store)


def strip(record: Any) -> dict[str, float]:
    """The three numbers of one network."""
    budgets = record.result["norms"]["budgets"]
    return {
        "accuracy": 1 - record.result["test"]["error"],
        "attention": record.result["attention"][0]["best_head"],
        "norm": max(float(b["op"]) for key, b in budgets.items() if key.partition("[")[0] == "W_QK"),
    }


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Every seed, and medians with bootstrap intervals, over training steps."""
    trials = records(quick, store)
    series: list[Series] = []
    groups = {step: [strip(record) for record in some] for step, some in by(trials, "steps").items()}
    for name in STRIPS:
        runs = [(float(step), one[name]) for step, some in groups.items() for one in some]
        middles = [(float(step), *median([one[name] for one in some])) for step, some in groups.items()]
        series.append(Series.of_rows("run", "measured", name, runs))
        series.append(Series.of_rows("median", "measured", name, middles))
    task = trials[0].config["task"]
    facts = {"even": task["s"] / (task["T"] + 1)}
    title = "Attention finds the true bits when the error falls"
    caption = (
        "Three measurements over training: accuracy on new sequences, attention of the best head on the three true "
        "bits, and the spectral norm of W_QK. Small dots: one network each; large dots: medians with 95% bootstrap "
        "intervals. All three rise at the same steps."
    )
    alt = (
        "Three panels over training steps. Accuracy, attention on the true bits and the norm of W_QK stay low for "
        "about a hundred steps and then rise together."
    )
    return Figure("training", title, describe(trials), caption, alt, tuple(series), facts)


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Even attention, and the median attention of the best head, on the true bits, by training step."""
    figure = collect(quick, store)
    (middle,) = figure.of(key="median", quantity="attention")
    return {x: figure.facts["even"] for x in middle.x}, middle.known()  # type: ignore[return-value]


def draw(figure: Figure) -> Any:
    """Three panels over training steps."""
    drawn, panels = canvas.sheet(figure, 3, size=(6.8, 2.3))
    for axes, (name, words) in zip(panels, STRIPS.items(), strict=True):
        (runs,), (middle,) = figure.of(key="run", quantity=name), figure.of(key="median", quantity=name)
        canvas.runs(axes, runs, middle)
        axes.plot(middle.x, middle.known().values(), color=GREEN, lw=1)
        axes.set(xlabel="training step", ylabel=words)
        if name != "norm":
            canvas.percent(axes.yaxis)
            axes.set_ylim(-0.03, 1.03)
    panels[1].axhline(figure.facts["even"], color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    even = (0.0, figure.facts["even"])
    words = "if attention\nwere even"
    panels[1].annotate(words, even, xytext=(0, 7), textcoords="offset points", color=GREY, fontsize=6.5)
    canvas.note(drawn, "Small dots: one network each. Large dots: medians, 95% bootstrap intervals over seeds.")
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("even", "best head"))
