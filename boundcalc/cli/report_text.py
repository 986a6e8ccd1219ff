"""A report in words: the cells of its table, and what must be said below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from boundcalc.base.rounding import at_least, down, percent, up
from boundcalc.base.value import VACUOUS_MARGIN, Value
from boundcalc.cli.report import TARGET, Report
from boundcalc.cli.values import short, upper
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.growth import Growth
from boundcalc.statements.strategies import Quantity, stored_weights

if TYPE_CHECKING:
    from boundcalc.engine.search import Needed as FirstLink

VACUOUS = "vacuous"
"""Shown in place of a bound that is 1 or more, with the uncapped value where there is one."""
NO_MEMBER = "-"
"""Shown in place of a risk bound whose premise no known network meets."""


def _amounts(value: BoundValue) -> tuple[str, str]:
    """The gap and the risk bound as they are shown; proxies with '~'."""
    mark = "~" if value.kind == "proxy" else ""
    risk = NO_MEMBER if value.risk_refusal is not None else _amount(value.of("risk"))
    return (mark + _amount(value.of("gap")), mark + risk)


def _amount(value: Value) -> str:
    return VACUOUS if value.trivial else amount(value.log10)


def amount(log10: float) -> str:
    """A value by its logarithm; "vacuous" from 0.999 on, with the uncapped value next to it."""
    if log10 < math.log10(math.exp(-VACUOUS_MARGIN)):
        return upper(log10)
    return f"{VACUOUS} ({upper(log10)})" if log10 > 1e-9 else VACUOUS


def headings(report: Report) -> tuple[str, ...]:
    """Names of the columns; kinds are shown where they differ from "bound"."""
    kinds = ("kind",) if any(value.kind != "bound" for value in report.bounds) else ()
    return ("bound", *kinds, "gap <=", "risk <=", "strategy", "growth in T", "growth in m", "dominated by")


def cells(report: Report, value: BoundValue, names: Sequence[str]) -> tuple[str, ...]:
    """A bound's text under `headings`; of a refused one its name and kind."""
    kind = ("refused" if value.refusal is not None else value.kind.replace("_", " "),) if "kind" in names else ()
    if value.refusal is not None:
        return (value.name, *kind, NO_MEMBER, NO_MEMBER)
    dominant = None if value.trivial else value.dominant
    return (
        value.name,
        *kind,
        *_amounts(value),
        *(("", "", "") if value.trivial else (value.strategy, *map(_growth, report.growth(value).values()))),
        "" if dominant is None else f"{dominant[0]} {percent(dominant[1])}",
    )


def _growth(growth: Growth | None) -> str:
    return "?" if growth is None else str(growth)


def verdict(report: Report) -> list[str]:
    """The answer: the best bounds with the floors under them, and from which m on they are small."""
    lines = [line for quantity in ("gap", "risk") if (line := _verdict_of(report, quantity))]
    enough = [
        f"{needed.quantity} <= {short(TARGET)} from m = {at_least(needed.m)} on" for needed in report.needed if needed.m
    ]
    return lines + ([f"Enough  {', '.join(enough)}"] if enough else [])


def _verdict_of(report: Report, quantity: Quantity) -> str:
    """One quantity: its best bound, and the floor under it."""
    sample = report.question.setting.sample
    best = min(report.proved(quantity), key=lambda value: value.of(quantity).log_value, default=None)
    name = f"{quantity.capitalize():7}"
    if best is None:
        return "" if quantity == "gap" else f"{name} no bound (see below)"
    bound, floor = best.of(quantity), report.floors.get(quantity) if best.kind == "bound" else None
    default = ", the default" if report.question.assumed("train_error") else ""
    at = (
        f" at train error {short(sample.train_error)}{default}"
        if quantity == "risk" and sample.lipschitz is None
        else ""
    )
    least = "" if floor is None else f"no such bound is below {down(floor.value)} (floor)"
    if bound.vacuous:
        return f"{name} {VACUOUS}: the best bound{at} is 1 or more" + (f"; {least}" if least else "")
    ratio = best.ratio_to(floor, quantity) if floor is not None else None
    far = "" if ratio is None else f", at most {up(ratio, 2)} times from optimal"
    return f"{name} at most {upper(bound.log10)}{at}, by {best.name!r}" + (f"; {least}{far}" if least else "")


def notes(report: Report) -> list[str]:
    """What must be said below the table."""
    sample = report.question.setting.sample
    refusals = {str(value.risk_refusal): None for value in report.bounds if value.risk_refusal is not None}
    if sample.lipschitz is not None:
        lines = [
            f"The loss is any with values in [0, 1] and Lipschitz constant {short(sample.lipschitz)}; no margin is "
            "meant. Risk is its expectation where the training loss is 0: the gap bound."
        ]
    else:
        about = "Gap: expected ramp loss less its mean on the sample, for every training error. "
        lines = [f"{about}No risk bound: {text}" for text in refusals] or [
            f"{about}Risk: chance of an error, at train error {short(sample.train_error)}. Each floor is of the same "
            "quantity."
        ]
    lines += [f"{value.name} refused: {value.refusal}" for value in report.bounds if value.refusal is not None]
    if any(value.kind == "proxy" for value in report.bounds):
        lines.append("~ marks proxies: numbers that lack constants or the union bound over what was tried, not bounds.")
    lines += [*_stored_lines(report), *_vacuous_lines(report)]
    return lines + [
        f"No m is known to give {needed.quantity} <= {short(TARGET)}: {needed.why_not.rstrip('.')}."
        for needed in report.needed
        if needed.m is None and needed.why_not not in refusals
    ]


def _stored_lines(report: Report) -> list[str]:
    """Which bounds are based on the bits of a weight, and what they are without."""
    bits = report.question.setting.architecture.bits
    if bits is None:
        return []
    weights = short(sum(stored_weights(report.question.setting).values()))
    premise = (
        f"each of the {weights} stored weights is a number of {bits} bits, and that was fixed before the data (G13)"
    )
    without = report.unstored
    if without is None:
        return [f"No bound here gains from the premise that {premise}."]
    if without.refusal is not None:
        return [f"{without.name!r} is based on a premise: {premise}. Without it there is no bound: {without.refusal}"]
    gap, risk = _amounts(without)
    return [
        f"{without.name!r} is based on a premise: {premise}. Without it: gap {_at_most(gap)}, risk {_at_most(risk)}."
    ]


def _at_most(amount: str) -> str:
    return amount if amount.startswith(VACUOUS) else "without a bound" if amount == NO_MEMBER else f"<= {amount}"


def _vacuous_lines(report: Report) -> list[str]:
    """How far covering arguments that are vacuous at every radius are from a bound below 1."""
    trivial = [value for value in report.bounds if value.refusal is None and value.trivial]
    parts = [f"{value.name!r} {_distance(value.needed)}" for value in trivial if value.needed is not None]
    m = short(report.question.setting.sample.n_train)
    return [f"At m = {m} every cover is too large for a bound below 1: {'; '.join(parts)}."] if parts else []


def _distance(needed: FirstLink) -> str:
    count = upper(needed.log10_count)
    would = "no m up to 10^300 suffices"
    if needed.n_train is not None:
        size = upper(math.log10(needed.n_train))
        whole = math.ceil(float(size))
        would = f"m = {at_least(whole) if whole < 10**6 else size} suffices"
    return f"needs a cover of log N = {count}, {would}"
