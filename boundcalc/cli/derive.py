"""`boundcalc derive`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FileCommand, output_folder
from boundcalc.cli.formulas import formula_options, take_formula
from boundcalc.cli.options import form_option

_CODE = ("python", "numpy", "javascript")


@click.command(
    cls=FileCommand,
    name="derive",
    short_help="A bound as a formula, with its steps; as text, LaTeX, BibTeX or code.",
    epilog="""\b
Examples:
  boundcalc derive --depth D --T T
  boundcalc derive --bound trauger2024 --quantity covering_number --format markdown
  boundcalc derive --preset bert --detail brief
  boundcalc derive --format latex -o article
  boundcalc derive --bound trauger2024 --format latex --fragment --columns 2 -o sections
  boundcalc derive --bound edelman2022 --format javascript --depth 2 --heads 1
  boundcalc derive --bound trauger2024 --format bibtex
\b
Every size may be a number or a letter; letters stay symbols.""",
)
@formula_options
@click.option(
    "--detail",
    type=click.Choice(("formula", "brief", "full")),
    default="full",
    show_default=True,
    help="The formula alone, with the titles of its steps, or with the steps.",
)
@form_option("text", "markdown", "latex", "bibtex", *_CODE)
@click.option("--expand", is_flag=True, help="The formula alone, with every named part written out.")
@click.option("--fragment", is_flag=True, help="LaTeX for \\input.")
@click.option(
    "--columns", type=click.IntRange(1, 2), help="Columns of the page that a LaTeX fragment is for.  [default: 1]"
)
@click.option("-o", "--out", type=output_folder(), help="Folder for the files (LaTeX: with macros and .bib).")
def command(
    detail: str,
    form: str,
    expand: bool,
    fragment: bool,
    columns: int | None,
    out: Path | None,
    **options: Any,
) -> None:
    """The formula of a bound, its steps with the statements they use, and its differences from the paper."""
    from boundcalc.base.sources import HERE
    from boundcalc.formulas.derivation import derive

    if fragment and form != "latex":
        raise InvalidSetting(f"--fragment is for --format latex, not {form}")
    if columns is not None and not (fragment and out is not None):
        raise InvalidSetting("--columns is for fragments: add --format latex --fragment -o FOLDER")
    if (expand or detail == "formula") and (form not in ("text", "latex") or fragment or out is not None):
        raise InvalidSetting("a formula alone is printed as text or latex: leave out --fragment and --out")
    if out is not None and (form == "bibtex" or form in _CODE):
        raise InvalidSetting(f"{form} goes to the screen: leave out --out, and redirect it")
    asked = take_formula(options)
    if form == "bibtex":
        click.echo(HERE.bibtex if asked.theorem is None else asked.theorem.cite())
        return
    derivation = derive(asked.what, asked.quantity, asked.values)
    formula = derivation.formula
    if form in _CODE:
        click.echo(formula.code(form), nl=False)
    elif expand or detail == "formula":
        click.echo(formula.latex(expand=expand) if form == "latex" else formula.text(expand=expand))
    elif form == "latex" and out is not None:
        from boundcalc.formulas.derivation.latex import files

        shared = {
            path.name: path.read_text("utf-8") for path in out.glob("boundcalc*") if path.suffix in (".tex", ".bib")
        }
        _write(
            out, files(derivation, full=detail == "full", fragment=fragment, columns=columns or 1, there=shared), shared
        )
    else:
        text = derivation.render(form, steps=detail, fragment=fragment)
        if out is not None:
            _write(out, {f"{derivation.name}.{'md' if form == 'markdown' else 'txt'}": text})
        else:
            click.echo(text, nl=False)


def _write(folder: Path, files: Mapping[str, str], shared: Collection[str] = ()) -> None:
    """All of the files; `shared` ones (macros, references) were read, and are written with what is new."""
    output.make_folder(folder)
    for name in files:
        output.check(folder / name, appends=name in shared)
    for name, text in files.items():
        output.write_text(folder / name, text, force=name in shared)
        click.echo(folder / name)
