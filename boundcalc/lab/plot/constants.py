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
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import at_most, factor
from boundcalc.setting import Setting

GAIN, RISK, ENDS = "#9DB8C7", "#D9C3A0", "#3A3A3A"


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
    """Bars from each value to the next, on a log axis."""
    width = spec.size or "wide"
    rungs = data.facts["rungs"]
    narrow = width in ("column", "neurips-half")
    figure = canvas.new_figure(width, {"column": 1.05, "neurips-half": 1.5, "neurips": 0.5}.get(width, 0.42))
    axes = figure.subplots()
    logs = [rung["log10"] for rung in rungs]
    for row, rung in enumerate(rungs):
        here = 10.0 ** min(rung["log10"], canvas.LARGEST)
        before = 10.0 ** min(logs[row - 1], canvas.LARGEST) if row else here
        last = row == len(rungs) - 1
        colour = ENDS if row == 0 else RISK if last else GAIN
        if row:
            bar = axes.barh(row, before - here, left=here, height=0.62, color=colour, zorder=2)
            bar.patches[0].set(hatch="///" if last else None, edgecolor="white" if last else None)
            bar.patches[0].set_gid(f"rung:{row}")
        axes.plot([here, here], [row - 0.31, row + (0.31 if last else 1.31)], color="#222222", lw=0.9, zorder=3)
        shown = (
            at_most(10 ** rung["log10"]) if rung["log10"] < canvas.LARGEST else f"10^{exponent_up(rung['log10'], 0)}"
        )
        text = shown if row == 0 else f"{shown}  ({factor(logs[row - 1] - rung['log10']).replace('×', '÷')})"
        axes.annotate(
            _power(text),
            (max(before, here), row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=6,
            gid=f"value:{row}",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
            zorder=1.5,
        )
    axes.axvline(1, color="#666666", lw=0.9, ls=(0, (1, 1.2)), zorder=1)
    axes.annotate("vacuous", (1, -0.62), xytext=(3, 0), textcoords="offset points", fontsize=6, color="#555555")
    names = [_label(rung, narrow) for rung in rungs]
    names[-1] += " [risk]"
    said = canvas.finished(figure)
    axes.set_yticks(range(len(rungs)), [said(name) for name in names])
    axes.set(xscale="log", ylim=(len(rungs) - 0.4, -0.9), xlabel="gap, uncapped (bound)")
    high, low = max(logs), min(logs)
    span = max(0.5, high - low)
    room = {"neurips-half": 1.0, "column": 0.55}.get(width, 0.3)
    axes.set_xlim(10 ** (low - 0.06 * span), 10 ** min(high + room * span, canvas.LARGEST + 10))
    axes.grid(axis="y", visible=False)
    if spec.title:
        axes.set_title(spec.title)
    return figure


def _label(rung: dict[str, Any], narrow: bool) -> str:
    statements = rung["statement"].replace(", ", ",\u00a0") if narrow else rung["statement"]
    text = f"{rung['name']} ({statements})"
    return "\n".join(textwrap.wrap(text, 25)) if narrow else text


def _power(text: str) -> str:
    """10^7.5 as a power."""
    import re

    return re.sub(r"10\^(-?[\d.]+)", r"$10^{\1}$", text.replace(" x ", "×"))


def caption(spec: Spec, data: FigureData) -> str:
    """The whole gain and the largest step."""
    rungs = data.facts["rungs"]
    steps = [(a["log10"] - b["log10"], b) for a, b in itertools.pairwise(rungs[:-1])]
    most, rung = max(steps, key=lambda step: step[0])
    whole = rungs[0]["log10"] - rungs[-2]["log10"]
    return (
        f"Explicit constants and an optimised proof take the gap bound from {at_most(10 ** rungs[0]['log10'])} to "
        f"{at_most(10 ** rungs[-2]['log10'])}, {10**whole:.3g} times less; the largest single step is "
        f'"{rung["name"]}" ({10**most:.3g} times). The last bar bounds the risk at training error 0, a different quantity.'
    )
