"""`constants`: from the published constants to the best bound, one ingredient at a time."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.base.rounding import exponent_up
from boundcalc.engine.tightness import ladder
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData
from boundcalc.lab.plot.lettering import QUIET, finish, finished
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import SHADE
from boundcalc.lab.plot.words import factor, rounded_up, setting_words, typeset
from boundcalc.setting import Setting

GAIN, RISK = "#9DB8C7", "#8E3B46"


def setting_of(spec: Spec) -> Setting:
    """The setting the ladder is for."""
    return spec.setting or Setting.of("edelman", depth=2, seq_len=512, n_train=10**6)


def collect(spec: Spec) -> FigureData:
    """The rungs, each with the base-10 logarithm of the gap after it."""
    setting = setting_of(spec)
    rungs = [{"name": r.name, "statement": r.statement, "log10": r.log10} for r in ladder(setting)]
    if not rungs[-1]["statement"].startswith("G3") or not any("T3-T6" in rung["statement"] for rung in rungs):
        raise NoSolution(
            "the best bound is trivial or its risk refused here, so there is no last rung: take a larger m"
        )
    return FigureData((), {"rungs": rungs, "setting": setting.to_json()})


def draw(spec: Spec, data: FigureData) -> Any:
    """Bars from each gap to the next on a log axis; the risk, another quantity, has a panel of its own."""
    width = spec.size or "wide"
    rungs = data.facts["rungs"]
    narrow = canvas.is_narrow(width)
    figure = canvas.new_figure(width, {"column": 1.5, "neurips-half": 2.0, "neurips": 0.58}.get(width, 0.47))
    above, below = figure.subplots(2, 1, gridspec_kw={"height_ratios": [len(rungs) - 1, 1.5]})
    logs = [rung["log10"] for rung in rungs]
    said = finished(figure)
    for row, rung in enumerate(rungs[:-1]):
        here = 10.0 ** min(rung["log10"], canvas.LARGEST)
        before = 10.0 ** min(logs[row - 1], canvas.LARGEST) if row else here
        if row:
            bar = above.barh(row, before - here, left=here, height=0.62, color=GAIN, zorder=2)
            bar.patches[0].set_gid(f"rung:{row}")
        next_too = 1.31 if row < len(rungs) - 2 else 0.31
        above.plot([here, here], [row - 0.31, row + next_too], color="#222222", lw=0.9, zorder=3)
        text = _shown(rung["log10"]) if row == 0 else _less(rung["log10"], logs[row - 1])
        _at_the_new_end(above, text, here, row)
    risk = 10.0 ** min(logs[-1], canvas.LARGEST)
    below.plot([risk], [0], marker="D", ms=4, color=RISK, gid=f"rung:{len(rungs) - 1}")
    _at_the_new_end(below, _shown(logs[-1]), risk, 0)
    for axes, part in ((above, rungs[:-1]), (below, rungs[-1:])):
        axes.set_yticks(range(len(part)), [said(_label(rung, narrow)) for rung in part])
        axes.grid(axis="y", visible=False)
        axes.set_xscale("log")
    high, low = max(logs), min(logs)
    span = max(0.5, high - low)
    room = {"neurips-half": 0.9, "column": 0.7, "neurips": 0.35}.get(width, 0.22)
    for axes in (above, below):
        axes.set_xlim(10 ** (low - room * span), 10 ** min(high + 0.08 * span, canvas.LARGEST + 10))
        if high > 0:
            axes.axvspan(1, axes.get_xlim()[1], color=SHADE, lw=0, zorder=0.4, gid="says nothing")
    above.set(ylim=(len(rungs) - 1.4, -0.9), xlabel="gap bound, uncapped")
    end = "\n" if width == "neurips-half" else " "
    below.set(ylim=(0.8, -0.8), xlabel=f"risk bound at{end}training error 0")
    if high > 0:
        at, by, side = (above.get_xlim()[1], -3, "right") if narrow else (1, 3, "left")  # inside a narrow band
        above.annotate(
            "says nothing", (at, -0.6), xytext=(by, 0), textcoords="offset points", color=QUIET, va="center", ha=side
        )
    finish(figure, setting_words(Setting.from_json(data.facts["setting"])), title=spec.title)
    return figure


def _at_the_new_end(axes: Any, text: str, x: float, y: float) -> None:
    """To the left of where a step arrives."""
    axes.annotate(text, (x, y), xytext=(-4, 0), textcoords="offset points", va="center", ha="right", gid=f"value:{y}")


def _shown(log10: float) -> str:
    return typeset(rounded_up(10**log10) if log10 < canvas.LARGEST else f"10^{exponent_up(log10, 0)}")


def _less(log10: float, before: float) -> str:
    return f"{_shown(log10)}  ({typeset(factor(before - log10)).replace('×', '÷', 1)})"


def _label(rung: dict[str, Any], narrow: bool) -> str:
    statements = rung["statement"].replace(", ", ",\u00a0") if narrow else rung["statement"]
    text = f"{rung['name']} ({statements})"
    return "\n".join(textwrap.wrap(text, 25)) if narrow else text


def caption(spec: Spec, data: FigureData) -> str:
    """The whole gain and the largest step."""
    rungs = data.facts["rungs"]
    steps = [(a["log10"] - b["log10"], b) for a, b in itertools.pairwise(rungs[:-1])]
    most, rung = max(steps, key=lambda step: step[0])
    whole = rungs[0]["log10"] - rungs[-2]["log10"]
    return (
        f"Explicit constants and an optimised proof take the gap bound from {rounded_up(10 ** rungs[0]['log10'])} to "
        f"{rounded_up(10 ** rungs[-2]['log10'])}, {10**whole:.3g} times less; the largest single step is "
        f'"{rung["name"]}" ({10**most:.3g} times). The last line bounds the risk at training error 0, a different quantity.'
    )
