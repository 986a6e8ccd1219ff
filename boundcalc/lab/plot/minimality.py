"""`minimality`: what a trained representation keeps of its input and what it drops, beside the posterior."""

from __future__ import annotations

from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec

_WORDS = {
    "posterior": "posterior of what matters",
    "other coin": "the other coin",
    "both": "both together",
}
_LOOKS = {"posterior": "third", "other coin": "second", "both": "first"}


def collect(spec: Spec) -> FigureData:
    """Shares of variance that probes of the representation explain, over training."""
    from boundcalc.lab.train.minimal import TARGETS, MinimalPlan, minimal

    plan = MinimalPlan(steps=spec.whole) if spec.values else MinimalPlan()
    *trained, known = minimal(plan)
    x = tuple(float(row.steps or 0) for row in trained)
    series: list[Series] = []
    for name in TARGETS:
        shares = [(at, row.shares[name], plan.seeds) for at, row in zip(x, trained, strict=True)]
        series.append(Series.measured(_LOOKS[name], _WORDS[name], "share", shares))
    limit = (known.shares["posterior"].value,) * len(x)
    series.append(Series(_LOOKS["posterior"], "posterior itself", "reference", "share", x, limit))
    facts: dict[str, Any] = {
        "L": plan.length,
        "noise": plan.noise,
        "seeds": plan.seeds,
        "steps": [plan.steps[0], plan.steps[-1]],
        "first": {name: trained[0].shares[name].value for name in TARGETS},
        "last": {name: trained[-1].shares[name].value for name in TARGETS},
        "known": {name: known.shares[name].value for name in TARGETS},
        "error": trained[-1].error,
        "bayes": known.bayes,
    }
    return FigureData(tuple(series), facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """Shares over steps."""
    figure, (axes,) = canvas.sheet(spec, 1, 0.8, wide=0.8)
    canvas.draw_all(axes, data.series, canvas.Heights())
    axes.set(xlabel="training steps", ylabel="share of variance that a probe finds", xscale="log", ylim=(-0.05, 1.05))
    facts = data.facts
    about = (
        f"two coins, {facts['L']} tosses · noise of {facts['noise']:g} of the representation · {facts['seeds']} seeds"
    )
    finish(figure, about, title=spec.title, words={"measured": "measured over seeds, 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What was kept and what was dropped."""
    facts = data.facts
    first, last, known = facts["first"], facts["last"], facts["known"]
    return (
        f"Of {facts['L']} tosses of two coins the label depends on the odds of the first. After {facts['steps'][0]} step a "
        f"network's representation, seen through noise of {facts['noise']:g} of its size, tells {first['posterior']:.0%} "
        f"of the variance of the posterior and {first['other coin']:.0%} of that of the other coin; after "
        f"{facts['steps'][1]} steps {last['posterior']:.1%} (the posterior itself: {known['posterior']:.1%}) and "
        f"{last['other coin']:.1%}. The test error is {facts['error']:.3f}, the least possible {facts['bayes']:.3f}. "
        "Training keeps the posterior and, with weight decay, drops the rest: the representation is sufficient and close "
        "to minimal (X1)."
    )
