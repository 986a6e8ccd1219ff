"""`gap-vs-m`, `-T`, `-depth`, `-C`: bounds and measured gaps on one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from boundcalc.base.errors import NoSolution, Unsupported
from boundcalc.base.load import is_own
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.engine.solve import solve
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.formulas.theorems.own import Bound, own
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.predicted import curves, least_samples
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import (
    called,
    functions,
    listed,
    power,
    rounded_up,
    sentence,
    setting_words,
    short,
    trials_words,
)
from boundcalc.setting import Setting
from boundcalc.setting.validate import MOST

if TYPE_CHECKING:
    from boundcalc.engine.solve import Quantity

_DEFAULT_BOUNDS = ("best", "log-T", "trauger", "parameters", "closed", "published")


class Axis(NamedTuple):
    """What a figure runs over: the field of the setting, its letter, its words, its usual values."""

    field: str
    letter: str
    words: str
    values: tuple[float, ...]


def _decades(low: int, high: int, per: int) -> tuple[float, ...]:
    return tuple(round(10 ** (low + i / per)) for i in range((high - low) * per + 1))


def _axis(figure: str, words: str, values: tuple[float, ...]) -> Axis:
    entry = FIGURES[figure]
    return Axis(entry.chooses, entry.axis, words, values)


AXES: Mapping[str, Axis] = {
    "gap-vs-m": _axis("gap-vs-m", "training samples m", (16, 32, 56, *_decades(2, 8, 8))),
    "gap-vs-T": _axis("gap-vs-T", "sequence length T", tuple(2.0**i for i in range(4, 17))),
    "gap-vs-depth": _axis("gap-vs-depth", "depth", tuple(range(1, 13))),
    "gap-vs-C": _axis("gap-vs-C", "norm budget C", tuple(round(2 ** (i / 4), 4) for i in range(-8, 13))),
}
SMALL = 0.1
"""A gap, or a risk, worth having, in captions."""
_NON_VACUOUS = math.exp(-VACUOUS_MARGIN)
"""Below this a bound says something."""
YLABELS = {"gap": "generalization gap", "risk": "risk at training error 0"}


def setting_of(spec: Spec) -> Setting:
    """The setting the bounds are for."""
    if spec.setting is not None:
        return spec.setting
    return Setting.of("edelman", seq_len=128, depth=1) if spec.figure == "gap-vs-m" else Setting.of("edelman")


def collect(spec: Spec) -> FigureData:
    """Predicted curves, and measured values where a store is given."""
    axis = AXES[spec.figure]
    setting = setting_of(spec)
    facts: dict[str, Any] = {}
    seen: list[Series] = []
    trials: tuple[str, ...] = ()
    extra = 0
    if spec.store:
        from boundcalc.lab.plot import measured, runs

        chosen = runs.read(spec, vary=axis.letter)
        setting = measured.setting_of(chosen, spec, setting)
        extra = int(axis.letter == "T")  # beside the bits stands the row that is read out
        seen = measured.errors(chosen, axis.letter, spec.quantities, setting.sample.margin)
        seen += measured.a_posteriori(chosen, axis.letter, spec.quantities, setting)
        trials = tuple(run.hash for run in chosen)
        facts["task"] = runs.described(chosen)
    if spec.points:
        from boundcalc.lab.plot import points

        read = points.read(spec.points, spec.columns)
        seen = points.series(read, axis.letter, spec.quantities)
        sizes = sorted({point.places["m"] for point in read if "m" in point.places})
        facts["task"] = {"m": [int(size) for size in sizes], "trials": len(read)}
    values = spec.values or axis.values
    predicted = curves(setting, axis.field, values, spec.bounds or _DEFAULT_BOUNDS, spec.quantities, extra=extra)
    if not seen and not any(log is not None for s in predicted for log in s.log10):
        raise NoSolution(f"there is nothing to draw: {predicted[0].refusal}")
    facts["setting"] = setting.to_json()
    if spec.store and axis.letter in ("T", "depth"):
        predicted += _samples(setting, axis, values, spec.bounds or _DEFAULT_BOUNDS, extra)
    if axis.letter == "m":
        stated = [own(name) for name in spec.bounds if is_own(name)]
        facts["needs"] = {quantity: _needs(setting, predicted, stated, quantity) for quantity in spec.quantities}
    return FigureData((*predicted, *seen), facts, trials)


def _samples(setting: Setting, axis: Axis, values: Sequence[float], bounds: Sequence[str], extra: int) -> list[Series]:
    """Where training needs few samples every bound is vacuous: what can be compared is how many they ask for."""
    changes: list[dict[str, Any]] = [{axis.field: round(value) + extra} for value in values]
    settings = [(float(value), setting.but(**change)) for value, change in zip(values, changes, strict=True)]
    needs = [replace(least_samples(settings, name, SMALL, "gap"), panel="needs") for name in bounds if not is_own(name)]
    used = (float(setting.sample.n_train),) * len(settings)
    x = tuple(at for at, _ in settings)
    return [*needs, Series("floor", "m of these trials", "reference", "m", x, used, panel="needs")]


def _needs(
    setting: Setting, predicted: list[Series], stated: Sequence[Bound], quantity: str
) -> dict[str, float | None]:
    """The least m at which some bound drawn is below 1, and below 0.1: solved for, not read off the grid."""
    drawn = [s.key for s in predicted if s.kind == "bound" and s.quantity == quantity and any(s.log10)]
    names = ["best"] if "best" in drawn else [name for name in drawn if name in BOUNDS]  # best holds all others
    found: dict[str, float | None] = {}
    for word, target in (("below 1", _NON_VACUOUS), ("small", SMALL)):
        values: list[float] = []
        for name in names:
            with suppress(NoSolution, Unsupported):
                values.append(
                    solve(setting, "m", target, bound=name, quantity=cast("Quantity", quantity), digits=3).value
                )
        for bound in stated:
            if bound.kind == "bound" and bound.quantity == quantity:
                values += _least(lambda m, bound=bound: bound.log10(setting.but(n_train=m)), math.log10(target))
        found[word] = min(values, default=None)
    return found


def _least(height: Callable[[int], float], target: float) -> list[int]:
    """The least m at which a formula that falls with m is at most a target, if any is."""
    low, high = 0, 1
    while height(high) > target:
        low, high = high, high * 8
        if high > MOST:
            return []
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if height(middle) <= target else (middle, high)
    return [high]


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel per quantity, one for the samples that bounds ask for, and one for proxies."""
    axis = AXES[spec.figure]
    proxies, needs = data.of(kind="proxy"), data.of(quantity="m")
    quantities = [q for q in spec.quantities if any(s.kind != "proxy" for s in data.of(quantity=q))]
    count = len(quantities) + bool(needs) + bool(proxies)
    figure, places = canvas.sheet(spec, count, 0.8)
    for axes, quantity in zip(places, quantities, strict=False):
        series = [s for s in data.of(quantity=quantity) if s.kind != "proxy"]
        heights = canvas.Heights.for_series(series, uncapped=spec.uncapped)
        heights.dress(axes)
        _along(axes, axis, series)
        canvas.draw_all(axes, series, heights)
        axes.set(xlabel=_xlabel(axis, data), ylabel=YLABELS[quantity])
        canvas.draw_band(axes, series, heights)
        canvas.plain_ticks(axes)
    if needs:
        axes = places[len(quantities)]
        axes.set_yscale("log")
        _along(axes, axis, needs)
        canvas.draw_all(axes, needs, canvas.Heights())
        axes.set(xlabel=_xlabel(axis, data), ylabel=f"m for a gap of at most {SMALL:g}")
    if proxies:
        axes = places[-1]
        canvas.draw_proxies(axes, proxies)
        axes.set(xlabel=axis.words)
        _along(axes, axis, proxies)
    finish(figure, _setting_words(spec, data), title=spec.title)
    return figure


