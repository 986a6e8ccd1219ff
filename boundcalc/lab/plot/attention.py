"""`attention`: how much of the read row's attention lies on the coordinates that matter."""

from __future__ import annotations

from functools import partial
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.spread import MEDIANS, WORDS, axis_of, draw_spread, medians
from boundcalc.lab.plot.words import task_words

_HEADS = {
    "best_head": ("second", "best head"),
    "value_weighted": ("first", "heads, weighted"),
    "mean": ("third", "mean over heads"),
}


def collect(spec: Spec) -> FigureData:
    """Shares by head over T (or depth, m, training steps), and by the accuracy that was reached."""
    chosen = [r for r in runs.read(spec, vary=("T", "m", "depth", "steps")) if r.result.get("attention")]
    if not chosen:
        raise NoSolution(f"no trial records attention on true coordinates: `{runs.make_runs(spec)}` makes such trials")
    letter = axis_of(spec, chosen).replace("block", "m")  # behind the first block rows have been mixed
    good = chosen if letter == "steps" else [r for r in chosen if 1 - r.result["test"]["error"] >= 1 - spec.target]
    if not good:
        raise NoSolution(f"no trial reaches test accuracy {1 - spec.target:g}: train on more, or raise --target")
    series: list[Series] = []
    for panel, records, by in (("axis", good, letter), ("learning", chosen, "accuracy")):
        groups = runs.grouped(records, by) if by != "accuracy" else _by_accuracy(records)
        for name, (key, label) in _HEADS.items():
            found = medians(groups, partial(_share, name), key=key, label=label, quantity="share", panel=panel)
            if found is not None:
                series.append(found)
    uniform = _uniform(good, letter)
    return runs.shown((*series, *uniform), chosen, letter=letter, learned=len(good))


def _share(name: str, record: Any) -> float | None:
    masses = record.result.get("attention")
    return masses[0].get(name) if masses else None  # behind the first block rows have been mixed


def _by_accuracy(records: Any) -> list[tuple[float, list[Any]]]:
    """Trials by their test accuracy, in bins: what attention does as a model learns."""
    bins: dict[float, list[Any]] = {}
    for record in records:
        accuracy = 1 - record.result["test"]["error"]
        at = min(0.975, max(0.525, 0.05 * int(accuracy / 0.05) + 0.025))
        bins.setdefault(round(at, 3), []).append(record)
    return sorted(bins.items())


def _uniform(records: Any, letter: str) -> list[Series]:
    """What attention spread evenly over all rows would give."""
    if letter != "T":
        return []
    s = int(runs.where(records[0], "s"))
    x = tuple(sorted({float(runs.where(r, "T")) for r in records}))
    return [Series("floor", "even attention", "reference", "share", x, tuple(s / (T + 1) for T in x), panel="axis")]


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, over T; right, against the accuracy that was reached."""
    figure, (left, right) = canvas.sheet(spec, 2, 0.8, share_y=True)
    letter = data.facts["letter"]
    for axes, panel in ((left, "axis"), (right, "learning")):
        shown = data.of(panel=panel)
        canvas.refuse_mixture(shown)
        draw_spread(
            axes,
            [one for one in shown if one.kind == "measured"],
            letter if panel == "axis" else "accuracy",
            joined=panel == "axis",
        )
        canvas.draw_all(axes, [one for one in shown if one.kind == "reference"], canvas.Heights())
    which = WORDS[letter] if letter == "steps" else f"{WORDS[letter]}, trials that learned"
    left.set(xlabel=which, ylabel="attention on the true coordinates", ylim=(0, 1.03))
    right.set(xlabel="test accuracy reached")
    finish(figure, task_words(data.facts["task"], but=(letter,)), title=spec.title, words={"measured": MEDIANS})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """How concentrated attention is, and what the mean over heads hides."""
    by_key = {s.key: s for s in data.of(panel="axis", kind="measured")}
    best, mean = by_key["second"], by_key["third"]
    if data.facts["letter"] == "steps":
        return (
            f"From step {best.x[0]:g} to step {best.x[-1]:g} the best head's attention on the true coordinates goes from "
            f"{_percent(best.y[0])} to {_percent(best.y[-1])} (medians; bars hold 80% of the trials), and the mean over "
            f"heads from {_percent(mean.y[0])} to {_percent(mean.y[-1])}."
        )
    return (
        f"In trials that learned, the best head puts {_range(best)} of its attention on the true coordinates (medians; "
        f"bars hold 80% of the trials), while the mean over heads is {_range(mean)}."
    )


def _percent(value: float | None) -> str:
    return f"{100 * (value or 0.0):.0f}%"


def _range(one: Series) -> str:
    shares = [value for value in one.y if value is not None]
    return f"{100 * min(shares):.0f} to {_percent(max(shares))}"
