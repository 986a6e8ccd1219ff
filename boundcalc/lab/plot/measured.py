"""What trials measured: errors, bounds at the norms that were trained, and the class that holds them all."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import reduce

from boundcalc.base.confidence import clopper_pearson, hoeffding
from boundcalc.engine.evaluate import compare
from boundcalc.lab.plot.data import Series
from boundcalc.lab.plot.predicted import log_height, why_not
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.runs import grouped
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import called
from boundcalc.lab.train.bounds import margin_error, setting_of_record
from boundcalc.lab.train.record import Record
from boundcalc.setting import Budget, Norms, Setting

_MOST_MARKS = 5
"""A-posteriori bounds are computed for at most so many trials per place."""


def errors(records: Sequence[Record], letter: str, quantities: Sequence[str], margin: float = 1.0) -> list[Series]:
    """Mean gap, or test error where no training margin is below `margin`, with 95% intervals of the mean risk.

    The interval is exact for the test examples of these trained models (Clopper-Pearson over all of them together).
    """
    found: list[Series] = []
    for quantity in quantities:
        rows: list[tuple[float, tuple[float, ...], int]] = []
        for x, group in grouped(records, letter):
            used = group if quantity == "gap" else [r for r in group if margin_error(r.result, margin) == 0]
            if used:
                rows.append((x, _mean(used, subtract=quantity == "gap"), len(used)))
        if rows:
            found.append(Series.measured("measured", "measured, 95% interval", quantity, rows, panel=quantity))
    return found


def _mean(records: Sequence[Record], *, subtract: bool) -> tuple[float, float, float]:
    tests = [r.result["test"] for r in records]
    n = sum(test["n"] for test in tests)
    error = sum(test["error"] * test["n"] for test in tests) / n
    if all("wrong" in test for test in tests):
        low, high = clopper_pearson(sum(test["wrong"] for test in tests), n)
    else:
        low, high = hoeffding(error, n)
    train = statistics.fmean(r.result["train"]["error"] for r in records) if subtract else 0.0
    return error - train, low - train, high - train


_PAID = ("best", "closed")
"""The least bound; where it is trivial, the one that always counts something and so tells how far it is."""


def a_posteriori(records: Sequence[Record], letter: str, quantities: Sequence[str], asked: Setting) -> list[Series]:
    """A bound at the norms of trained models (which is paid for): the median over some trials, and their range.

    Of each quantity the first of the bounds that is not trivial for all of them.
    """
    found: list[Series] = []
    for bound in _PAID:
        left = [quantity for quantity in quantities if quantity not in [one.quantity for one in found]]
        found += _paid(records, letter, left, asked, bound) if left else []
    return found


def _paid(
    records: Sequence[Record], letter: str, quantities: Sequence[str], asked: Setting, bound: str
) -> list[Series]:
    rows: dict[str, list[tuple[float, ...]]] = {quantity: [] for quantity in quantities}
    refusal = ""
    for x, group in grouped(records, letter):
        values = []
        for record in group[:_MOST_MARKS]:
            if "norms" not in record.result:
                continue
            setting = _trained_setting(record, asked)
            values.append(compare(setting, [bound])[0])
        for quantity in quantities:
            telling = [value for value in values if not why_not(value, quantity)]
            refusal = refusal or next((text for value in values if (text := why_not(value, quantity))), "")
            if telling:
                ordered = sorted(telling, key=lambda v: log_height(v, quantity))
                middle = ordered[len(ordered) // 2]
                ends = [v.of(quantity).value for v in (ordered[0], ordered[-1])]
                logs = log_height(middle, quantity)
                rows[quantity].append((x, middle.of(quantity).value, logs, *ends, len(telling)))
    found: list[Series] = []
    for quantity, each in rows.items():
        if each:
            x, y, logs, low, high, count = zip(*each, strict=True)
            label = f"{called(bound)}, at trained norms"
            counts = tuple(map(int, count))
            found.append(
                Series(bound, label, "a_posteriori", quantity, x, y, logs, low, high, counts, refusal, quantity)
            )
    return found


def _trained_setting(record: Record, asked: Setting) -> Setting:
    """A trial's own setting, its norms measured, at the margin and confidence asked for."""
    return setting_of_record(record, margin=asked.sample.margin, delta=asked.sample.delta)


def setting_of(records: Sequence[Record], spec: Spec, otherwise: Setting) -> Setting:
    """The setting of the curves: the one asked for, or the class that holds every model drawn.

    Its budgets are the largest norms among the trials, rounded up to two digits. For that class, had it been fixed
    before the data, the curves are bounds; the trained models themselves have their own, a-posteriori marks.
    """
    samples = {record.config["m"] for record in records}
    if FIGURES[spec.figure].of_one_m:
        otherwise = otherwise.but(n_train=samples.pop())  # they are of one m, or were refused
    if spec.norms != "runs":
        length = max(record.config["architecture"]["seq_len"] for record in records)
        return otherwise.but(seq_len=length) if spec.setting is None else otherwise
    known = [_trained_setting(record, otherwise) for record in records]
    found: dict[str, list[Budget]] = {}
    for one in known:
        for place, budget in one.norms.budgets.items():
            found.setdefault(place.partition("[")[0], []).append(budget)  # one budget per kind, for every block
    everywhere = {kind for kind in found if all(_has(one, kind) for one in known)}
    budgets = {kind: reduce(Budget.join, found[kind]).map(_two_digits) for kind in found if kind in everywhere}
    return Setting(known[0].architecture, Norms(budgets=budgets), otherwise.sample)


def _has(setting: Setting, kind: str) -> bool:
    """Whether a kind was measured; products were not before they could be used."""
    return any(place.partition("[")[0] == kind for place in setting.norms.budgets)


def _two_digits(value: float) -> float:
    """Two digits, upwards."""
    if value <= 0:
        return value
    text = float(f"{value:.1e}")
    step = 10.0 ** (int(f"{value:e}".split("e")[1]) - 1)
    return text if text >= value else float(f"{text + step:.1e}")
