"""`pretext`: one attention model from masked pretext to downstream task, by the condition number and by the input's length."""

from __future__ import annotations

import math
from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import rounded_up, short


def collect(spec: Spec) -> FigureData:
    """Downstream errors as shares of what the best constant has, by kappa and by L, with X6."""
    from boundcalc.lab.train.pretext import PretextPlan, pretrained

    usual = PretextPlan()
    steps = round(spec.values[0]) if spec.values else usual.steps
    plan = PretextPlan(steps=steps, fresh=spec.repetitions or usual.fresh)
    rows = pretrained(plan)
    series: list[Series] = []
    by_kappa = [row for row in rows if row.length == plan.length]
    x = tuple(row.kappa for row in by_kappa)
    whole = [row.nothing for row in by_kappa]
    count = (plan.seeds,) * len(x)
    for key, label, name in (("first", "head $wM^+$", "induced"), ("third", "fitted head", "fitted")):
        series.append(_measured(key, label, x, [getattr(row, name) for row in by_kappa], whole, 0.0, count, "kappa"))
    raw = tuple(row.untrained.value / all_ for row, all_ in zip(by_kappa, whole, strict=True))
    series.append(Series("fourth", "untrained, fitted", "reference", "share", x, raw, panel="kappa"))
    series.append(_bound(x, [row.bound / all_ for row, all_ in zip(by_kappa, whole, strict=True)], "kappa"))
    by_length = sorted((row for row in rows if not row.blur), key=lambda row: row.length)
    x = tuple(float(row.length) for row in by_length)
    whole = [row.nothing + row.unknown for row in by_length]
    unknown = [row.unknown for row in by_length]
    count = (plan.seeds,) * len(x)
    series.append(_measured("first", "head $wM^+$", x, [row.induced for row in by_length], whole, unknown, count, "L"))
    both = [(row.bound + row.unknown) / all_ for row, all_ in zip(by_length, whole, strict=True)]
    series.append(_bound(x, both, "L"))
    least = tuple(row.unknown / all_ for row, all_ in zip(by_length, whole, strict=True))
    series.append(Series("floor", "posterior variance", "reference", "share", x, least, panel="L"))
    for panel, places in (("kappa", tuple(row.kappa for row in by_kappa)), ("L", x)):
        # what is measured may lie above it, and a bound that does says nothing and is not drawn
        series.append(
            Series("second", "best constant", "reference", "share", places, (1.0,) * len(places), panel=panel)
        )
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


def _measured(
    key: str,
    label: str,
    x: tuple[float, ...],
    found: list[Any],
    whole: list[float],
    more: list[float] | float,
    count: tuple[int, ...],
    panel: str,
) -> Series:
    extra = more if isinstance(more, list) else [more] * len(x)
    y, low, high = (
        tuple((getattr(one, end) + plus) / all_ for one, plus, all_ in zip(found, extra, whole, strict=True))
        for end in ("value", "low", "high")
    )
    return Series(key, label, "measured", "share", x, y, (), low, high, count, panel=panel)


def _bound(x: tuple[float, ...], values: list[float], panel: str) -> Series:
    logs = tuple(math.log10(value) for value in values)
    label = "X6" if panel == "kappa" else "X6 + variance"
    return Series("first", label, "bound", "share", x, tuple(min(1.0, v) for v in values), logs, panel=panel)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, by the condition number; right, by the length of the input."""
    width = spec.size or "wide"
    figure = canvas.new_figure(width, canvas.ratio_for(2, width, 0.8))
    left, right = canvas.panels(figure, 2, width, share_y=True)
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
