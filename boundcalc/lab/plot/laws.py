"""`sample-laws`: how many examples training needs over T for each law and s, and over the width beside what bounds ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.lab.plot import canvas, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.predicted import least_samples
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import ORDINALS
from boundcalc.lab.plot.words import many, rounded_up
from boundcalc.setting import Setting

_LAWS = {"natural": "all bits are fair coins", "balanced": "the label is a fair coin"}
_BOUNDS = ("best", "trauger", "log-T")
_WIDTH = "width"


def collect(spec: Spec) -> FigureData:
    """m* of every law, s and T at the commonest width; of every width where there are several; bounds over the width."""
    chosen = runs.read(spec, vary=("T", "m", "s", "law", "d"))
    widths = [d for d, _ in runs.grouped(chosen, "d")]
    usual = max(widths, key=lambda d: sum(runs.where(r, "d") == d for r in chosen))
    series: list[Series] = []
    growth: dict[str, float] = {}
    for law in _LAWS:
        for look, (s, group) in zip(ORDINALS, _by(chosen, "s", law=law, d=usual), strict=False):
            found = [(T, one) for T, some in runs.grouped(group, "T") if (one := _threshold(some, spec)) is not None]
            if len(found) > 1:
                series.append(_series(look, f"s = {s:g}", found, law))
                growth[f"{law}, s = {s:g}"] = _exponent(found)
    if not series:
        raise NoSolution("sample-laws needs trials at two lengths or more: boundcalc sweep conjunction-natural")
    facts: dict[str, Any] = {"growth": growth, "d": usual}
    if len(widths) > 1:
        length, s, law = max(
            {(runs.where(r, "T"), runs.where(r, "s"), runs.where(r, "law")) for r in chosen},
            key=lambda place: len(_by(chosen, "d", T=place[0], s=place[1], law=place[2])),
        )
        groups = _by(chosen, "d", T=length, s=s, law=law)
        found = [(d, one) for d, some in groups if (one := _threshold(some, spec)) is not None]
        series.append(_series("measured", "measured m*", found, _WIDTH))
        setting = (spec.setting or Setting.of("edelman", depth=1)).but(
            seq_len=length + 1, delta=1 - spec.share, train_error=0.0
        )
        at = [(d, setting.but(d=round(d))) for d, _ in found]
        series += [replace(least_samples(at, name, spec.target), panel=_WIDTH) for name in spec.bounds or _BOUNDS]
        facts |= {"setting": setting.to_json(), "T": length, "s": s, "law": law}
        facts["over width"] = {one.key: _growth_of(one) for one in series if one.panel == _WIDTH}
    return runs.shown(series, chosen, **facts)


def _by(records: Sequence[Any], letter: str, **fixed: Any) -> list[tuple[float, list[Any]]]:
    return runs.grouped([r for r in records if all(runs.where(r, k) == v for k, v in fixed.items())], letter)


def _threshold(records: Sequence[Any], spec: Spec) -> Any:
    """m* of trials of one place, or None where they have no contrast."""
    from boundcalc.lab.train.threshold import analyse, cells

    try:
        (found,) = analyse(cells(records, 1 - spec.target), level=spec.share, draws=500).thresholds
    except NoSolution:
        return None
    return found


def _series(look: str, label: str, found: Sequence[tuple[float, Any]], panel: str) -> Series:
    rows = [(at, (one.m_star, one.low, one.high), one.trials) for at, one in found]
    return Series.measured(look, label, "m", rows, panel=panel)


def _exponent(found: Sequence[tuple[float, Any]]) -> float:
    """Of a power law through the ends."""
    (first, low), (last, high) = found[0], found[-1]
    return math.log(high.m_star / low.m_star) / math.log(last / first)


def _growth_of(one: Series) -> float | None:
    """How many times the first value the last one is."""
    known = [y for y in one.y if y]
    return known[-1] / known[0] if len(known) > 1 else None


def draw(spec: Spec, data: FigureData) -> Any:
    """A panel for each law and one for the width."""
    panels = [name for name in (*_LAWS, _WIDTH) if data.of(panel=name)]
    figure, places = canvas.sheet(spec, len(panels), 0.9, usual="wide")
    facts = data.facts
    for axes, name in zip(places, panels, strict=True):
        shown = data.of(panel=name)
        axes.set_yscale("log")
        canvas.draw_all(axes, [one for one in shown if any(one.y)], canvas.Heights())
        canvas.plain_lengths(axes, [x for one in shown for x in one.x])
        title = _LAWS.get(name) or f"{facts['law']} law, s = {facts['s']}, T = {facts['T']}"
        axes.set(xlabel="d, width" if name == _WIDTH else "T, bits", ylabel="samples m", title=title)
        canvas.plain_ticks(axes)
    about = (
        f"conjunctions of s bits · risk at most {spec.target:g} with probability {spec.share:g} · d = {facts['d']:g}"
    )
    if _WIDTH in panels:
        norms = Setting.from_json(facts["setting"]).norms
        about += (
            f" · bounds: every norm at most {norms.C:g}, margin {Setting.from_json(facts['setting']).sample.margin:g}"
        )
    finish(figure, f"{about} · {many(len(data.trials), 'trial')}", title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """How m* grows with T for each law and s, and what the width changes."""
    growth = [f"{value:.2f} ({name})" for name, value in data.facts["growth"].items()]
    text = [f"Exponents of a power law between the first and the last T: {', '.join(growth)}."]
    for one in data.of(panel=_WIDTH):
        known = [(x, y) for x, y in one.known().items() if y]
        if not known:
            text.append(f"`{one.key}` reaches that risk at no m up to 10^18.")
            continue
        ratio = known[-1][1] / known[0][1]
        name = "Training" if one.kind == "measured" else f"`{one.key}`"
        ends = f"m = {rounded_up(known[0][1])} at d = {known[0][0]:g} and {rounded_up(known[-1][1])} at d = {known[-1][0]:g}"
        text.append(f"{name} asks for {ends}: {ratio:.2g} times as many.")
    return " ".join(text)
