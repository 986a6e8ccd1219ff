"""`norms`: how large trained weights are, by kind of matrix."""

from __future__ import annotations

from typing import Any

from boundcalc.errors import NoSolution
from boundcalc.plotting import canvas
from boundcalc.plotting.data import FigureData, Series
from boundcalc.plotting.spec import Spec
from boundcalc.plotting.spread import axis_of, medians
from boundcalc.plotting.style import ORDINALS, look

NORMS = {"op": ("op", "spectral norm"), "two_one": ("21", "(2,1) norm")}
_ORDER = ("W_QK", "W_V", "W_O", "W_1", "W_2", "W_3", "readout", "embedding")
_NAMES = {"W_QK": "$W_{QK}$", "W_V": "$W_V$", "W_O": "$W_O$", "W_1": "$W_1$", "W_2": "$W_2$", "W_3": "$W_3$"}
WORDS = {"T": "T (bits)", "m": "training samples m", "depth": "depth", "block": "block"}


def collect(spec: Spec) -> FigureData:
    """The largest norm of each kind over blocks and heads, over T (or m, or depth)."""
    from boundcalc.plotting import measured as runs

    chosen = [r for r in runs.read(spec, vary=("T", "m", "depth")) if "norms" in r.result]
    if not chosen:
        raise NoSolution(f"no trial records norms: `{runs.make_runs(spec)}` makes such trials")
    letter = axis_of(spec, chosen)
    groups = runs.grouped(chosen, letter)
    found: list[Series] = []
    kinds = [kind for kind in _ORDER if any(_largest(r, kind, "op") is not None for r in chosen)]
    for panel, (symbol, _) in NORMS.items():
        for kind in kinds:
            one = medians(
                groups,
                lambda record, kind=kind, symbol=symbol: _largest(record, kind, symbol),
                key=ORDINALS[_ORDER.index(kind)],
                label=_NAMES.get(kind, kind),
                quantity="norm",
                panel=panel,
            )
            if one is not None:
                found.append(one)
    facts = {"task": runs.described(chosen), "letter": letter}
    return FigureData(tuple(found), facts, tuple(r.hash for r in chosen))


def _largest(record: Any, kind: str, symbol: str) -> float | None:
    values = [
        float(budget[symbol])
        for key, budget in record.result["norms"].get("budgets", {}).items()
        if key.partition("[")[0] == kind and symbol in budget
    ]
    return max(values, default=None)


def draw(spec: Spec, data: FigureData) -> Any:
    """Spectral norms left, (2,1) norms right."""
    width = spec.size or "wide"
    figure = canvas.new_figure(width, canvas.ratio_for(2, width, 0.8))
    letter = data.facts["letter"]
    for axes, (panel, (_, words)) in zip(canvas.panels(figure, 2, width), NORMS.items(), strict=True):
        shown = data.of(panel=panel)
        canvas.refuse_mixture(shown)
        for one in shown:
            seen = look(one.key)
            band = canvas.known(one.low), canvas.known(one.high)
            axes.fill_between(one.x, *band, color=seen.colour, alpha=0.15, lw=0)
            line = axes.plot(one.x, canvas.known(one.y), color=seen.colour, marker=seen.mark)[0]
            line.set(label=canvas.legend_label(one), gid=canvas.gid(one, panel))
        axes.set(yscale="log", xlabel=WORDS[letter], ylabel=words)
        if letter in ("T", "m"):
            canvas.plain_lengths(axes, [x for s in shown for x in s.x])
        canvas.plain_ticks(axes)
    if spec.title:
        figure.suptitle(spec.title, fontsize=7.5)
    canvas.legend(figure)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What moves with the axis, and what does not."""
    letter = data.facts["letter"]
    parts: list[str] = []
    for one in data.of(panel="op"):
        if one.y[0] and one.y[-1]:
            parts.append(f"{one.label} {one.y[0]:.2g} to {one.y[-1]:.2g}")
    x = data.of(panel="op")[0].x
    return (
        f"Median spectral norms (largest over blocks and heads; bands hold 80% of trials) from {letter} = {x[0]:g} to "
        f"{x[-1]:g}: " + ", ".join(parts) + "."
    )