def _xlabel(axis: Axis, data: FigureData) -> str:
    return "T (bits)" if axis.letter == "T" and data.trials else axis.words


def _along(axes: Any, axis: Axis, series: list[Series]) -> None:
    """The scale and the ticks of the axis that the figure runs over."""
    from matplotlib.ticker import MaxNLocator

    x = [at for s in series for at in s.x]
    if axis.letter in ("T", "C"):
        canvas.plain_lengths(axes, [2.0**i for i in _powers(x)])
    elif axis.letter == "depth":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.set_xscale("log")


def _setting_words(spec: Spec, data: FigureData) -> str:
    axis, task = AXES[spec.figure], data.facts.get("task")
    given = data.facts.get("setting")
    setting = setting_of(spec) if given is None else Setting.from_json(given)
    if task is None:
        return setting_words(setting, but=(axis.field,))
    return trials_words(task, setting, but=(axis.field,), letter=axis.letter, trained=spec.norms == "runs")


def _powers(values: list[float]) -> range:
    """Exponents of the powers of two among or around some values."""
    return range(math.floor(math.log2(min(values))), math.ceil(math.log2(max(values))) + 1)


def caption(spec: Spec, data: FigureData) -> str:
    """Where bounds begin to say something, and how far that is from where the measured gap vanishes."""
    axis = AXES[spec.figure]
    if axis.letter == "m":
        return _over_m(spec, data)
    return " ".join(_over_others(axis, q, data) for q in spec.quantities).strip()


