"""A report as text: the verdict, the table, what must be said below, the setting; proofs and the account in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flint import arb

from boundcalc.base.intervals import upper_log
from boundcalc.base.rounding import at_least, down, near, percent, short, up, upper
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.cli.report import TARGET, Report
from boundcalc.cli.setting import setting_lines
from boundcalc.cli.text import say, write_table
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.growth import value_of
from boundcalc.proof.breakdown import Breakdown, Part
from boundcalc.statements.strategies import STRATEGIES, Quantity

if TYPE_CHECKING:
    from boundcalc.engine.search import Needed as FirstLink
    from boundcalc.engine.why import Change, Why
    from boundcalc.setting import Setting

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
        _say_why(report)


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


# -- what the best bound is made of

_LN10 = math.log(10)
_MOST_PIECES = 12
"""Pieces of a level that are shown; the rest are summed up."""
_MOST_NAMED = 6
"""Pieces that are named in the account."""


def show_proofs(report: Report, *, all_bounds: bool) -> None:
    """Print the proofs of the best bound, or of all that were requested."""
    for value in report.bounds:
        if value.refusal is not None or not (all_bounds or value is report.best):
            continue
        proofs = [proof for proof in value.proofs if not proof.trivial]
        if not proofs:
            say(f"\n{value.name}: gap trivial: every covering argument gives a bound above 1")
        for proof in proofs:
            say()
            for depth, text in _proof(value.name, proof.breakdown):
                say("  " * depth + text, hang=2)
    say("\nboundcalc explain NAME shows a statement in full.")


def _proof(name: str, proof: Breakdown) -> Iterator[tuple[int, str]]:
    """The value, what it is made of, and what that is made of, each with its depth."""
    certificate = proof.certificate
    counted = STRATEGIES[certificate.strategy].counted
    yield 0, f"{name}: {certificate.quantity} <= {_number(proof.value)} by {certificate.strategy}"
    yield 1, proof.formula
    for term in proof.terms:
        yield 2, f"{term.formula} = {_number(term.value)}" + (f"   [{term.statement}]" if term.statement else "")
    for j, level in enumerate(proof.levels, start=1):
        label = f"level {j}: " if len(proof.levels) > 1 else ""
        link = "" if level.link is None else f", link {_number(level.link)}"
        yield 1, f"{label}scale {_number(level.scale)}, {counted} {_number(level.count)}{link}"
        yield from ((2, text) for text in _pieces(level.parts, counted))
    yield 1, "statements: " + " ".join(dict.fromkeys(proof.statements))


def _pieces(parts: Sequence[Part], counted: str) -> Iterator[str]:
    """A line for each piece; spaces that hold its columns apart are not broken."""
    shown = sorted(parts, key=lambda part: -part.share)[:_MOST_PIECES] if len(parts) > _MOST_PIECES + 1 else parts
    width = max((len(part.key) for part in shown), default=0)
    for part in shown:
        sizes = (
            f"eps {_number(part.eps):>9}",
            f"error {_number(part.error):>9}",
            f"{counted} {_number(part.count):>9}",
        )
        text = f"{part.key:{width}}  {'/'.join(part.lemmas):3} {'  '.join(sizes)} {percent(part.share):>5}"
        yield text.replace("  ", "\xa0\xa0")
    if rest := len(parts) - len(shown):
        share = percent(1 - sum(part.share for part in shown))
        yield f"and {rest} more pieces with {share} of {counted}"


def _number(x: arb) -> str:
    log = upper_log(x)
    return "1" if -1e-9 < log <= 0 else upper(log / _LN10)


def _say_why(report: Report) -> None:
    """Print why the best gap and risk bound are what they are, and which change helps most."""
    if report.best is None:
        return
    name = report.best.name
    if not report.why:
        say(f"\nwhy: {name!r} is a closed formula; boundcalc derive --bound {name} shows it.")
    for account in report.why or ():
        say()
        for line in _account(name, account, report.question.setting):
            say(line)


def _account(name: str, account: Why, setting: Setting) -> Iterator[str]:
    what, strategy = account.quantity, account.strategy
    count, m = STRATEGIES[strategy].counted, short(account.n_train)
    head = f"Why the {what} of {name!r}"
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
    yield f"  d log({f'{count} / m' if account.saturates else what}) / d log: {_slopes(account.elasticities)}"
    aim = "halve it" if account.halves else "bring it below 1"
    if account.changes:
        changes = "; or ".join(_change(change, what, setting) for change in account.changes)
        yield f"  One change that would {aim}: {changes}"
    else:
        yield f"  No single change that was tried would {aim} while some network still has the margin."


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
