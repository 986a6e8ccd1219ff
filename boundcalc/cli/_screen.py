"""A report as text: the verdict, the table, what must be said below, the setting; the account of the best bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from flint import arb

from boundcalc.base.intervals import upper_log
from boundcalc.base.rounding import at_least, down, near, percent, short, up, upper
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.cli._report import TARGET, Report, counts_stored, growth_of
from boundcalc.cli._setting import setting_lines
from boundcalc.cli._text import say, write_table
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.growth import value_of
from boundcalc.statements.strategies import STRATEGIES, Quantity

if TYPE_CHECKING:
    from boundcalc.engine.why import Change, Why
    from boundcalc.setting import Setting

VACUOUS = "vacuous"
"""Shown in place of a bound that is 1 or more, with the uncapped value where there is one."""
NO_MEMBER = "-"
"""Shown in place of a risk bound whose premise no known network meets."""
_LN10 = math.log(10)
_MOST_NAMED = 6
"""Pieces that are named in the account."""


def amount(log10: float) -> str:
    """A value by its logarithm; "vacuous" from 0.999 on, with the uncapped value next to it."""
    if log10 < math.log10(math.exp(-VACUOUS_MARGIN)):
        return upper(log10)
    return f"{VACUOUS} ({upper(log10)})" if log10 > 1e-9 else VACUOUS


def show(report: Report) -> None:
    """Print a report."""
    for line in (_verdict(report, "gap"), _verdict(report, "risk"), _enough(report)):
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
    best = report.best()
    if report.why is not None and best is not None:
        _say_why(best, report.why, report.question.setting)


def _table(report: Report) -> None:
    """A row for each bound; kinds are shown where they differ from "bound"."""
    kinds = any(value.kind != "bound" for value in report.bounds)
    names = ["bound", *["kind"] * kinds, "gap <=", "risk <=", "strategy", "growth in T"]
    rows: list[list[str]] = []
    for value in report.bounds:
        kind = ["refused" if value.refusal is not None else value.kind.replace("_", " ")] * kinds
        row = [value.name, *kind, _amount(value, "gap"), _amount(value, "risk")]
        if value.refusal is None and not value.trivial:
            row += [value.strategy, str(growth_of(value, "T") or "?")]
        rows.append(row)
    best = report.best()
    styles = ["bold" if v is best else "dim" * (v.refusal is not None or v.vacuous) for v in report.bounds]
    write_table(names, rows, styles=styles)


def _amount(value: BoundValue, quantity: Quantity) -> str:
    """A bound as it is shown; proxies with '~'."""
    if value.refusal is not None or (quantity == "risk" and value.risk_refusal is not None):
        return NO_MEMBER
    proof = value.of(quantity)
    return "~" * (value.kind == "proxy") + (VACUOUS if proof.trivial else amount(proof.log10))


def _verdict(report: Report, quantity: Quantity) -> str:
    """One quantity: its best bound, and the floor under it."""
    sample, best = report.question.setting.sample, report.best(quantity)
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


def _notes(report: Report) -> Iterator[str]:
    """What must be said below the table."""
    sample, bits = report.question.setting.sample, report.question.setting.architecture.bits
    refusals = {str(value.risk_refusal): None for value in report.bounds if value.risk_refusal is not None}
    if sample.lipschitz is not None:
        yield (
            f"The loss is any with values in [0, 1] and Lipschitz constant {short(sample.lipschitz)}; no margin is "
            "meant. Risk is its expectation where the training loss is 0: the gap bound."
        )
    else:
        risk = (
            f"Risk: chance of an error, at train error {short(sample.train_error)}. Each floor is of the same quantity."
        )
        for text in [f"No risk bound: {refusal}" for refusal in refusals] or [risk]:
            yield f"Gap: expected ramp loss less its mean on the sample, for every training error. {text}"
    for value in report.bounds:
        if value.refusal is not None:
            yield f"{value.name} refused: {value.refusal}"
    if any(value.kind == "proxy" for value in report.bounds):
        yield "~ marks proxies: numbers that lack constants or the union bound over what was tried, not bounds."
    if bits is not None:
        names = ", ".join(repr(value.name) for value in report.bounds if counts_stored(value))
        premise = f"each of the {short(report.weights)} stored weights is a number of {bits} bits, and that was fixed"
        based = f"{names} is based on a premise:" if names else "No bound here gains from the premise that"
        yield f"{based} {premise} before the data (G13); leave out --bits for the bound without it."
    for needed in report.needed:
        if needed.m is None and needed.why_not not in refusals:
            yield f"No m is known to give {needed.quantity} <= {short(TARGET)}: {needed.why_not.rstrip('.')}."


# -- what the best bound is made of


def _say_why(best: BoundValue, accounts: tuple[Why, ...], setting: Setting) -> None:
    """Print why the best gap and risk bound are what they are, and which change helps most."""
    if not accounts:
        say(f"\nwhy: {best.name!r} is a closed formula; boundcalc derive --bound {best.name} shows it.")
    for account in accounts:
        say()
        for line in _account(best, account, setting):
            say(line)


def _account(best: BoundValue, account: Why, setting: Setting) -> Iterator[str]:
    what, strategy = account.quantity, account.strategy
    count, m = STRATEGIES[strategy].counted, short(account.n_train)
    head = f"Why the {what} of {best.name!r}"
    if account.first_link:
        head += " is trivial; its first link, whose cost exceeds its gain"
    if account.counts:
        yield f"{head}: {strategy}, {count} = {upper(account.log_count / _LN10)} against m = {m}."
        shares = [part.share for part in account.counts]
        pieces = [f"{part.key} {percent(part.share)}" for part in account.counts[:_MOST_NAMED] if part.share > 0]
        if more := len(shares[_MOST_NAMED:]):
            pieces.append(f"{more} other{'s' * (more > 1)} {percent(sum(shares[_MOST_NAMED:]))}")
        yield f"  {count} by piece: {', '.join(pieces)}"
    else:
        yield f"{head}: {strategy}, which counts no covers, at m = {m}."
    if not account.first_link:
        proof = best.of(what).breakdown
        yield f"  {proof.formula}, where"
        for term in proof.terms:
            yield f"    {term.formula} = {_number(term.value)}" + f" [{term.statement}]" * bool(term.statement)
        yield f"  by {' '.join(dict.fromkeys(proof.statements))} (boundcalc explain NAME shows each)"
    yield f"  d log({f'{count} / m' if account.saturates else what}) / d log: {_slopes(account.elasticities)}"
    aim = "halve it" if account.halves else "bring it below 1"
    if account.changes:
        changes = "; or ".join(_change(change, what, setting) for change in account.changes)
        yield f"  One change that would {aim}: {changes}"
    else:
        yield f"  No single change that was tried would {aim} while some network still has the margin."


def _number(x: arb) -> str:
    log = upper_log(x)
    return "1" if -1e-9 < log <= 0 else upper(log / _LN10)


def _slopes(slopes: Mapping[str, float]) -> str:
    norms = {name.removeprefix("norm "): slope for name, slope in slopes.items() if name.startswith("norm ")}
    plain = [f"{name} {_slope(slope)}" for name, slope in slopes.items() if not name.startswith("norm ")]
    large = sorted((name for name in norms if _slope(norms[name]) != "0"), key=lambda name: -abs(norms[name]))
    kinds = [f"{name} {_slope(norms[name])}" for name in large]
    if len(large) < len(norms):
        kinds.append(f"{len(norms) - len(large)} other kinds 0")
    return ", ".join(plain) + "; norm of " + ", ".join(kinds)


def _slope(slope: float) -> str:
    return near(slope, 2) if abs(slope) >= 0.005 else "0"


def _change(change: Change, what: str, setting: Setting) -> str:
    bound = upper(change.log_bound / _LN10)
    if change.value is None:
        return f"{change.what} times {near(change.factor, 3)} ({what} <= {bound})"
    before = value_of(setting, change.what) or 0.0
    return f"{change.what} {short(change.value)} for {short(before)} ({what} <= {bound})"
