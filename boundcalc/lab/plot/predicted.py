"""Predicted curves: the numbers of `compare`, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting, NoSolution, Unsupported
from boundcalc.base.load import is_own
from boundcalc.base.rounding import log10_up
from boundcalc.engine.evaluate import BoundValue, compare
from boundcalc.engine.solve import Quantity, solve
from boundcalc.formulas.theorems.own import Bound, own
from boundcalc.lab.plot.data import Series
from boundcalc.lab.plot.words import called
from boundcalc.setting import Setting


def curves(
    setting: Setting,
    field: str,
    values: Sequence[float],
    bounds: Sequence[str],
    quantities: Sequence[str],
    *,
    extra: int = 0,
) -> list[Series]:
    """One series per bound and quantity over the values of a field of the setting (plus `extra`, in the setting).

    Trivial values are left out, as refused ones are: there is nothing to draw or to divide by.
    """
    library = [name for name in bounds if not is_own(name)]
    rows: list[list[BoundValue] | str] = []
    settings: list[Setting | None] = []
    for value in values:
        try:
            given: Any = value if field == "C" else round(value) + extra
            settings.append(setting.but(**{field: given}))
            rows.append(compare(setting.but(**{field: given}), library))
        except InvalidSetting as error:  # such as d not divisible by heads
            settings.append(None)
            rows.append(str(error))
    if all(isinstance(row, str) for row in rows):
        raise InvalidSetting(str(rows[0]) if rows else f"no values of {field} to draw")
    stated = [_stated(own(name), values, settings, quantities) for name in bounds if is_own(name)]
    found: list[Series] = []
    for i, name in enumerate(library):
        column = [None if isinstance(row, str) else row[i] for row in rows]
        for quantity in quantities:
            found.append(_series(name, quantity, values, column, rows))
    refused = all(
        value is None or value.refusal is not None for row in rows if not isinstance(row, str) for value in row
    )
    if refused and found:
        raise InvalidSetting(f"no bound applies anywhere on this axis: {found[0].refusal}")
    return [*found, *stated]


def _stated(
    bound: Bound, values: Sequence[float], settings: Sequence[Setting | None], quantities: Sequence[str]
) -> Series:
    """A theorem of one's own: its formula at every place, of the kind its author states."""
    if bound.quantity not in quantities:
        raise InvalidSetting(f"{bound.name!r} is of the {bound.quantity}: add --quantity {bound.quantity}")
    logs = tuple(None if setting is None else bound.log10(setting) for setting in settings)
    return Series(
        key=bound.name,
        label=f"{bound.name}, as its author states",
        kind=bound.kind,
        quantity=bound.quantity,
        x=tuple(float(value) for value in values),
        y=tuple(None if log is None else min(1.0, 10.0**log) for log in logs),
        log10=logs,
        panel=bound.quantity,
    )


def _series(
    name: str, quantity: str, values: Sequence[Any], column: Sequence[BoundValue | None], rows: Sequence[Any]
) -> Series:
    good = [value if value is not None and not why_not(value, quantity) else None for value in column]
    refusals = [text for v in column if v is not None and (text := why_not(v, quantity))]
    refusals += [row for row in rows if isinstance(row, str)]
    return Series(
        key=name,
        label=called(name),
        kind=next((value.kind for value in good if value is not None), "bound"),
        quantity=quantity,
        x=tuple(float(value) for value in values),
        y=tuple(None if value is None else value.of(quantity).value for value in good),
        log10=tuple(None if value is None else log_height(value, quantity) for value in good),
        refusal=refusals[0] if refusals else "",
        panel=quantity,
    )


def why_not(value: BoundValue, quantity: str) -> str:
    """Why a bound has no value to draw: it is refused, or trivial."""
    if value.refusal is not None:
        return str(value.refusal)
    if quantity == "risk" and value.risk_refusal is not None:
        return str(value.risk_refusal)
    trivial = value.of(quantity).trivial
    return f"the {quantity} bound of {value.name!r} is trivial: its least proof covers nothing" if trivial else ""


def log_height(value: BoundValue, quantity: str) -> float:
    """Base-10 logarithm of the uncapped value."""
    return log10_up(value.of(quantity).log_value)


def least_samples(
    settings: Sequence[tuple[float, Setting]], bound: str, target: float, quantity: Quantity = "risk"
) -> Series:
    """The least m at which a bound promises a risk, or a gap, per place on the axis."""
    found: list[float | None] = []
    refusal = ""
    for _, setting in settings:
        try:
            found.append(solve(setting, "m", target, bound=bound, quantity=quantity, digits=3).value)
        except (NoSolution, Unsupported) as error:
            refusal = refusal or str(error)
            found.append(None)
    return Series(
        bound, called(bound), "bound", "m", tuple(x for x, _ in settings), tuple(found), refusal=refusal, panel="main"
    )
