"""`boundcalc derive`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli._lazy import near
from boundcalc.cli._options import NEW_FOLDER, command_with, form_option, option, pairs, refuse_given, several
from boundcalc.cli._setting import numbers
from boundcalc.cli._text import reading_width
from boundcalc.theorems import POLICIES, THEOREMS, Theorem, theorem_called
from boundcalc.theorems.theorem import QUANTITIES

if TYPE_CHECKING:
    from boundcalc.theorems.derivation import Derivation

_CODE = ("python", "javascript")


@command_with("""\
  boundcalc derive --bound edelman2022 --depth 1 --heads 1
  boundcalc derive --bound trauger2024 --detail full
  boundcalc derive --format latex -o article
  boundcalc derive --bound trauger2024 --format latex --fragment --columns 2 -o sections
  boundcalc derive --bound trauger2024 --format bibtex

Sizes without a number stay letters.""")
@option("--bound", str, f"Theorem: {', '.join(THEOREMS)}, or your own.", "edelman2022")
@option(
    "--quantity",
    click.Choice(QUANTITIES),
    "What to bound: gap (default where there is one), covering_number, ...",
    metavar="NAME",
)
@option("--depth", int, "Blocks.  [default: D]")
@option("--T T", int, "Rows (tokens) per sequence.  [default: T]")
@option("--heads", int, "Attention heads per block.  [default: H]")
@several("--set others", "Any other symbol (repeatable).", "NAME=VALUE")
@option(
    "--detail",
    click.Choice(("formula", "brief", "full")),
    "The formula alone; the theorem with the titles of its steps; or with proof and lemmas.  [default: brief, in LaTeX "
    "full]",
)
@form_option("text", "latex", "bibtex", *_CODE)
@option("--fragment", bool, "LaTeX for \\input.")
@option("--columns", click.IntRange(1, 2), "Columns of the page that a LaTeX fragment is for.  [default: 1]")
@option("-o --out", NEW_FOLDER, "Folder for the LaTeX files, with macros and .bib.")
def command(bound: str, quantity: str | None, detail: str | None, form: str, out: Path | None, **options: Any) -> None:
    """A theorem with its hypotheses, its formula and its proof, and where it differs from the paper."""
    from boundcalc.theorems import render
    from boundcalc.theorems.derivation import derive

    fragment, columns, others = (options.pop(name) for name in ("fragment", "columns", "others"))
    if form != "latex" or detail == "formula":
        refuse_given("but on LaTeX files", "out")
    if out is None:
        refuse_given("without --format latex -o FOLDER", "fragment", "columns")
    if not fragment:
        refuse_given("without --fragment", "columns")
    theorem, values = _theorem(bound), numbers(pairs("--set", others, "C=2"))
    for name, value in options.items():
        if value is not None and name in values:
            raise InvalidSetting(f"--{name} and --set {name}=... give the same size: leave one out")
        values |= {} if value is None else {name: value}
    if form == "bibtex":
        click.echo(theorem.cite())
        return
    derivation = derive(theorem, quantity, values)
    full = detail == "full" or (detail is None and form == "latex")
    if form in _CODE:
        click.echo(derivation.formula.code(form), nl=False)
    elif detail == "formula":
        click.echo(derivation.formula.latex() if form == "latex" else derivation.formula.text())
    elif form == "text":
        click.echo(render.text(derivation, full=full, width=reading_width()), nl=False)
    elif out is None:
        click.echo(render.article(derivation, full=full), nl=False)
    else:
        _write(out, derivation, full=full, fragment=fragment, columns=columns or 1)


def _theorem(name: str) -> Theorem:
    """The theorem of a name; refuses policies, which give numbers."""
    theorem = theorem_called(name)
    if theorem is not None:
        return theorem
    if name in POLICIES:
        raise InvalidSetting(
            f"policy {name!r} gives numbers, not a formula: `boundcalc eval --bound {name} --why` prints the proof "
            "of its number; `boundcalc explain theorems` names the formulas"
        )
    raise InvalidSetting(near(f"no theorem is called {name!r}", name, [*THEOREMS, *POLICIES]))


def _write(folder: Path, derivation: Derivation, **options: Any) -> None:
    """All LaTeX files; shared ones (macros, references) that are there get what is new."""
    from boundcalc.theorems.render import files

    shared = {
        path.name: path.read_text("utf-8") for path in folder.glob("boundcalc*") if path.suffix in (".tex", ".bib")
    }
    texts = files(derivation, there=shared, **options)
    output.make_folder(folder)
    for name in texts:
        output.check(folder / name, appends=name in shared)
    for name, text in texts.items():
        output.write_text(folder / name, text, force=name in shared)
        click.echo(folder / name)
