"""Tables of bounds that are not about a setting, and the options of `boundcalc latent`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.rounding import up
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.values import NUMBER

if TYPE_CHECKING:
    from boundcalc.base.value import Value

FORMATS = ("table", "json", "csv")
_NOTES = 160
"""Characters of a line below a table."""


class Numbers(click.ParamType):
    """Numbers between commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if not isinstance(value, str):
            return tuple(value)
        if not value.strip(" ,"):
            self.fail(f"a list needs at least one number, got {value!r}", param, ctx)
        return tuple(NUMBER.convert(word, param, ctx) for word in value.split(","))


NUMBERS = Numbers()
table_option = form_option(*FORMATS)
option = partial(click.option, show_default=True)
delta_option = option("--delta", type=NUMBER, default=0.05, help="Failure probability.")


def show(
    form: str, document: Any, headings: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()
) -> None:
    """A document as JSON, or rows as a table with notes below, or as CSV."""
    if form == "json":
        write_json(document, allow_nan=False)
        return
    if form == "csv":
        from boundcalc.cli.formats import write_csv

        write_csv(headings, (dict(zip(headings, row, strict=True)) for row in rows))
        return
    from boundcalc.cli.text import Line, wrapped, write_table

    write_table(headings, [Line([_cell(x) for x in row]) for row in rows])
    for note in notes:
        click.echo("\n".join(wrapped(note.split(), width=_NOTES)))


def show_bounds(form: str, document: Any, found: Sequence[Value], notes: Sequence[str]) -> None:
    """A table of bounds, each above what always holds called vacuous; or the document as JSON or CSV."""
    rows = [
        (b.name, b.form, b.kind, f"{'~' if b.kind == 'proxy' else ''}{ceiling(b.value)}", _chosen(b), b.quantity)
        for b in found
    ]
    vacuous = [
        f"{b.name} ({b.form}) is vacuous here: its quantity is at most {b.always:g} anyway."
        for b in found
        if b.says_nothing
    ]
    show(form, document, ("bound", "form", "kind", "value <=", "chosen", "of what"), rows, [*notes, *vacuous])


def _chosen(bound: Value) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in bound.parameters.items())


def _cell(x: Any) -> str:
    """A cell of a table: "-" for nothing, four digits of a number."""
    return "-" if x is None else f"{x:.4g}" if isinstance(x, float) else str(x)


def ceiling(x: float | None) -> str | None:
    """An upper bound, where there is one."""
    return None if x is None else up(x)
