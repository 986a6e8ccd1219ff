"""`--why`: the account of the best gap and risk bound, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from boundcalc.base.rounding import near, percent
from boundcalc.cli.values import short, upper
from boundcalc.engine.growth import value_of
from boundcalc.statements.strategies import STRATEGIES

if TYPE_CHECKING:
    from boundcalc.cli.report import Report
    from boundcalc.engine.why import Change, Why
    from boundcalc.setting import Setting

_MOST = 6
"""Pieces that are named."""
_LN10 = math.log(10)


def why_lines(report: Report) -> list[str]:
    """The text below the table; a line of its own for every item."""
    if report.best is None:
        return []
    if not report.why:
        return [f"why: {report.best.name!r} is a closed formula; boundcalc derive --bound {report.best.name} shows it."]
    return [line for account in report.why for line in _lines(report.best.name, account, report.question.setting)]


def _lines(name: str, account: Why, setting: Setting) -> list[str]:
    what = account.quantity
    count = STRATEGIES[account.strategy].counted
    about = f"{account.strategy}, {count} = {upper(account.log_count / _LN10)} against m = {short(account.n_train)}"
    head = f"Why the {what} of {name!r}: {about}"
    if account.first_link:
        head = f"Why the {what} of {name!r} is trivial; its first link, whose cost exceeds its gain: {about}"
    if not account.counts:
        about = f"{account.strategy}, which counts no covers, at m = {short(account.n_train)}"
        head = f"Why the {what} of {name!r}: {about}"
    pieces = ", ".join(f"{c.key} {percent(c.share)}" for c in account.counts[:_MOST] if c.share > 0)
    rest, more = sum(c.share for c in account.counts[_MOST:]), len(account.counts) - _MOST
    lines = [f"{head}."]
    if account.counts:
        lines.append(
            f"  {count} by piece: {pieces}" + (f", {more} other{'s' * (more > 1)} {percent(rest)}" if rest else "")
        )
    of = f"{count} / m" if account.saturates else what
    lines.append(f"  d log({of}) / d log: {_slopes(account.elasticities)}")
    aim = "halve it" if account.halves else "bring it below 1"
    if account.changes:
        lines.append(
            f"  One change that would {aim}: " + "; or ".join(_change(c, what, setting) for c in account.changes)
        )
    else:
        lines.append(f"  No single change that was tried would {aim} while some network still has the margin.")
    return lines


def _slopes(slopes: Mapping[str, float]) -> str:
    own = {name.removeprefix("norm "): slope for name, slope in slopes.items() if name.startswith("norm ")}
    plain = [f"{name} {_slope(slope)}" for name, slope in slopes.items() if not name.startswith("norm ")]
    large = sorted((name for name in own if abs(own[name]) >= 0.005), key=lambda name: -abs(own[name]))
    kinds = [f"{name} {_slope(own[name])}" for name in large]
    if len(large) < len(own):
        kinds.append(f"{len(own) - len(large)} other kinds 0")
    return ", ".join(plain) + "; norm of " + ", ".join(kinds)


def _slope(slope: float) -> str:
    return near(slope, 2) if abs(slope) >= 0.005 else "0"


def _change(change: Change, what: str, setting: Setting) -> str:
    bound = upper(change.log_bound / _LN10)
    if change.value is None:
        return f"{change.what} times {near(change.factor, 3)} ({what} <= {bound})"
    before = value_of(setting, change.what) or 0.0
    return f"{change.what} {short(change.value)} for {short(before)} ({what} <= {bound})"
