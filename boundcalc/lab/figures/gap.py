"""`gap-vs-AXIS`: bounds of the gap or the risk along any one axis, and measured runs next to them."""

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
_YLABELS = {"gap": "generalization gap", "risk": "risk at training error 0"}


def collect(
    letter: str,
    setting: Setting,
    values: Sequence[float] = (),
    bounds: Sequence[str] = (),
    quantities: Sequence[str] = ("gap",),
    runs: Sequence[Run] = (),
    *,
    extra: int = 0,
) -> Figure:
    """Bounds along an axis, and runs; `extra` rows are read besides the T of the axis."""
    axis = AXES[letter]
    series: list[Series] = [one for q in quantities for one in (measured(runs, letter, q) if runs else ())]
    series += curves(setting, axis.field, values or axis.values, bounds or BOUNDS, quantities, extra=extra)
    if all(not one.known() for one in series):
        raise NoSolution(f"there is nothing to draw: {series[0].refusal}")
    first: Any = quantities[0]
    has_best = any(one.key == "best" for one in series)
    needs = least_m(setting, "best", SMALL, first) if letter == "m" and has_best else None
    title = _title(letter, [one for one in series if one.quantity == first], needs)
    facts: dict[str, Any] = {"setting": setting.complete_json(), "letter": letter}
    about = describe(setting, but=letter)
    caption = f"Bounds of the {first} along {axis.words} ({about}), and the proved floor where it is known."
    return Figure(f"gap-vs-{letter}", title, about, caption, f"{title}. {caption}", tuple(series), facts)


def curves(
    setting: Setting,
    field: str,
    values: Sequence[float],
    bounds: Sequence[str],
    quantities: Sequence[str],
    *,
    extra: int = 0,
) -> list[Series]:
    """One series per bound and quantity over the values of a field of the setting; trivial values are left out."""
    places: list[tuple[float, Setting]] = []
    refused = ""
    for value in values:
        change: Any = (
            value if field in ("C", "margin", "delta") else round(value) + (extra if field == "seq_len" else 0)
        )
        try:
            places.append((float(value), setting.but(**{field: change})))
        except InvalidSetting as error:  # such as d not divisible by heads
            refused = refused or str(error)
    if not places:
        raise InvalidSetting(refused or f"no values of {field} to draw")
    library = [name for name in bounds if not is_name(name)]
    grid = [compare(at, library) if library else [] for _, at in places]
    series: list[Series] = []
    for i, name in enumerate(library):
        for quantity in quantities:
            pairs = [_height(row[i], quantity) for row in grid]
            kind = next((row[i].kind for row, pair in zip(grid, pairs, strict=True) if pair[0] is not None), "bound")
            refusal = next((why for _, why in pairs if why), "")
            y = tuple(value for value, _ in pairs)
            series.append(Series(name, kind, quantity, tuple(x for x, _ in places), y, panel=quantity, refusal=refusal))
    if "best" in library and "gap" in quantities:
        floors = [None if (floor := floor_of(at)) is None else floor.value for _, at in places]
        if any(floors):
            series.append(
                Series("gap-floor", "reference", "gap", tuple(x for x, _ in places), tuple(floors), panel="gap")
            )
    return series + [_stated(own(name), places, quantities) for name in bounds if is_name(name)]


def _height(value: Any, quantity: str) -> tuple[float | None, str]:
    """The uncapped bound, or why there is none."""
    refusal = value.refusal or (value.risk_refusal if quantity == "risk" else None)
    if refusal is not None:
        return None, str(refusal)
    if value.of(quantity).trivial:
        return None, f"the {quantity} bound of {value.name!r} is vacuous at every covering radius"
    log10 = value.log10 if quantity == "gap" else value.log10_risk
    return (10.0**log10, "") if log10 < math.log10(_LARGEST) else (None, "beyond 10^300")


def _stated(bound: Bound, places: Sequence[tuple[float, Setting]], quantities: Sequence[str]) -> Series:
    """Your own theorem: its formula at every place, of the kind its author states."""
    if bound.kind == "proxy":
        raise InvalidSetting(f"{bound.name!r} is a proxy, which misses constants: a figure shows bounds")
    if bound.quantity not in quantities:
        raise InvalidSetting(f"{bound.name!r} is of the {bound.quantity}: add --quantity {bound.quantity}")
    y = tuple(min(_LARGEST, 10.0 ** bound.log10(setting)) for _, setting in places)
    label = f"{bound.name}, as its author states"
    x = tuple(at for at, _ in places)
    return Series(bound.name, bound.kind, bound.quantity, x, y, label=label, panel=bound.quantity)


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
    """One panel per quantity."""
    letter = figure.facts["letter"]
    quantities = [q for q in _YLABELS if figure.of(quantity=q)]
    drawn, panels = canvas.sheet(figure, len(quantities), size=(5.0 + 2.2 * (len(quantities) - 1), 3.0))
    for axes, quantity in zip(panels, quantities, strict=True):
        _panel(axes, letter, quantity, figure.of(quantity=quantity))
    if figure.of(key="run"):
        canvas.note(drawn, canvas.RUNS + f" {figure.facts.get('note', '')}")
    return drawn


def _panel(axes: Any, letter: str, quantity: str, shown: Sequence[Series]) -> None:
    axes.set(yscale="log", xlabel=AXES[letter].words, ylabel=_YLABELS[quantity])
    _along(axes, letter, shown)
    by_key = {one.key: one for one in shown}
    if "run" in by_key:
        canvas.runs(axes, by_key["run"], by_key["median"])
    labels: list[tuple[tuple[float, float] | None, str, str]] = []
    silent: list[str] = []
    for key in in_order([one.key for one in shown if one.kind != "measured"]):
        end = canvas.curve(axes, by_key[key])
        name = by_key[key].label or look(key).name
        labels.append((end, name, look(key).colour))
        if end is None:
            silent.append(name)
    canvas.vacuous(axes, silent)
    if "best" in by_key and "gap-floor" in by_key:
        canvas.between(axes, by_key["best"], by_key["gap-floor"])
    canvas.end_labels(axes, labels)


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
