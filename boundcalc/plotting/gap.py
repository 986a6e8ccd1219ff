"""`gap-vs-m`, `-T`, `-depth`, `-C`: bounds and measured gaps on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from boundcalc.plotting import canvas
from boundcalc.plotting.data import FigureData, Series
from boundcalc.plotting.predicted import curves
from boundcalc.plotting.spec import Spec
from boundcalc.plotting.words import decades, many, short
from boundcalc.setting import Setting

DEFAULT_BOUNDS = ("best", "edelman", "trauger", "parameters", "closed", "published")


class Axis(NamedTuple):
    """What a figure runs over: the field of the setting, its words, its usual values, whether it is logarithmic."""

    field: str
    letter: str
    words: str
    values: tuple[float, ...]
    logarithmic: bool


def _decades(low: int, high: int, per: int) -> tuple[float, ...]:
    return tuple(round(10 ** (low + i / per)) for i in range((high - low) * per + 1))


AXES: Mapping[str, Axis] = {
    "gap-vs-m": Axis("n_train", "m", "training samples m", (16, 32, 56, *_decades(2, 8, 8)), True),
    "gap-vs-T": Axis("seq_len", "T", "sequence length T", tuple(2.0**i for i in range(4, 17)), True),
    "gap-vs-depth": Axis("depth", "depth", "depth", tuple(range(1, 13)), False),
    "gap-vs-C": Axis("C", "C", "norm budget C", tuple(round(2 ** (i / 4), 4) for i in range(-8, 13)), True),
}
YLABELS = {"gap": "generalization gap", "risk": "risk at training error 0"}


def setting_of(spec: Spec) -> Setting:
    """The setting the bounds are for."""
    if spec.setting is not None:
        return spec.setting
    return Setting.of("edelman2022", seq_len=128, depth=1) if spec.figure == "gap-vs-m" else Setting.of("edelman2022")


def collect(spec: Spec) -> FigureData:
    """Predicted curves, and measured values where a store is given."""
    axis = AXES[spec.figure]
    setting = setting_of(spec)
    facts: dict[str, Any] = {}
    measured: list[Series] = []
    trials: tuple[str, ...] = ()
    if spec.store:
        from boundcalc.plotting import measured as runs

        chosen = runs.read(spec, vary=axis.letter)
        setting = runs.setting_of(chosen, spec, setting)
        measured = runs.errors(chosen, axis.letter, spec.quantities)
        measured += runs.a_posteriori(chosen, axis.letter, spec.quantities, setting)
        trials = tuple(run.hash for run in chosen)
        facts["task"] = runs.described(chosen)
    values = spec.values or axis.values
    whole = axis.field != "C"
    predicted = curves(
        setting, axis.field, [round(v) if whole else v for v in values], spec.bounds or DEFAULT_BOUNDS, spec.quantities
    )
    facts["setting"] = setting.to_json()
    return FigureData((*predicted, *measured), facts, trials)


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel per quantity, and one for proxies."""
    axis = AXES[spec.figure]
    proxies = data.of(kind="proxy")
    quantities = [q for q in spec.quantities if any(s.kind != "proxy" for s in data.of(quantity=q))]
    count = len(quantities) + bool(proxies)
    width = spec.size or ("column" if count == 1 else "wide")
    figure = canvas.new_figure(width, canvas.ratio_for(count, width, 0.9))
    places = canvas.panels(figure, count, width)
    for axes, quantity in zip(places, quantities, strict=False):
        series = [s for s in data.of(quantity=quantity) if s.kind != "proxy"]
        heights = canvas.Heights.for_series(series, uncapped=spec.uncapped)
        heights.dress(axes)
        if axis.logarithmic:
            axes.set_xscale("log", base=2 if axis.letter in ("T", "C") else 10)
        canvas.draw_trivial(axes, series, heights)
        canvas.draw_all(axes, series, heights)
        axes.set(xlabel=axis.words, ylabel=YLABELS[quantity])
        if axis.letter == "C":
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        if not spec.uncapped:
            axes.set_ylim(top=1.6)
    if proxies:
        axes = places[-1]
        canvas.draw_proxies(axes, proxies, canvas.Heights())
        axes.set(xlabel=axis.words)
        if axis.logarithmic:
            axes.set_xscale("log")
    if spec.title:
        figure.suptitle(spec.title, fontsize=7.5)
    canvas.legend(figure)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """Where bounds begin to say something, and how far that is from where the measured gap vanishes."""
    axis = AXES[spec.figure]
    sentences = []
    for quantity in spec.quantities:
        predicted = [s for s in data.of(kind="bound", quantity=quantity)]
        if axis.letter == "m":
            sentences += _over_m(quantity, predicted, data.of(kind="measured", quantity=quantity))
        else:
            sentences.append(_over_others(axis, quantity, predicted))
    return " ".join(sentences)


