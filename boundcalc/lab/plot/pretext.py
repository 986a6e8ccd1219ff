"""`pretext`: one attention model from masked pretext to downstream task, by the condition number and by the input's length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import rounded_up, short

if TYPE_CHECKING:
    from boundcalc.lab.train.pretext import Row


def collect(spec: Spec) -> FigureData:
    """Downstream errors as shares of what the best constant has, by kappa and by L, with X6."""
    from boundcalc.lab.train.pretext import PretextPlan, pretrained

    usual = PretextPlan()
    steps = spec.whole[0] if spec.values else usual.steps
    plan = PretextPlan(steps=steps, fresh=spec.repetitions or usual.fresh)
    rows = pretrained(plan)
    series: list[Series] = []
    by_kappa = [row for row in rows if row.length == plan.length]
    x = tuple(row.kappa for row in by_kappa)
    for key, label, name in (("first", "head $wM^+$", "induced"), ("third", "fitted head", "fitted")):
        found = [(row.kappa, [end / row.nothing for end in getattr(row, name)], plan.seeds) for row in by_kappa]
        series.append(Series.measured(key, label, "share", found, panel="kappa"))
    raw = tuple(row.untrained.value / row.nothing for row in by_kappa)
    series.append(Series("fourth", "untrained, fitted", "reference", "share", x, raw, panel="kappa"))
    bounds = [row.bound / row.nothing for row in by_kappa]
    series.append(Series.capped("first", "X6", "share", x, bounds, panel="kappa"))
    by_length = sorted((row for row in rows if not row.blur), key=lambda row: row.length)
    lengths = tuple(float(row.length) for row in by_length)
    found = [(row.length, [_of_all(row, end) for end in row.induced], plan.seeds) for row in by_length]
    series.append(Series.measured("first", "head $wM^+$", "share", found, panel="L"))
    bounds = [_of_all(row, row.bound) for row in by_length]
    series.append(Series.capped("first", "X6 + variance", "share", lengths, bounds, panel="L"))
    least = tuple(_of_all(row, 0.0) for row in by_length)
    series.append(Series("floor", "posterior variance", "reference", "share", lengths, least, panel="L"))
    for panel, places in (("kappa", x), ("L", lengths)):
        # what is measured may lie above it, and a bound that does says nothing and is not drawn
        ones = (1.0,) * len(places)
        series.append(Series("second", "best constant", "reference", "share", places, ones, panel=panel))
    facts: dict[str, Any] = {
        "L": plan.length,
        "V": plan.words,
        "seeds": plan.seeds,
        "steps": plan.steps,
        "pretext": [row.pretext.value for row in by_kappa],
        "exceeded": sum(row.exceeded for row in rows),
        "networks": len(rows) * plan.seeds,
    }
    return FigureData(tuple(series), facts)


def _of_all(row: Row, error: float) -> float:
    """An error about w h as one about w z, of which the best constant has all."""
    return (error + row.unknown) / (row.nothing + row.unknown)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, by the condition number; right, by the length of the input."""
    figure, (left, right) = canvas.sheet(spec, 2, 0.8, share_y=True)
    for axes, panel in ((left, "kappa"), (right, "L")):
        heights = canvas.Heights()
        canvas.draw_all(axes, data.of(panel=panel), heights)
        axes.set(yscale="log")
    left.set(xscale="log", xlabel=r"$\kappa = |wM^+|$", ylabel="squared error / that of a constant")
    left.set_title(f"about $wh$, L = {data.facts['L']}")
    right.set(xlabel="L, tokens shown")
    right.set_title(r"about $wz$, $\kappa = 1$")
    canvas.few_lengths(right, [x for s in data.of(panel="L") for x in s.x])
    facts = data.facts
    about = (
        f"masked tokens of {facts['V']} words, {facts['steps']} steps, then frozen · {facts['seeds']} networks a place"
    )
    finish(figure, about, title=spec.title, words={"measured": "measured over networks, 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What the condition number costs, with labels and without, and what longer inputs give."""
    facts = data.facts
    found = {(s.key, s.kind, s.panel): s for s in data.series}
    head, fitted = found["first", "measured", "kappa"], found["third", "measured", "kappa"]
    raw, bound = found["fourth", "reference", "kappa"], found["first", "bound", "kappa"]
    telling = [k for k, empty in zip(bound.x, bound.vacuous, strict=True) if not empty]
    pretext = facts["pretext"]
    lengths, least = found["first", "measured", "L"], found["floor", "reference", "L"]
    text = (
        f"One attention model learns to guess masked tokens and is frozen. As the pretext hides twins, kappa goes from "
        f"{head.x[0]:g} to {head.x[-1]:.3g} and the pretext error from {short(pretext[0])} to {short(pretext[-1])}, but the "
        f"error of the head wM^+, which needs no label, from {_share(head.y[0])} to {_share(head.y[-1])} of a constant's. "
    )
    if telling:
        first = rounded_up(bound.y[0] or 1.0)
        text += f"X6 says something up to kappa = {telling[-1]:.3g} ({first} times a constant's at {bound.x[0]:g}); "
    else:
        text += "X6 says nothing after so few steps; "
    return text + (
        f"it was exceeded by {facts['exceeded']} of {facts['networks']} networks. Even a head fitted to labels goes from "
        f"{_share(fitted.y[0])} to {_share(fitted.y[-1])} (on networks after one step {_share(raw.y[0])}): what the pretext "
        f"does not ask for, training drops. Longer inputs tell more: from L = {lengths.x[0]:g} to {lengths.x[-1]:g} the error "
        f"about wz goes from {_share(lengths.y[0])} to {_share(lengths.y[-1])}, the least possible from "
        f"{_share(least.y[0])} to {_share(least.y[-1])}."
    )


def _share(value: float | None) -> str:
    share = 100 * (value or 0.0)
    return f"{share:.0f}%" if share >= 10 else f"{share:.2g}%"
