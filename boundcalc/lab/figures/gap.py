"""`gap-vs-AXIS`: bounds of the gap along any one axis, and measured runs next to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boundcalc.base.errors import InvalidSetting, NoSolution, Unsupported
from boundcalc.base.files import is_name
from boundcalc.engine.evaluate import compare
from boundcalc.engine.floors import floor_of
from boundcalc.engine.solve import Quantity, solve
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import in_order, look
from boundcalc.lab.figures.runs import Run, measured
from boundcalc.setting import Setting
from boundcalc.theorems.own import Bound, own

BOUNDS = ("best", "T-free", "parameters", "closed", "published")
SMALL = 0.1
"""A gap, or a risk, worth having."""
_LARGEST = 1e300


class Axis(NamedTuple):
    """What a figure runs over: the field of the setting, its words, its default values."""

    field: str
    words: str
    values: tuple[float, ...]


AXES: Mapping[str, Axis] = {
    "m": Axis("n_train", "training sequences m", tuple(round(10 ** (k / 6)) for k in range(12, 49))),
    "T": Axis("seq_len", "sequence length T", tuple(2.0**i for i in range(4, 17))),
    "depth": Axis("depth", "depth (blocks)", tuple(range(1, 13))),
    "C": Axis("C", "norm budget C of every matrix", tuple(round(2 ** (i / 4), 4) for i in range(-8, 13))),
    "d": Axis("d", "width d", tuple(2.0**i for i in range(3, 12))),
    "heads": Axis("heads", "heads", tuple(2.0**i for i in range(7))),
    "gamma": Axis("margin", "margin gamma", tuple(round(0.05 * 2 ** (i / 2), 4) for i in range(11))),
    "delta": Axis("delta", "probability of failure delta", tuple(10.0**-k for k in range(1, 13))),
}
_BINARY = ("T", "C", "d", "heads")


def collect(
    letter: str,
    setting: Setting,
    values: Sequence[float] = (),
    bounds: Sequence[str] = (),
    runs: Sequence[Run] = (),
    *,
    extra: int = 0,
) -> Figure:
    """Bounds along an axis, and runs; `extra` rows are read besides the T of the axis."""
    axis = AXES[letter]
    bounded = curves(setting, axis.field, values or axis.values, bounds or BOUNDS, extra=extra)
    series = (*(measured(runs, letter, "gap") if runs else ()), *bounded)
    if not any(one.known() for one in series):
        raise NoSolution("there is nothing to draw: no bound has a value here, and `boundcalc eval` says why")
    has_best = any(one.key == "best" for one in series)
    needs = least_m(setting, "best", SMALL, "gap") if letter == "m" and has_best else None
    title, about = _title(letter, bounded, needs), describe(setting, but=letter)
    caption = f"Bounds of the gap along {axis.words} ({about}), and the proved floor where it is known."
    facts = {"setting": setting.complete_json(), "letter": letter}
    return Figure(f"gap-vs-{letter}", title, about, caption, f"{title}. {caption}", series, facts)


def curves(
    setting: Setting,
    field: str,
    values: Sequence[float],
    bounds: Sequence[str],
    quantity: Quantity = "gap",
    *,
    extra: int = 0,
) -> list[Series]:
    """One series per bound over the values of a field of the setting, and the floor under `best`."""
    places: dict[float, Setting] = {}
    refused = f"no values of {field} to draw"
    for value in values:
        change: Any = value if field in ("C", "margin", "delta") else round(value) + extra * (field == "seq_len")
        try:
            places[float(value)] = setting.but(**{field: change})
        except InvalidSetting as error:  # such as d not divisible by heads
            refused = str(error)
    if not places:
        raise InvalidSetting(refused)
    x = tuple(places)
    library = [name for name in bounds if not is_name(name)]
    grid = [compare(at, library) if library else [] for at in places.values()]
    series: list[Series] = []
    for name, row in zip(library, zip(*grid, strict=True), strict=True):
        y = tuple(_height(value, quantity) for value in row)
        kind = next((value.kind for value, height in zip(row, y, strict=True) if height is not None), "bound")
        series.append(Series(name, kind, quantity, x, y))
    if "best" in library and quantity == "gap":
        floors = tuple(None if (floor := floor_of(at)) is None else floor.value for at in places.values())
        series += [Series("gap-floor", "reference", "gap", x, floors)] if any(floors) else []
    return series + [_stated(own(name), places, quantity) for name in bounds if is_name(name)]


def _height(value: Any, quantity: str) -> float | None:
    """The uncapped bound, unless it is refused, trivial or beyond all floats."""
    if value.refusal or (quantity == "risk" and value.risk_refusal) or value.of(quantity).trivial:
        return None
    log10 = value.log10 if quantity == "gap" else value.log10_risk
    return 10.0**log10 if log10 < math.log10(_LARGEST) else None


def _stated(bound: Bound, places: Mapping[float, Setting], quantity: str) -> Series:
    """Your own theorem: its formula at every place, of the kind its author states."""
    if bound.kind == "proxy" or bound.quantity != quantity:
        raise InvalidSetting(f"{bound.name!r} is a {bound.kind} of the {bound.quantity}: this figure has {quantity}s")
    y = tuple(min(_LARGEST, 10.0 ** bound.log10(setting)) for setting in places.values())
    return Series(bound.name, bound.kind, quantity, tuple(places), y, label=f"{bound.name}, as its author states")


def least_m(setting: Setting, bound: str, target: float, quantity: Quantity = "risk") -> float | None:
    """The smallest m at which a bound promises a gap or a risk; None where no m does."""
    try:
        return solve(setting, "m", target, bound=bound, quantity=quantity, digits=3).value
    except (NoSolution, Unsupported):
        return None


def _title(letter: str, series: Sequence[Series], needs: float | None) -> str:
    """The claim of a figure: what the best bound drawn does along the axis."""
    bounds = [one for one in series if one.promises and one.informative]
    if letter == "m":
        if needs is None:
            return "Bounds against the number of training sequences"
        return f"A bound of {SMALL:g} needs {number(needs)} training sequences"
    if not bounds:
        return f"Every bound drawn is vacuous, whatever {letter} is"
    best = next((one for one in bounds if one.key == "best"), bounds[0])
    (first, low), (last, high) = best.informative[0], best.informative[-1]
    how = "stays the same"
    if abs(high / low - 1) >= 0.01:
        how = f"grows {high / low:,.3g}-fold" if high > low else f"falls {low / high:,.3g}-fold"
    return f"{letter} = {first:g} to {last:g}: the {look(best.key).name} {how}"


def number(value: float) -> str:
    """A count in words: 48, 12,000, 1.8 million, 6.4e13."""
    if value < 1e6:
        return f"{value:,.0f}"
    if value < 1e9:
        return f"{value / 1e6:.3g} million"
    return f"{value:.2e}".replace("e+", "e")


def describe(setting: Setting, *, but: str = "") -> str:
    """A setting in a line, without the field of an axis."""
    architecture, norms, sample = setting.architecture, setting.norms, setting.sample
    parts = {
        "depth": f"depth {architecture.depth}",
        "d": f"width {architecture.d}",
        "heads": f"{architecture.heads} head{'s' * (architecture.heads != 1)}",
        "T": f"T = {architecture.seq_len}",
        "C": "norm budgets given" if norms.budgets else f"norms at most {norms.C:g}" if norms.C is not None else "",
        "m": f"m = {sample.n_train:,}",
        "gamma": f"gamma = {sample.margin:g}",
        "delta": f"delta = {sample.delta:g}",
    }
    return ", ".join(text for name, text in parts.items() if name != but and text)


def draw(figure: Figure) -> Any:
    """Bounds with their names at the right, the band down to the floor, and runs."""
    letter, by_key = figure.facts["letter"], {one.key: one for one in figure.series}
    drawn, (axes,) = canvas.sheet(figure, size=(5.0, 3.0))
    axes.set(yscale="log", xlabel=AXES[letter].words, ylabel="generalization gap")
    _along(axes, letter, figure.series)
    if "run" in by_key:
        canvas.runs(axes, by_key["run"], by_key["median"])
        canvas.note(drawn, canvas.RUNS + f" {figure.facts.get('note', '')}")
    bounds = [by_key[key] for key in in_order([one.key for one in figure.series if one.kind != "measured"])]
    ends = [(canvas.curve(axes, one), one.label or look(one.key).name, look(one.key).colour) for one in bounds]
    canvas.vacuous(axes, [name for end, name, _ in ends if end is None])
    if "best" in by_key and "gap-floor" in by_key:
        canvas.between(axes, by_key["best"], by_key["gap-floor"])
    canvas.end_labels(axes, ends)
    return drawn


def _along(axes: Any, letter: str, shown: Sequence[Series]) -> None:
    from matplotlib.ticker import MaxNLocator

    x = [at for one in shown for at in one.x]
    if letter in _BINARY:
        low, high = math.floor(math.log2(min(x))), math.ceil(math.log2(max(x)))
        canvas.lengths(axes, [2.0**i for i in range(low, high + 1)])
    elif letter == "depth":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.set_xscale("log")