def _over_m(quantity: str, predicted: list[Series], measured: list[Series]) -> list[str]:
    word = "gap" if quantity == "gap" else "risk"
    least: dict[float, float] = {}
    for one in predicted:
        for x, y in zip(one.x, one.y, strict=True):
            if y is not None:
                least[x] = min(y, least.get(x, 1.0))
    telling = min((x for x, y in least.items() if y < 1 - 1e-6), default=None)
    tenth = min((x for x, y in least.items() if y <= 0.1), default=None)
    text = (
        f"No bound on the {word} says anything before m = {short(telling)}"
        if telling is not None
        else f"Every bound on the {word} is vacuous up to m = {short(max(least))}"
    )
    if tenth is not None:
        text += f", and the least of them is below 0.1 from m = {short(tenth)}"
    if not measured:
        return [text + "."]
    one = measured[0]
    points = [(x, y) for x, y in zip(one.x, one.y, strict=True) if y is not None]
    small = min((x for x, y in points if y <= 0.1 and all(v <= 0.1 for u, v in points if u >= x)), default=None)
    sentences = [text + "."]
    last_x, last_y = points[-1]
    seen = (
        f"the {word} measured is {last_y:.2g} at m = {short(last_x)}"
        if last_y
        else (f"no error at all is measured at m = {short(last_x)} ({many(one.count[-1], 'trial')})")
    )
    if small is None:
        sentences.append(f"The {word} measured stays above 0.1: {seen}.")
    elif tenth is None:
        far = decades(max(least) / small)
        sentences.append(f"The {word} measured is below 0.1 from m = {short(small)} ({seen}): more than {far} earlier.")
    else:
        sentences.append(
            f"The {word} measured is below 0.1 from m = {short(small)} ({seen}): "
            f"{decades(tenth / small)} of m lie between what is proved and what is seen."
        )
    return sentences


def _over_others(axis: Axis, quantity: str, predicted: list[Series]) -> str:
    parts: list[str] = []
    span = ""
    for one in predicted:
        logs = [(x, log) for x, log in zip(one.x, one.log10, strict=True) if log is not None]
        if one.key not in ("best", "published", "edelman") or len(logs) < 2:
            continue
        (x0, first), (x1, last) = logs[0], logs[-1]
        change = last - first
        grows = f"grows by {10**change:.3g}" if change < 4 else f"grows by 10^{change:.1f}"
        if abs(change) < 5e-3:
            grows = "does not change"
        vacuous = ", vacuous throughout" if all(one.vacuous) else ""
        parts.append(f"`{one.key}` {grows}{vacuous}")
        span = f"From {axis.letter} = {short(x0)} to {short(x1)}"
    word = "gap" if quantity == "gap" else "risk"
    return f"{span}, the bound on the {word} changes so (uncapped): " + "; ".join(parts) + "." if parts else ""


def crossing(series: Series, level: float) -> float | None:
    """The first place from which a series stays at most at a level."""
    best = None
    for x, y in reversed(list(zip(series.x, series.y, strict=True))):
        if y is None or y > level or math.isnan(y):
            break
        best = x
    return best
