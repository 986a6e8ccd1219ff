"""`attention-error`: how far attention is from the conditional mean, over growing inputs, beside its bounds."""

from __future__ import annotations

from typing import Any

from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec

_REPETITIONS = 1000
_TAUS = (1.0, 0.2, 0.05)
_PANELS = {
    "ridge": "mean embedding, in norm",
    "query": "mean embedding, at a query",
    "softmax": "softmax against its own limit",
    "bias": "softmax against the mean",
}


def collect(spec: Spec) -> FigureData:
    """The 1 - delta quantiles of measured errors, and the bounds that hold with that probability."""
    from boundcalc.lab.latent.experiments.infer import LENGTHS, InferPlan, infer

    plan = InferPlan(lengths=spec.whole or LENGTHS, repetitions=spec.repetitions or _REPETITIONS, taus=_TAUS)
    result = infer(plan)
    points: dict[str, list[Any]] = {}
    for point in result.points:
        points.setdefault(point.name, []).append(point)
    series: list[Series] = []
    for name, (key, panel, words, bound) in _curves().items():
        own = points[name]
        x = tuple(float(point.length) for point in own)
        rows = [(point.length, point.quantile, plan.repetitions) for point in own]
        series.append(Series.measured(key, words, "error", rows, panel=panel))
        if bound:
            values = tuple(point.bound for point in own)
            series.append(Series(key, bound.format(own[0].by), "bound", "error", x, values, panel=panel))
    failures = [point.failures.value for point in result.points if point.failures is not None]
    facts: dict[str, Any] = {
        "delta": plan.delta,
        "width": plan.width,
        "noise": plan.noise,
        "repetitions": plan.repetitions,
        "failures": max(failures),
        "cells": len(failures),
        "rates": {name: rate.to_json() for name, rate in result.rates.items()},
        "bound_rates": result.bound_rates,
        "limits": {name: own[-1].limit for name, own in points.items() if own[-1].limit},
    }
    return FigureData(tuple(series), facts)


def _curves() -> dict[str, tuple[str, str, str, str]]:
    """Look, panel, and words for the error and its bound, by the estimator's name."""
    from boundcalc.lab.latent.experiments.infer import NAMES

    found = {
        NAMES["ridge"]: ("first", "ridge", "error", "bound {}"),
        NAMES["posterior"]: ("third", "query", "error", "bound {}"),
        NAMES["own"].format(_TAUS[0]): ("second", "softmax", "error", f"bound {{}}, $\\tau$ = {_TAUS[0]:g}"),
    }
    for tau, key in zip(_TAUS, ("fourth", "fifth", "sixth"), strict=True):
        name = NAMES["mean"].format(tau)
        found[name] = (key, "bias", f"$\\tau$ = {tau:g}", "")
    return found


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel per kind of error; where softmax attention is held against the conditional mean, no bound belongs."""
    figure, places = canvas.sheet(spec, 4, 0.62, wide=0.66, rows=2)
    for axes, (panel, words) in zip(places, _PANELS.items(), strict=True):
        shown = data.of(panel=panel)
        canvas.draw_all(axes, shown, canvas.Heights())
        axes.set(yscale="log", xlabel="L, pairs seen", ylabel="error", title=words)
        canvas.few_lengths(axes, [x for s in shown for x in s.x])
        canvas.plain_ticks(axes)
    facts = data.facts
    law = f"keys on the sphere in {facts['width']} dimensions, values linear in them with noise {facts['noise']:g}"
    seen = f"95% quantiles of the error over {facts['repetitions']} inputs a place"
    about = f"{law} · {seen} · bounds at $\\delta$ = {facts['delta']:g}"
    finish(figure, about, title=spec.title, words={"measured": "measured quantile with its 95% interval"})
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Rates, coverage, and the bias that stays."""
    from boundcalc.lab.latent.experiments.infer import NAMES

    facts = data.facts
    rates, bounds = facts["rates"], facts["bound_rates"]
    names = {
        NAMES["ridge"]: "CME attention with its bound's ridge",
        NAMES["posterior"]: "with the posterior's",
        NAMES["own"].format(_TAUS[0]): "softmax attention to its own limit",
    }
    parts = [
        f"{words} like L^{rates[name][0]:.2f} (bound L^{bounds[name]:.2f})"
        for name, words in names.items()
        if name in rates
    ]
    never = (
        "No bound was exceeded"
        if facts["failures"] == 0
        else f"At most {facts['failures']:.1%} of inputs exceeded a bound"
    )
    text = f"Errors fall: {', '.join(parts)}. " if parts else ""
    limits = facts["limits"]
    far, near = (limits[NAMES["mean"].format(tau)] for tau in (_TAUS[0], _TAUS[-1]))
    return (
        f"{text}{never} at any of {facts['cells']} places of {facts['repetitions']} inputs each, where "
        f"{facts['delta']:.0%} are allowed to. "
        f"Against the conditional mean softmax attention keeps a bias, on average {far:.3f} at temperature {_TAUS[0]:g} "
        f"and {near:.4f} at {_TAUS[-1]:g}: a low temperature trades it for sampling error at short inputs."
    )
