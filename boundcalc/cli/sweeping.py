"""`boundcalc eval --sweep`: a grid of settings, written as it is computed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import percent
from boundcalc.cli.axes import parse_axes
from boundcalc.cli.formats import setting_lines, write_csv
from boundcalc.cli.progress import counted
from boundcalc.cli.report_text import NO_MEMBER, VACUOUS, amount
from boundcalc.cli.setting import WITH_LAYERS, Entry, Question, changed, full_json
from boundcalc.cli.text import Line, write_table
from boundcalc.cli.theorem import refuse_idle_bits
from boundcalc.cli.values import shown
from boundcalc.engine.sweep import RESULT_COLUMNS, run, size_of
from boundcalc.setting import Setting
from boundcalc.setting.accounting import refuse_missing
from boundcalc.theorems import known_bound

_MOST_ROWS = 1000
"""A table that is meant to be read has no more rows than this."""

_Rows = Iterator[dict[str, Any]]


def sweep(question: Question, texts: Sequence[str], bounds: Sequence[str], form: str) -> bool:
    """Computes and writes the grid; whether any point has a bound."""
    axes = parse_axes(texts)
    for name, (option, _) in axes.items():
        question.refuse(option.field, f"--sweep {name}=... says which values it takes; leave it out")
    names = [known_bound(name) for name in bounds] or ["best"]
    refuse_idle_bits(question, names)
    if "bits" in axes:
        refuse_idle_bits(Question(question.setting, {"bits": "given"}), names)
    if question.setting.architecture.layers is not None:
        for name, (option, _) in axes.items():
            if option.field not in WITH_LAYERS:
                raise InvalidSetting(f"the setting lists its layers one by one: sweeping {name} would change nothing")
    grid = {option.field: values for option, values in axes.values()}
    if "C" not in grid:
        refuse_missing(question.setting.norms, question.setting.architecture)
    elif not question.setting.reads_knob:
        raise InvalidSetting("sweeping C would change nothing: every weight has a norm budget of its own")

    def make(point: dict[str, Any]) -> Setting:
        return changed(question.setting, point)

    total = size_of(grid)
    if form == "table" and total * len(names) > _MOST_ROWS:
        raise InvalidSetting(f"a table of {total * len(names)} rows is no reading: add --format csv (or json)")
    typed = {option.field: name for name, (option, _) in axes.items()}
    any_bound = False

    def rows() -> _Rows:
        nonlocal any_bound
        for point, results in _watched(run(make, grid, names), total):
            at = {typed[field]: value for field, value in point.items()}
            for result in results:
                any_bound = any_bound or result["refusal"] is None
                yield at | result

    if form == "csv":
        write_csv((*axes, *RESULT_COLUMNS), rows())
    elif form == "json":
        _json(question, axes, rows())
    else:
        _table(question, typed, rows(), several=len(names) > 1)
    return any_bound


def _watched(points: Iterator[Any], total: int) -> Iterator[Any]:
    """The points, with a progress bar on stderr once they take long, if that is a terminal.

    After an interruption the message names the rows that are done: they are printed as they are computed.
    """
    done = 0
    try:
        for point in counted(points, total):
            yield point
            done += 1
    except KeyboardInterrupt:
        click.echo(
            f"\ninterrupted: {done} of {total} points are done (csv and json have them; a table is printed when all "
            "are); shorten --sweep to what is missing",
            err=True,
        )
        raise


def _json(question: Question, axes: Mapping[str, tuple[Entry, list[Any]]], rows: _Rows) -> None:
    """Written row by row, so that memory does not grow with the grid."""
    head = {"setting": full_json(question.setting), "axes": {name: values for name, (_, values) in axes.items()}}
    sys.stdout.write(json.dumps(head)[:-1] + ', "results": [')
    for i, row in enumerate(rows):
        dominant = row.pop("dominant")
        share = row.pop("dominant_share")
        row["dominant"] = None if dominant is None else {"piece": dominant, "share": share}
        point = {name: row.pop(name) for name in axes}
        for name in ("refusal", "risk_refusal"):
            if row[name] is None:
                del row[name]
        sys.stdout.write((",\n" if i else "\n") + json.dumps({"at": point, **row}))
    sys.stdout.write("\n]}\n")


def _table(question: Question, typed: Mapping[str, str], rows: _Rows, *, several: bool) -> None:
    axes = list(typed.values())
    headings = (*axes, *(("bound",) if several else ()), "gap <=", "risk <=", "strategy", "dominated by")
    lines: list[Line] = []
    reasons: dict[str, int] = {}
    for row in rows:
        start = [shown(row[name]) for name in axes] + ([row["name"]] if several else [])
        if row["refusal"] is not None:
            lines.append(Line((*start, "refused"), "dim"))
            reasons[row["refusal"]] = reasons.get(row["refusal"], 0) + 1
            continue
        dominant = "" if row["dominant"] is None else f"{row['dominant']} {percent(row['dominant_share'])}"
        mark = "~" if row["kind"] == "proxy" else ""
        gap = VACUOUS if row["trivial"] else amount(row["log10_gap"])
        risk = VACUOUS if row["risk_trivial"] else NO_MEMBER if row["risk_refusal"] else amount(row["log10_risk"])
        if row["risk_refusal"] is not None:
            text = f"risk {row['risk_refusal']}"
            reasons[text] = reasons.get(text, 0) + 1
        cells = (*start, mark + gap, mark + risk, row["strategy"] or "", dominant)
        lines.append(Line(cells, "dim" if row["vacuous"] else ""))
    for text in setting_lines(question, without=list(typed)):
        click.echo(text)
    write_table(headings, lines, right=frozenset(range(len(axes))))
    for reason, count in reasons.items():
        click.echo(f"refused {count} time{'s' * (count > 1)}: {reason}")
