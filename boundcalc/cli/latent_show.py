"""What commands about latent variables share: lists of numbers, options, formats, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.rounding import up
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.values import NUMBER, WHOLE

if TYPE_CHECKING:
    from boundcalc.base.value import Value

FORMATS = ("table", "json", "csv")
_NOTES = 160
"""Characters of a line below a table."""


class Many(click.ParamType):
    """Numbers between commas; a:b is every power of two from a to b."""

    name = "list"

    def __init__(self, kind: click.ParamType) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if not isinstance(value, str):
            return tuple(value)
        first, colon, last = value.partition(":")
        if not value.strip(" ,"):
            self.fail(f"a list needs at least one number, got {value!r}", param, ctx)
        if not colon:
            return tuple(self.kind.convert(word, param, ctx) for word in value.split(","))
        low, high = (self.kind.convert(word, param, ctx) for word in (first, last))
        if not 0 < low <= high:
            self.fail(f"a range is like 8:65536, got {value!r}", param, ctx)
        out = [low]
        while out[-1] * 2 <= high:
            out.append(out[-1] * 2)
        return tuple(out)


WHOLES, NUMBERS = Many(WHOLE), Many(NUMBER)
table_option = form_option(*FORMATS)
option = partial(click.option, show_default=True)
delta_option = option("--delta", type=NUMBER, default=0.05, help="Failure probability.")
seed_option = option("--seed", type=WHOLE, default=0, help="Of what is drawn at random.")
lengths_option = partial(option, "--L", "lengths", type=WHOLES)
steps_option = partial(option, "--steps", type=WHOLE, help="Most steps of training.")
taus_option = partial(option, "--temperature", "taus", type=NUMBERS, help="Scores are divided by it; several.")


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


def show_rows(
    form: str,
    document: Any,
    rows: Iterable[Any],
    columns: Mapping[str, str | Callable[[Any], Any]],
    notes: Sequence[str] = (),
) -> None:
    """The same of objects: a column shows what its path leads to in each ("error.low"; "<=bound" is rounded up)."""
    cells = [[_at(row, path) for path in columns.values()] for row in rows]
    show(form, document, list(columns), cells, notes)


def show_bounds(form: str, document: Any, found: Sequence[Value], notes: Sequence[str]) -> None:
    """The same of bounds; each of which that holds always is said to say nothing."""
    columns = {"bound": "name", "form": "form", "kind": "kind", "value <=": _height, "chosen": _chosen}
    idle = [
        f"{b.name} ({b.form}) says nothing here: its quantity is at most {b.always:g} anyway."
        for b in found
        if b.says_nothing
    ]
    show_rows(form, document, found, {**columns, "of what": "quantity"}, [*notes, *idle])


def _height(bound: Value) -> str:
    return f"{'~' if bound.kind == 'proxy' else ''}{ceiling(bound.value)}"


def _chosen(bound: Value) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in bound.parameters.items())


def _at(row: Any, path: str | Callable[[Any], Any]) -> Any:
    if callable(path):
        return path(row)
    for name in path.removeprefix("<=").split("."):
        row = None if row is None else row[name] if isinstance(row, Mapping) else getattr(row, name)
    return ceiling(row) if path.startswith("<=") else row


def _cell(x: Any) -> str:
    """A cell of a table: "-" for nothing, four digits of a number."""
    return "-" if x is None else f"{x:.4g}" if isinstance(x, float) else str(x)


def ceiling(x: float | None) -> str | None:
    """An upper bound, where there is one."""
    return None if x is None else up(x)
