"""The formats of `boundcalc eval`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from boundcalc.cli.described import described
from boundcalc.cli.options import write_json
from boundcalc.cli.report import Report
from boundcalc.cli.report_text import cells, headings, notes, verdict
from boundcalc.cli.text import Line, wrapped, write_table

if TYPE_CHECKING:
    from boundcalc.cli.setting import Question
    from boundcalc.engine.bound import BoundValue

RESULT_COLUMNS = (
    *("name", "kind", "gap", "log10_gap", "risk", "log10_risk", "vacuous", "risk_vacuous", "trivial", "risk_trivial"),
    *("strategy", "risk_strategy", "dominant", "dominant_share", "growth_T", "growth_m", "refusal", "risk_refusal"),
)
"""Columns of CSV, and of the columns of a sweep."""


def show(report: Report, form: str) -> None:
    """Print a report."""
    {"table": _table, "json": _json, "csv": _csv}[form](report)


def _table(report: Report) -> None:
    for text in verdict(report):
        click.echo("\n".join(wrapped(text.split(), first=f"{text.split()[0]:7} ", skip=1)))
    click.echo()
    names = headings(report)
    lines = [Line(cells(report, value, names), _style(report, value)) for value in report.bounds]
    write_table(names, lines, droppable=("growth in m", "dominated by", "growth in T", "strategy"))
    click.echo()
    for text in notes(report):
        click.echo("\n".join(wrapped(text.split())))
    click.echo()
    for text in setting_lines(report.question)[:-1]:
        click.echo(text)
    if report.why is not None:
        _why(report)


def _style(report: Report, value: BoundValue) -> Literal["bold", "dim", ""]:
    """The best bound is bold; rows without a bound below 1 are dim."""
    if value is report.best:
        return "bold"
    return "dim" if value.refusal is not None or value.vacuous else ""


def _why(report: Report) -> None:
    from boundcalc.cli.why import why_lines

    for text in why_lines(report):
        indent = " " * (len(text) - len(text.lstrip()))
        click.echo(
            "\n".join(wrapped(text.split(), first=indent or "")) if indent else "\n" + "\n".join(wrapped(text.split()))
        )


def setting_lines(question: Question, without: Sequence[str] = ()) -> list[str]:
    """The setting, with a star at defaults; `without` some values (those of a sweep)."""
    rows = described(question)
    fields = [item.field for item in rows]
    sample = fields.index("n_train")
    norms = next(i for i, field in enumerate(fields) if field in ("C", "budgets"))
    parts = {"Setting": rows[:norms], "Norms": rows[norms:sample], "Sample": rows[sample:]}
    lines: list[str] = []
    for title, part in parts.items():
        items = [f"{item.label} {item.value}" + "*" * item.assumed for item in part if item.field not in without]
        words = [item + "," for item in items[:-1]] + items[-1:]
        lines += wrapped(words, first=f"{title:8} ")
    if any(item.assumed for item in rows):
        lines.append("         * default; change it with the option of that name, or --set")
    return [*lines, ""]


def _json(report: Report) -> None:
    write_json(report.to_json())


def flat(report: Report, value: BoundValue) -> dict[str, Any]:
    """A result under `RESULT_COLUMNS`."""
    result = report.result(value)
    dominant, growth = result.pop("dominant") or {}, result.pop("growth")
    result["dominant"], result["dominant_share"] = dominant.get("piece"), dominant.get("share")
    for variable in ("T", "m"):
        result[f"growth_{variable}"] = (growth[variable] or {}).get("text")
    return {name: result.get(name) for name in RESULT_COLUMNS}


def _csv(report: Report) -> None:
    write_csv(RESULT_COLUMNS, (flat(report, value) for value in report.bounds))


def write_csv(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> None:
    """CSV on stdout; floats in full."""
    import csv
    import sys

    writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
