"""A report in words: the cells of its table, and what must be said below."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from boundcalc.base.rounding import at_least, down, up
from boundcalc.base.value import Value
from boundcalc.cli.report import TARGET, Needed, Report, Row
from boundcalc.cli.values import short, upper
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.growth import Growth
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.statements.strategies import stored_weights

if TYPE_CHECKING:
    from boundcalc.engine.search import Needed as FirstLink

TRIVIAL = "trivial"
"""Shown in place of a value whose proof is trivial."""
NO_MEMBER = "-"
"""Shown in place of a risk bound that speaks of no network."""


def _amounts(value: BoundValue) -> tuple[str, str]:
    """The gap and the risk bound as they are shown: capped at 1, with the uncapped value beside; proxies with '~'."""
    mark = "~" if value.kind == "proxy" else ""
    risk = NO_MEMBER if value.risk_refusal is not None else _amount(value.of("risk"))
    return (mark + _amount(value.of("gap")), mark + risk)


def _amount(value: Value) -> str:
    return TRIVIAL if value.trivial else amount(value.log10)


def amount(log10: float) -> str:
    """A value by its logarithm: capped at 1, with the uncapped value beside it."""
    return upper(log10) if log10 < -1e-9 else f"1 ({upper(log10)})" if log10 > 1e-9 else "1"


def _vacuity(value: BoundValue) -> str:
    """Which of the two says nothing: "no", "gap", "risk" or "yes" for all there is."""
    if value.risk_refusal is not None:
        return "yes" if value.vacuous else "no"
    gap, risk = value.vacuous, value.risk_vacuous
    return "yes" if gap and risk else "gap" if gap else "risk" if risk else "no"


HEADINGS = ("bound", "kind", "gap <=", "risk <=", "vacuous", "strategy", "growth in T", "growth in m", "dominated by")


def cells(row: Row) -> tuple[str, ...]:
    """A row's text under `HEADINGS`; a refused bound has its name, its kind and the reason."""
    value = row.value
    if value.refusal is not None:
        return value.name, "refused", str(value.refusal)
    dominant = None if value.trivial else value.dominant
    return (
        value.name,
        value.kind.replace("_", " "),
        *_amounts(value),
        _vacuity(value),
        *(("", "", "") if value.trivial else (value.strategy, _growth(row.growth["T"]), _growth(row.growth["m"]))),
        "" if dominant is None else f"{dominant[0]} {dominant[1]:.0%}",
    )


def _growth(found: Growth | None) -> str:
    return "?" if found is None else str(found)


def notes(report: Report) -> list[str]:
    """What must be said below the table."""
    sample = report.question.setting.sample
    assumed = " (default)" if report.question.assumed("train_error") else ""
    refusals = {str(row.value.risk_refusal): None for row in report.rows if row.value.risk_refusal is not None}
    if sample.lipschitz is not None:
        lines = [
            f"The loss is any with values in [0, 1] and Lipschitz constant {sample.lipschitz:g}; no margin is meant. "
            "Risk is its expectation where the training loss is 0: the gap bound."
        ]
    else:
        lines = [f"The gap bound holds for every training error. No risk bound: {text}" for text in refusals] or [
            f"The gap bound holds for every training error; the risk bound at train error {sample.train_error:g}"
            f"{assumed}. Gap and risk are different quantities: do not compare the columns."
        ]
    if any(row.value.kind == "proxy" for row in report.rows):
        lines.append("~ marks proxies: numbers that lack constants or the price of a choice, not bounds.")
    lines = [*_floor_lines(report), *lines, *_stored_lines(report)]
    lines += _trivial_lines(report)
    lines += _alike_lines(report)
    said = [
        _need_line(needed, sample.train_error, assumed) for needed in report.needed if needed.why_not not in refusals
    ]
    return lines + said


