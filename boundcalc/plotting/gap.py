"""`gap-vs-m`, `-T`, `-depth`, `-C`: bounds and measured gaps on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from boundcalc.engine.evaluate import VACUOUS_MARGIN
from boundcalc.plotting import canvas
from boundcalc.plotting.data import FigureData, Series
from boundcalc.plotting.predicted import curves
from boundcalc.plotting.spec import Spec
from boundcalc.plotting.words import decades, short
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
SMALL = 0.1
"""A gap worth having, in captions."""
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
    extra = 0
    if spec.store:
        from boundcalc.plotting import measured as runs

        chosen = runs.read(spec, vary=axis.letter)
        setting = runs.setting_of(chosen, spec, setting)
        extra = int(axis.letter == "T")  # beside the bits stands the row that is read out
        measured = runs.errors(chosen, axis.letter, spec.quantities)
        measured += runs.a_posteriori(chosen, axis.letter, spec.quantities, setting)
        trials = tuple(run.hash for run in chosen)
        facts["task"] = runs.described(chosen)
    values = spec.values or axis.values
    predicted = curves(setting, axis.field, values, spec.bounds or DEFAULT_BOUNDS, spec.quantities, extra=extra)
    facts["setting"] = setting.to_json()
    return FigureData((*predicted, *measured), facts, trials)


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel per quantity, and one for proxies."""
    from matplotlib.ticker import MaxNLocator

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
            axes.set_xscale("log")
        canvas.draw_trivial(axes, series, heights)
        canvas.draw_all(axes, series, heights)
        axes.set(xlabel=axis.words, ylabel=YLABELS[quantity])
        if axis.letter in ("T", "C"):
            canvas.plain_lengths(axes, [2.0**i for i in _powers([x for s in series for x in s.x])])
        elif axis.letter == "depth":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if not spec.uncapped:
            axes.set_ylim(top=1.6)
        canvas.plain_ticks(axes)
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


def _powers(values: list[float]) -> range:
    """Exponents of the powers of two among or around some values."""
    return range(math.floor(math.log2(min(values))), math.ceil(math.log2(max(values))) + 1)


def caption(spec: Spec, data: FigureData) -> str:
    """Where bounds begin to say something, and how far that is from where the measured gap vanishes."""
    axis = AXES[spec.figure]
    if axis.letter == "m":
        return _over_m(spec, data)
    return " ".join(_over_others(axis, q, data) for q in spec.quantities)


def _over_m(spec: Spec, data: FigureData) -> str:
    """Two sentences: from where bounds say something, and how far that is from where the measured gap is small."""
    proved, small, apart = [], [], []
    for quantity in spec.quantities:
        least = _least(data.of(kind="bound", quantity=quantity))
        if not least:
            continue
        telling = min((x for x, y in least.items() if y < 1 - VACUOUS_MARGIN), default=None)
        tenth = min((x for x, y in least.items() if y <= SMALL), default=None)
        if telling is None:
            proved.append(f"nothing is proved about the {quantity} up to m = {short(max(least))}")
        else:
            below = f", the least bound is below {SMALL} from m = {short(tenth)}" if tenth is not None else ""
            proved.append(f"nothing is proved about the {quantity} before m = {short(telling)}{below}")
        for one in data.of(kind="measured", quantity=quantity):
            seen = _settled(one)
            if seen is None:
                small.append(f"the {quantity} measured stays above {SMALL}")
                continue
            vanishes = next((x for x, y in zip(one.x, one.y, strict=True) if y is not None and y <= 0), None)
            none = f" (from m = {short(vanishes)} on, some m show no error at all)" if vanishes is not None else ""
            small.append(f"the {quantity} measured is below {SMALL} from m = {short(seen)}{none}")
            apart.append(("" if tenth is not None else "more than ") + decades((tenth or max(least)) / seen))
    text = _sentence("; ".join(proved))
    if not small:
        return text
    between = f": {' and '.join(apart)} of m lie between what is proved and what is seen" if apart else ""
    return f"{text} {_sentence('; '.join(small) + between)}"


def _least(bounds: list[Series]) -> dict[float, float]:
    """The least of some bounds at every place."""
    least: dict[float, float] = {}
    for one in bounds:
        for x, y in zip(one.x, one.y, strict=True):
            if y is not None:
                least[x] = min(y, least.get(x, 1.0))
    return least


def _settled(one: Series) -> float | None:
    """The place from which on a measured value stays small."""
    found = None
    for x, y in sorted(zip(one.x, one.y, strict=True), reverse=True):
        if y is None or y > SMALL:
            break
        found = x
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _over_others(axis: Axis, quantity: str, data: FigureData) -> str:
    """How the bounds change along the axis; what was measured there."""
    predicted = data.of(kind="bound", quantity=quantity)
    seen = [y for s in data.of(kind="measured", quantity=quantity) for y in s.y if y is not None]
    measured = f" The {quantity} measured is {min(seen):.2g} to {max(seen):.2g}." if seen else ""
    if predicted and all(all(s.vacuous) for s in predicted):
        return f"Every bound on the {quantity} is vacuous at this m.{measured}"
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
    return f"{span}, bounds on the {quantity} (uncapped): " + "; ".join(parts) + "." + measured if parts else measured
