"""What the best bound is made of: its proof with its numbers (`--explain`), and the account in words (`--why`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flint import arb

from boundcalc.base.intervals import upper_log
from boundcalc.base.rounding import near, percent, short, upper
from boundcalc.cli.report import Report
from boundcalc.cli.text import say
from boundcalc.engine.growth import value_of
from boundcalc.proof.breakdown import Breakdown, Part
from boundcalc.statements.strategies import STRATEGIES

if TYPE_CHECKING:
    from boundcalc.engine.why import Change, Why
    from boundcalc.setting import Setting

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


def say_why(report: Report) -> None:
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
