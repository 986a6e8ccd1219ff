"""`desired`: how near training comes to the desired parameter and to the Bayes risk, beside X5."""

from __future__ import annotations

from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import ORDINALS
from boundcalc.lab.plot.words import rounded_up, short


def collect(spec: Spec) -> FigureData:
    """Excess risks and distances of trained models over m, at every L, and the bound on the excess."""
    from boundcalc.lab.train.desired import DesiredPlan, learned

    plan = DesiredPlan(samples=spec.whole) if spec.values else DesiredPlan()
    rows = learned(plan)
    x = tuple(float(m) for m in plan.samples)
    series: list[Series] = []
    for key, length in zip(ORDINALS, plan.lengths, strict=False):
        own = [row for row in rows if row.length == length]
        risks = [(row.m, row.excess, plan.seeds) for row in own]
        away = [(row.m, row.apart, plan.seeds) for row in own]
        series.append(Series.measured(key, f"L = {length}", "excess risk", risks, panel="risk"))
        series.append(Series.measured(key, f"L = {length}", "attention apart", away, panel="attention"))
    bounds = [max(row.bound for row in rows if row.m == m) for m in plan.samples]
    series.append(Series.capped("zhang2022", "X5, every L", "excess risk", x, bounds, panel="risk"))
    ignorant = min(row.ignorant for row in rows)
    label = f"constant 0, L = {min(plan.lengths)}"
    series.append(Series("floor", label, "reference", "excess risk", x, (ignorant,) * len(x), panel="risk"))
    facts: dict[str, Any] = {
        "C": plan.C,
        "seeds": plan.seeds,
        "delta": plan.delta,
        "lengths": list(plan.lengths),
        "exceeded": sum(row.exceeded for row in rows),
        "members": sum(row.members for row in rows),
        "models": len(rows) * plan.seeds,
        "ignorant": {str(row.length): row.ignorant for row in rows},
        "map": {str(row.length): row.map_apart.value for row in rows if row.m == plan.samples[-1]},
    }
    return FigureData(tuple(series), facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, the risk above the least; right, how far attention is from the desired one."""
    figure, places = canvas.sheet(spec, 2, 0.8)
    words = {"risk": "risk above the Bayes risk", "attention": "attention off the desired (total variation)"}
    for axes, (panel, label) in zip(places, words.items(), strict=True):
        heights = canvas.Heights()
        canvas.draw_all(axes, data.of(panel=panel), heights)
        axes.set(xscale="log", yscale="log", xlabel="m, training sequences", ylabel=label)
        if panel == "risk":
            canvas.draw_band(axes, data.of(panel=panel), heights)
    facts = data.facts
    about = f"two hidden odds, a question · class $|A| \\leq {facts['C']:g}$, $|v| \\leq 1$ · {facts['seeds']} seeds"
    about += f" · bound at $\\delta$ = {facts['delta']:g}"
    finish(figure, about, title=spec.title, words={"measured": "measured over seeds, 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What was learned, and what the bound says of it."""
    facts = data.facts
    (bound,) = data.of(kind="bound")
    telling = [m for m, y, empty in zip(bound.x, bound.y, bound.vacuous, strict=True) if y is not None and not empty]
    last = bound.x[-1]
    found, apart = data.of(panel="risk", kind="measured"), data.of(panel="attention", kind="measured")
    text = (
        f"The risk of trained models above the Bayes risk falls with m at every L alike: at m = {last:g} it is {_ends(found)}. "
        f"{facts['members']} of {facts['models']} models keep the norm limits of the class, which was fixed before the data; "
    )
    if telling:
        text += (
            f"X5, which has no L, bounds the excess by {rounded_up(bound.y[-1] or 1.0)} there (says something from m = "
            f"{telling[0]:g} on) and was exceeded {facts['exceeded']} times."
        )
    else:
        text += "X5 says nothing at these m."
    maps = ", ".join(f"{short(value)} at L = {length}" for length, value in facts["map"].items())
    return (
        f"{text} Attention is then {_ends(apart)} from the desired one, the value map {maps}: the longer the input, the less "
        "the prior matters, and the less the risk tells it from a value map that is a little smaller."
    )


def _ends(found: list[Series]) -> str:
    return ", ".join(f"{short(one.y[-1] or 0)} at {one.label}" for one in found)