_WHAT = {"gap": "gap", "risk": "risk at training error 0"}


def _over_m(spec: Spec, data: FigureData) -> str:
    """Two sentences: how far what is seen is from what is proved, and what to conclude."""
    seen = {q: one for q in spec.quantities for one in data.of(kind="measured", quantity=q)}
    proved = [_proved(q, data) for q in spec.quantities if data.of(kind="bound", quantity=q)]
    if not seen:
        return " ".join(sentence(text) for text in proved)
    if not proved:
        return " ".join(sentence(_seen(quantity, one)) for quantity, one in seen.items())
    needs = data.facts["needs"]
    small = {q: at for q, one in seen.items() if (at := one.settled(SMALL)) is not None}
    both = [q for q in small if needs[q]["small"] is not None]
    if not both:
        first = "; ".join(f"the {_WHAT[q]} measured stays above {SMALL}" for q in seen if q not in small)
        first = first or f"what was measured is below {SMALL}, which no bound drawn promises"
    else:
        seen_at = listed([f"the {_WHAT[q]} is below {SMALL} from m = {short(small[q])} on" for q in both])
        promised = listed([rounded_up(needs[q]["small"]) for q in both])
        apart = listed([f"{math.log10(needs[q]['small'] / small[q]):.1f}" for q in both])
        first = f"measured{_on(data)}, {seen_at}; the bounds promise that from m = {promised} on"
        first += f", {apart} orders of magnitude later"
    begins = needs[next(iter(seen))]["below 1"]
    where = f" before m = {rounded_up(begins)}" if begins is not None else ""
    names = _vacuous_throughout(data)
    still = (
        f", and {listed(names)} say{'s' * (len(names) == 1)} nothing up to m = {short(_last(data))}" if names else ""
    )
    return (
        f"{sentence(first)} Conclude that for models with these norms the bounds are true but do not explain how few "
        f"samples are enough: no bound on the {_WHAT[next(iter(seen))]} says anything{where}{still}."
    )


def _seen(quantity: str, one: Series) -> str:
    at = one.settled(SMALL)
    where = f"stays above {SMALL}" if at is None else f"is below {SMALL} from m = {short(at)} on"
    return f"the {_WHAT[quantity]} measured {where}; no bound of it is drawn"


def _on(data: FigureData) -> str:
    """What the trials are of."""
    task = data.facts.get("task", {})
    if not task.get("s") or len(task["T"]) != 1:
        return ""
    return f" on {functions(task)} among {task['T'][0]} bits"


