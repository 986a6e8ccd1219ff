"""`norms`: how large trained weights are, by kind of matrix."""

from __future__ import annotations

from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.base.prose import plain
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.spread import MEDIANS, WORDS, axis_of, draw_spread, medians
from boundcalc.lab.plot.style import ORDINALS
from boundcalc.lab.plot.words import task_words

_NORMS = {"op": ("op", "spectral norm"), "two_one": ("21", "(2,1) norm")}
_ORDER = ("W_QK", "W_V", "W_O", "W_1", "W_2", "W_3", "readout", "embedding")
_NAMES = {"W_QK": "$W_{QK}$", "W_V": "$W_V$", "W_O": "$W_O$", "W_1": "$W_1$", "W_2": "$W_2$", "W_3": "$W_3$"}


def collect(spec: Spec) -> FigureData:
    """The largest norm of each kind over heads (and blocks), over T, depth, training steps, m, or block by block."""
    chosen = [r for r in runs.read(spec, vary=("T", "m", "depth", "steps")) if "norms" in r.result]
    if not chosen:
        raise NoSolution(f"no trial records norms: `{runs.make_runs(spec)}` makes such trials")
    letter = axis_of(spec, chosen)
    if letter == "block":
        blocks = range(runs.where(chosen[0], "depth"))
        groups = [(float(block + 1), [(record, block) for record in chosen]) for block in blocks]
    else:
        groups = [(x, [(record, None) for record in group]) for x, group in runs.grouped(chosen, letter)]
    found: list[Series] = []
    for panel, (symbol, _) in _NORMS.items():
        for kind in _ORDER:
            one = medians(
                groups,
                lambda item, kind=kind, symbol=symbol: _largest(item[0], kind, symbol, item[1]),
                key=ORDINALS[_ORDER.index(kind)],
                label=_NAMES.get(kind, kind),
                quantity="norm",
                panel=panel,
            )
            if one is not None:
                found.append(one)
    return runs.shown(found, chosen, letter=letter)


def _largest(record: Any, kind: str, symbol: str, block: int | None) -> float | None:
    values: list[float] = []
    for key, budget in record.result["norms"].get("budgets", {}).items():
        name, _, place = key.partition("[")
        here = block is None or (place and int(place.rstrip("]").partition(",")[0]) == block)
        value = budget.get(symbol, budget.get("op"))  # of one column |W|_21 = |W|_op, and is not recorded twice
        if name == kind and here and value is not None:
            values.append(float(value))
    return max(values, default=None)


def draw(spec: Spec, data: FigureData) -> Any:
    """Spectral norms left, (2,1) norms right."""
    figure, places = canvas.sheet(spec, 2, 0.8)
    letter = data.facts["letter"]
    for axes, (panel, (_, words)) in zip(places, _NORMS.items(), strict=True):
        shown = data.of(panel=panel)
        canvas.refuse_mixture(shown)
        axes.set_yscale("log")
        draw_spread(axes, shown, letter)
        axes.set(xlabel=WORDS[letter], ylabel=words)
        canvas.plain_ticks(axes)
    over = "heads" if letter == "block" else "blocks and heads"
    about = f"{task_words(data.facts['task'], but=(letter,))} · the largest over {over}"
    finish(figure, about, title=spec.title, words={"measured": MEDIANS})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What moves with the axis, and what does not."""
    letter = data.facts["letter"]
    parts: list[str] = []
    for one in data.of(panel="op"):
        if one.y[0] and one.y[-1]:
            parts.append(f"{plain(one.label)} {one.y[0]:.2g} to {one.y[-1]:.2g}")
    x = data.of(panel="op")[0].x
    over = "heads" if letter == "block" else "blocks and heads"
    return (
        f"Median spectral norms (the largest over {over}; bars hold 80% of the trials) from {letter} = {x[0]:g} to "
        f"{x[-1]:g}: {', '.join(parts)}."
    )
