"""A report as text: the verdict, the table, what must be said below, the setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boundcalc.base.rounding import at_least, down, percent, short, up, upper
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.cli.report import TARGET, Report
from boundcalc.cli.setting import setting_lines
from boundcalc.cli.text import say, write_table
from boundcalc.engine.bound import BoundValue
from boundcalc.statements.strategies import Quantity

if TYPE_CHECKING:
    from boundcalc.engine.search import Needed as FirstLink

VACUOUS = "vacuous"
"""Shown in place of a bound that is 1 or more, with the uncapped value where there is one."""
NO_MEMBER = "-"
"""Shown in place of a risk bound whose premise no known network meets."""


def amount(log10: float) -> str:
    """A value by its logarithm; "vacuous" from 0.999 on, with the uncapped value next to it."""
    if log10 < math.log10(math.exp(-VACUOUS_MARGIN)):
        return upper(log10)
    return f"{VACUOUS} ({upper(log10)})" if log10 > 1e-9 else VACUOUS


def _amount(value: BoundValue, quantity: Quantity) -> str:
    """A bound as it is shown; proxies with '~'."""
    if value.refusal is not None or (quantity == "risk" and value.risk_refusal is not None):
        return NO_MEMBER
    proof = value.of(quantity)
    return "~" * (value.kind == "proxy") + (VACUOUS if proof.trivial else amount(proof.log10))


def show(report: Report) -> None:
    """Print a report."""
    for line in (*(_verdict(report, quantity) for quantity in ("gap", "risk")), _enough(report)):
        if line:
            say(line)
    say()
    _table(report)
    say()
    for line in _notes(report):
        say(line)
    say()
    for line in setting_lines(report.question):
        say(line)
    if report.why is not None:
        from boundcalc.cli.proofs import say_why

        say_why(report)


def _table(report: Report) -> None:
    """A row for each bound; kinds are shown where they differ from "bound"."""
    kinds = any(value.kind != "bound" for value in report.bounds)
    names = ["bound", *["kind"] * kinds, "gap <=", "risk <=", "strategy", "growth in T", "growth in m", "dominated by"]
    rows: list[list[str]] = []
    for value in report.bounds:
        kind = ["refused" if value.refusal is not None else value.kind.replace("_", " ")] * kinds
        row = [value.name, *kind, _amount(value, "gap"), _amount(value, "risk")]
        if value.refusal is None and not value.trivial:
            growths = ("?" if growth is None else str(growth) for growth in report.growth(value).values())
            row += [value.strategy, *growths]
            row += [f"{value.dominant[0]} {percent(value.dominant[1])}"] if value.dominant is not None else []
        rows.append(row)
    styles = ["bold" if v is report.best else "dim" * (v.refusal is not None or v.vacuous) for v in report.bounds]
    write_table(names, rows, droppable=("growth in m", "dominated by", "growth in T", "strategy"), styles=styles)


def _verdict(report: Report, quantity: Quantity) -> str:
    """One quantity: its best bound, and the floor under it."""
    sample = report.question.setting.sample
    best = min(report.proved(quantity), key=lambda value: value.of(quantity).log_value, default=None)
    name = f"{quantity.capitalize():7}"
    if best is None:
        return "" if quantity == "gap" else f"{name} no bound (see below)"
    bound, floor = best.of(quantity), report.floors.get(quantity) if best.kind == "bound" else None
    at = ""
    if quantity == "risk" and sample.lipschitz is None:
        default = ", the default" if report.question.assumed("train_error") else ""
        at = f" at train error {short(sample.train_error)}{default}"
    least = "" if floor is None else f"; no such bound is below {down(floor.value)} (floor)"
    if bound.vacuous:
        return f"{name} {VACUOUS}: the best bound{at} is 1 or more{least}"
    ratio = best.ratio_to(floor, quantity) if floor is not None else None
    far = "" if ratio is None else f", at most {up(ratio, 2)} times from optimal"
    return f"{name} at most {upper(bound.log10)}{at}, by {best.name!r}{least}{far}"


def _enough(report: Report) -> str:
    sizes = [f"{n.quantity} <= {short(TARGET)} from m = {at_least(n.m)} on" for n in report.needed if n.m]
    return f"Enough  {', '.join(sizes)}" if sizes else ""


def _notes(report: Report) -> list[str]:
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
    far = [f"{value.name!r} {_distance(value.needed)}" for value in report.bounds if value.needed is not None]
    if far:
        m = short(sample.n_train)
        lines.append(f"At m = {m} every cover is too large for a bound below 1: {'; '.join(far)}.")
    return [*lines, *_stored_lines(report)] + [
        f"No m is known to give {needed.quantity} <= {short(TARGET)}: {needed.why_not.rstrip('.')}."
        for needed in report.needed
        if needed.m is None and needed.why_not not in refusals
    ]


def _stored_lines(report: Report) -> list[str]:
    """Which bounds are based on the bits of a weight, and what they are without."""
    bits, plain = report.question.setting.architecture.bits, report.unstored
    if bits is None:
        return []
    premise = (
        f"each of the {short(report.weights)} stored weights is a number of {bits} bits, and that was fixed before "
        "the data (G13)"
    )
    if plain is None:
        return [f"No bound here gains from the premise that {premise}."]
    gap, risk = (f"{quantity} <= {_amount(plain, quantity)}" for quantity in ("gap", "risk"))
    without = f"there is no bound: {plain.refusal}" if plain.refusal is not None else f"{gap}, {risk}."
    return [f"{plain.name!r} is based on a premise: {premise}. Without it: {without}"]


def _distance(needed: FirstLink) -> str:
    """How far a covering argument that is vacuous at every radius is from a bound below 1."""
    would = "no m up to 10^300 suffices"
    if needed.n_train is not None:
        size = upper(math.log10(needed.n_train))
        whole = math.ceil(float(size))
        would = f"m = {at_least(whole) if whole < 10**6 else size} suffices"
    return f"needs a cover of log N = {upper(needed.log10_count)}, {would}"