def _proved(quantity: str, data: FigureData) -> str:
    needs = data.facts["needs"][quantity]
    if needs["below 1"] is None:
        return f"nothing is proved about the {_WHAT[quantity]} up to m = {short(_last(data))}"
    small = "" if needs["small"] is None else f" and below {SMALL} at m = {rounded_up(needs['small'])}"
    return f"the least bound on the {_WHAT[quantity]} falls below 1 at m = {rounded_up(needs['below 1'])}{small}"


def _last(data: FigureData) -> float:
    return max(x for s in data.of(kind="bound") for x in s.x)


def _vacuous_throughout(data: FigureData) -> list[str]:
    """The bounds that say nothing anywhere on the axis, on any quantity drawn."""
    kinds: dict[str, list[bool]] = {}
    for one in data.of(kind="bound"):
        kinds.setdefault(one.key, []).append(one.telling)
    return [called(name) for name, telling in kinds.items() if not any(telling)]


def _over_others(axis: Axis, quantity: str, data: FigureData) -> str:
    """How the bounds change along the axis; what was measured there."""
    predicted = data.of(kind="bound", quantity=quantity)
    needed = data.of(kind="bound", quantity="m")
    measured = "".join(_measured(axis, quantity, one, data) for one in data.of(kind="measured", quantity=quantity))
    hopeless = not any(s.telling for s in predicted)
    if needed and hopeless:
        asked = "; ".join(_asked(axis, one) for one in needed)
        return f"No bound drawn says anything about the {quantity} at this m.{measured} {sentence(asked)}"
    parts = [text for one in predicted if (text := _change(axis, one, hopeless=hopeless))]
    if not parts:
        return measured.strip()
    x = [x for s in predicted for x, log in zip(s.x, s.log10, strict=True) if log is not None]
    if not x:
        names = listed([s.label for s in predicted])
        return f"No bound on the {quantity} says anything: {names} {'are' if len(predicted) > 1 else 'is'} trivial.{measured}"
    span = f"from {axis.letter} = {min(x):g} to {max(x):g}"
    if hopeless:
        return f"Every bound on the {quantity} drawn is vacuous; {span} {'; '.join(parts)}.{measured}"
    return f"{sentence(span)[:-1]}, bounds on the {quantity}: {'; '.join(parts)}.{measured}"


def _asked(axis: Axis, one: Series) -> str:
    """The samples that a bound asks for, at the ends of the axis."""
    known = sorted(one.known().items())
    if not known:
        return f"{one.label}: no m up to 10^18 is enough for {SMALL}"
    (first, low), (last, high) = known[0], known[-1]
    to = f" and {rounded_up(high)} at {axis.letter} = {last:g}" if last > first else ""
    return f"for a gap of at most {SMALL} {one.label} asks for m = {rounded_up(low)} at {axis.letter} = {first:g}{to}"


def _change(axis: Axis, one: Series, *, hopeless: bool) -> str:
    """By how much an uncapped bound grows, and where it is vacuous (unless all are, everywhere)."""
    rows = [(x, log) for x, log in zip(one.x, one.log10, strict=True) if log is not None]
    if not rows:
        return f"{one.label} is trivial or refused throughout"
    if len(rows) < 2:
        return ""
    change = rows[-1][1] - rows[0][1]
    grows = f"grows {10**change:.3g}-fold" if change < 4 else f"grows {power(change)}-fold"
    if abs(change) < 5e-3:
        grows = "does not change"
    empty = [x for x, vacuous in zip(one.x, one.vacuous, strict=True) if vacuous]
    where = ""
    if empty and len(empty) < len(rows):
        where = f", vacuous from {axis.letter} = {min(empty):.3g} on"
    elif empty and not hopeless:
        where = ", vacuous throughout"
    return f"{one.label} {grows}{where}"


def _measured(axis: Axis, quantity: str, one: Series, data: FigureData) -> str:
    known = list(one.known().items())
    (first, low), (last, high) = known[0], known[-1]
    m = data.facts["task"]["m"]
    at = f" at m = {m[0]}" if len(m) == 1 else ""
    return (
        f" The {quantity} measured{at} goes from {low:.2g} at {axis.letter} = {first:g} to {high:.2g} at "
        f"{axis.letter} = {last:g}."
    )