def _floor_lines(report: Report) -> list[str]:
    """How far the best bounds are from numbers that no bound of this kind can go below."""
    lines: list[str] = []
    for quantity in ("gap", "risk"):
        rows = [row for row in report.rows if quantity in row.floors]
        best = min(rows, key=lambda row: row.value.of(quantity).log_value, default=None)
        if best is None:
            continue
        floor, bound = best.floors[quantity], best.value.of(quantity)
        least, ratio = down(floor.value), best.value.ratio_to(floor, quantity)
        if ratio is None:
            lines.append(f"Proved floor: no bound of this kind can promise a {quantity} below {least}.")
        else:
            lines.append(
                f"{quantity.capitalize()} between {least} (proved floor) and {upper(bound.log10)} (proved bound, "
                f"{best.value.name!r}): at most {up(ratio, 2)} times from optimal."
            )
    return lines


def _stored_lines(report: Report) -> list[str]:
    """Which bounds rest on the bits of a weight, and what they are without."""
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
        return [f"{without.name!r} rests on a premise: {premise}. Without it there is no bound: {without.refusal}"]
    gap, risk = _amounts(without)
    return [f"{without.name!r} rests on a premise: {premise}. Without it: gap {_at_most(gap)}, risk {_at_most(risk)}."]


def _at_most(amount: str) -> str:
    return {TRIVIAL: TRIVIAL, NO_MEMBER: "of no network"}.get(amount, f"<= {amount}")


def _trivial_lines(report: Report) -> list[str]:
    """What `trivial` means here, and how far each such row is from a statement."""
    trivial = [row.value for row in report.rows if row.value.refusal is None and row.value.trivial]
    if not trivial:
        return []
    parts = [f"{value.name!r} {_distance(value.needed)}" for value in trivial if value.needed is not None]
    m = short(report.question.setting.sample.n_train)
    return [f"trivial: at m = {m} every covering argument gives a bound above 1. " + "; ".join(parts) + "."]


def _alike_lines(report: Report) -> list[str]:
    """Bounds of several names whose proofs are one, and what a name could have used besides."""
    groups: list[list[BoundValue]] = []
    for row in report.rows:
        value = row.value
        if value.refusal is not None or value.trivial or value.name not in BOUNDS:
            continue
        same = next((group for group in groups if _one_proof(group[0], value)), None)
        if same is None:
            groups.append([value])
        else:
            same.append(value)
    lines: list[str] = []
    for group in groups:
        if len(group) < 2:
            continue
        names = [value.name for value in group]
        shared = frozenset.intersection(*(BOUNDS[name].lemmas for name in names))
        more = {name: sorted(BOUNDS[name].lemmas - shared) for name in names}
        besides = [
            f"{', '.join(lemmas)}, which {name!r} has besides, is not used" for name, lemmas in more.items() if lemmas
        ]
        listed = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"
        both = "both" if len(names) == 2 else "all"
        lines.append(f"{'; '.join([f'{listed} coincide here: one proof, from lemmas that {both} have', *besides])}.")
    return lines


def _one_proof(one: BoundValue, other: BoundValue) -> bool:
    def bare(value: BoundValue) -> list[object]:
        return [replace(proof.certificate, policy="") for proof in value.proofs]

    return bare(one) == bare(other)


_POWER = re.compile(r"e\+0*")


def _distance(needed: FirstLink) -> str:
    count = upper(needed.log10_count)
    would = "no m up to 10^300 suffices"
    if needed.n_train is not None:
        size = upper(math.log10(needed.n_train))
        whole = math.ceil(float(size))
        would = f"m = {at_least(whole) if whole < 10**6 else _POWER.sub('e', size)} suffices"
    return f"needs a cover of log N = {count}, {would}"


def _need_line(needed: Needed, train_error: float, assumed: str) -> str:
    at = f" (train error {train_error:g}{', default' if assumed else ''})" if needed.quantity == "risk" else ""
    if needed.m is None:
        return f"Smallest m with {needed.quantity} <= {TARGET:g}{at}: {needed.why_not.rstrip('.')}."
    return f"Smallest m with {needed.quantity} <= {TARGET:g}{at}: {at_least(needed.m)}, by {needed.bound!r}."
