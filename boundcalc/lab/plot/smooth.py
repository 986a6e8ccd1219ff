"""`attention-smooth`: a conditional mean that is not linear, met by kernels that can and cannot express it."""

from __future__ import annotations

from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec

_REPETITIONS = 400
_PANELS = {"error": "from the conditional mean", "parts": "softmax: its two parts"}


def collect(spec: Spec) -> FigureData:
    """Root mean square errors of every estimator, and for softmax attention what each part of them is."""
    from boundcalc.lab.latent.experiments.smooth import BEST, EXACT, LENGTHS, LINEAR, SmoothPlan, smooth

    lengths = spec.whole or LENGTHS
    plan = SmoothPlan(lengths=lengths, repetitions=spec.repetitions or _REPETITIONS)
    points = smooth(plan)
    fixed = [f"softmax, tau = {tau:g}" for tau in plan.taus]
    looks = dict(zip((EXACT, LINEAR, *fixed, BEST), ("third", "fourth", "fifth", "second", "first"), strict=True))
    words = {EXACT: "CME, exponential kernel", LINEAR: "CME, linear kernel", BEST: "softmax, best $\\tau$ at each L"}
    words |= {name: f"softmax, $\\tau$ = {tau:g}" for name, tau in zip(fixed, plan.taus, strict=True)}
    series: list[Series] = []
    for name, key in looks.items():
        own = [point for point in points if point.name == name]
        x = tuple(float(point.length) for point in own)
        errors = [(point.length, point.error, plan.repetitions) for point in own]
        series.append(Series.measured(key, words[name], "error", errors, panel="error"))
        if name == EXACT:
            expected = tuple(point.expected for point in own)
            series.append(Series(key, "posterior deviation", "computed", "error", x, expected, panel="error"))
        if own[0].sampling is not None:
            inside = [(p.length, p.sampling, plan.repetitions) for p in own if p.sampling is not None]
            label = f"sampling, {words[name].removeprefix('softmax, ')}"
            series.append(Series.measured(key, label, "error", inside, panel="parts"))
            bias = tuple(point.bias for point in own)
            label = f"bias, {words[name].removeprefix('softmax, ')}"
            series.append(Series(key, label, "computed", "error", x, bias, panel="parts"))
    best = [point for point in points if point.name == BEST]
    facts: dict[str, Any] = {
        "sharpness": plan.sharpness,
        "noise": plan.noise,
        "repetitions": plan.repetitions,
        "best": {str(point.length): point.tau for point in best},
        "last": {name: [p.error.value for p in points if p.name == name][-1] for name in looks},
        "expected": max(abs(p.error.value / p.expected - 1) for p in points if p.name == EXACT and p.expected),
        "names": {"exact": EXACT, "linear": LINEAR, "best": BEST, "fixed": fixed[-1]},
        "length": lengths[-1],
    }
    return FigureData(tuple(series), facts)


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, who finds the conditional mean; right, why softmax attention at one temperature does not."""
    figure, places = canvas.sheet(spec, 2, 0.8, share_y=True)
    for axes, (panel, words) in zip(places, _PANELS.items(), strict=True):
        shown = data.of(panel=panel)
        canvas.draw_all(axes, shown, canvas.Heights(), joined=True)
        axes.set(yscale="log", xlabel="L, pairs seen", ylabel="root mean square", title=words)
        canvas.few_lengths(axes, [x for s in shown for x in s.x])
        canvas.plain_ticks(axes)
    facts = data.facts
    about = f"conditional mean drawn from softmax's own Gaussian process · {facts['repetitions']} inputs a place"
    finish(figure, about, title=spec.title, words={"measured": "measured, 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Which attention finds a conditional mean that is not linear."""
    facts = data.facts
    names, last = facts["names"], facts["last"]
    taus = [tau for _, tau in sorted((int(length), tau) for length, tau in facts["best"].items())]
    return (
        "The conditional mean is a draw of the Gaussian process with softmax's own kernel. CME attention with that kernel "
        f"is the posterior mean: its error is the posterior's deviation to within {100 * facts['expected']:.0f}% and "
        f"{last[names['exact']]:.3f} at L = {facts['length']}. With a linear kernel it stays at "
        f"{last[names['linear']]:.2f}, softmax attention at one temperature at its bias ({last[names['fixed']]:.2f} for the "
        f"colder one), although its sampling error vanishes. Where the temperature may fall with the input (from "
        f"{taus[0]:.2g} to {taus[-1]:.2g}) softmax attention finds the conditional mean too, at "
        f"{last[names['best']] / last[names['exact']]:.2g} times the error of CME attention at L = {facts['length']}."
    )
