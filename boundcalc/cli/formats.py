"""The formats of `boundcalc eval`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from boundcalc.cli.described import described
from boundcalc.cli.options import write_json
from boundcalc.cli.report import Report, Row
from boundcalc.cli.report_text import cells, headings, notes, verdict
from boundcalc.cli.text import Line, wrapped, write_table

if TYPE_CHECKING:
    from boundcalc.cli.setting import Question

RESULT_COLUMNS = (
    *("name", "kind", "gap", "log10_gap", "risk", "log10_risk", "vacuous", "risk_vacuous", "trivial", "risk_trivial"),
    *("strategy", "risk_strategy", "dominant", "dominant_share", "growth_T", "growth_m", "refusal", "risk_refusal"),
)
"""Columns of CSV, and of the columns of a sweep."""


def show(report: Report, form: str) -> None:
    """Print a report."""
    writer = {"table": _table, "json": _json, "csv": _csv, "markdown": _markdown, "latex": _latex}[form]
    writer(report)


def _table(report: Report) -> None:
    for text in verdict(report):
        click.echo("\n".join(wrapped(text.split(), first=f"{text.split()[0]:7} ", skip=1)))
    click.echo()
    names = headings(report)
    lines = [Line(cells(row, names), _style(report, row)) for row in report.rows]
    write_table(names, lines, droppable=("growth in m", "dominated by", "growth in T", "strategy"))
    click.echo()
    for text in notes(report):
        click.echo("\n".join(wrapped(text.split())))
    click.echo()
    for text in setting_lines(report.question)[:-1]:
        click.echo(text)
    if report.why is not None:
        _why(report)


def _style(report: Report, row: Row) -> Literal["bold", "dim", ""]:
    """The best row is bold; rows without a bound below 1 are dim."""
    if row.value is report.best:
        return "bold"
    return "dim" if row.value.refusal is not None or row.value.vacuous else ""


def _why(report: Report) -> None:
    from boundcalc.cli.why import why_lines

    for text in why_lines(report):
        indent = " " * (len(text) - len(text.lstrip()))
        click.echo(
            "\n".join(wrapped(text.split(), first=indent or "")) if indent else "\n" + "\n".join(wrapped(text.split()))
        )


def setting_lines(question: Question, without: Sequence[str] = (), *, width: int | None = None) -> list[str]:
    """The setting, with a star at defaults; `without` some values (those of a sweep)."""
    found = described(question)
    fields = [item.field for item in found]
    sample = fields.index("n_train")
    norms = next(i for i, field in enumerate(fields) if field in ("C", "budgets"))
    parts = {"Setting": found[:norms], "Norms": found[norms:sample], "Sample": found[sample:]}
    lines: list[str] = []
    for title, part in parts.items():
        items = [f"{item.label} {item.value}" + "*" * item.assumed for item in part if item.field not in without]
        words = [item + "," for item in items[:-1]] + items[-1:]
        lines += wrapped(words, first=f"{title:8} ", width=width)
    if any(item.assumed for item in found):
        lines.append("         * default; change it with the option of that name, or --set")
    return [*lines, ""]


def _json(report: Report) -> None:
    write_json(report.to_json())


def flat(row: Row) -> dict[str, Any]:
    """A result under `RESULT_COLUMNS`."""
    found = row.to_json()
    dominant, growth = found.pop("dominant") or {}, found.pop("growth")
    found["dominant"], found["dominant_share"] = dominant.get("piece"), dominant.get("share")
    for variable in ("T", "m"):
        found[f"growth_{variable}"] = (growth[variable] or {}).get("text")
    return {name: found.get(name) for name in RESULT_COLUMNS}


def _csv(report: Report) -> None:
    write_csv(RESULT_COLUMNS, (flat(row) for row in report.rows))


def write_csv(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> None:
    """CSV on stdout; floats in full."""
    import csv
    import sys

    writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _padded(report: Report) -> list[list[str]]:
    """Every row, with a cell under each heading."""
    names = headings(report)
    rows = [cells(row, names) for row in report.rows]
    return [[*texts, *[""] * (len(names) - len(texts))] for texts in rows]


def _markdown(report: Report) -> None:
    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    lines = setting_lines(report.question, width=10**6)[:-1]
    click.echo("\n".join(f"- {' '.join(text.split())}" for text in lines).replace("*", "\\*") + "\n")
    names = headings(report)
    click.echo(line(names))
    click.echo("|" + " --- |" * len(names))
    for texts in _padded(report):
        click.echo(line(texts))
    click.echo("\n" + "\n\n".join([*verdict(report), *notes(report)]))


def _latex(report: Report) -> None:
    names = headings(report)
    body = [" & ".join(_latex_cell(text) for text in texts) + r" \\" for texts in _padded(report)]
    head = " & ".join(_latex_cell(text) for text in names) + r" \\"
    comments = [f"% {line}" for line in [*setting_lines(report.question)[:-1], *verdict(report), *notes(report)]]
    lines = [*comments, r"\begin{tabular}{" + "l" * len(names) + "}", r"\toprule", head, r"\midrule"]
    click.echo("\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}", "% needs \\usepackage{booktabs}"]))


_LATEX = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "\\": r"\textbackslash{}"}


def _latex_cell(text: str) -> str:
    import re

    if text.endswith("<="):
        return text[:-2] + r"$\le$"
    number = re.fullmatch(r"(\d+\.\d+)e([+-]\d+)", text)
    if number is not None:
        return rf"${number[1]}\cdot 10^{{{int(number[2])}}}$"
    power = re.fullmatch(r"(\(log T\)|[A-Za-z]+|10)\^(-?[\d.]+)", text)
    if power is not None:
        return rf"${power[1].replace('log ', chr(92) + 'log ')}^{{{power[2]}}}$"
    escaped = "".join(_LATEX.get(char, char) for char in text)
    return escaped.replace("~", r"$\sim$").replace("<", "$<$").replace("^", r"\^{}")
