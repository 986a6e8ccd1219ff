"""`boundcalc derive`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.cli.files import FileCommand, output_folder
from boundcalc.cli.formulas import formula_options, take_formula
from boundcalc.cli.options import form_option
from boundcalc.cli.text import prose


@click.command(
    cls=FileCommand,
    name="derive",
    short_help="A bound as a formula, with the steps that lead to it.",
    epilog="""\b
Examples:
  boundcalc derive --depth D --T T
  boundcalc derive --bound trauger2024 --quantity covering_number --format markdown
  boundcalc derive --preset bert --detail brief
  boundcalc derive --format latex -o article
  boundcalc derive --bound trauger2024 --format latex --fragment --columns 2 -o sections
  boundcalc derive --check
  boundcalc derive --theorems
\b
Every size may be a number or a letter; letters stay symbols.""",
)
@formula_options
@click.option(
    "--detail",
    "steps",
    type=click.Choice(("brief", "full")),
    default="full",
    show_default=True,
    help="How much to show.",
)
@form_option("text", "markdown", "latex", "html", "json")
@click.option("--fragment", is_flag=True, help="LaTeX for \\input, or HTML without a page around it.")
@click.option(
    "--columns", type=click.IntRange(1, 2), help="Columns of the page that a LaTeX fragment is for.  [default: 1]"
)
@click.option("-o", "--out", type=output_folder(), help="Folder for the files (LaTeX: with macros and .bib).")
@click.option(
    "--check", "checking", is_flag=True, help="Test every step: intervals at random points, and simplification."
)
@click.option("--theorems", is_flag=True, help="All theorems as a Markdown table, instead (brief: a row per paper).")
@click.option("--expand", is_flag=True, help="Only the formula, with every named part written out.")
def command(
    steps: str,
    form: str,
    fragment: bool,
    columns: int | None,
    out: Path | None,
    checking: bool,
    theorems: bool,
    expand: bool,
    **options: Any,
) -> None:
    """The formula of a bound, its steps with the statements they use, and what the paper has otherwise."""
    modes = [name for name, asked in (("--theorems", theorems), ("--check", checking), ("--expand", expand)) if asked]
    printed = ("text", "markdown") if theorems else ("text",)
    if len(modes) > 1:
        raise click.UsageError(f"{modes[0]} and {modes[1]} print different things: leave one out")
    if modes and (form not in printed or fragment or out is not None):
        raise click.UsageError(f"{modes[0]} prints {printed[-1]} only: leave out --format, --fragment and --out")
    if theorems:
        from boundcalc.formulas.theorems.table import by_paper, markdown

        click.echo(by_paper() if steps == "brief" else markdown(), nl=False)
        return
    from boundcalc.formulas.derivation import derive

    if columns is not None and not (form == "latex" and fragment and out is not None):
        raise click.UsageError("--columns is for fragments: add --format latex --fragment -o FOLDER")
    asked = take_formula(options)
    derivation = derive(asked.what, asked.quantity, asked.values)
    if checking:
        click.echo(str(derivation.check()))
        return
    if expand:
        click.echo(derivation.formula.text(expand=True))
        return
    if form == "latex" and out is not None:
        from boundcalc.formulas.derivation.latex import files

        shared = {
            path.name: path.read_text("utf-8") for path in out.glob("boundcalc*") if path.suffix in (".tex", ".bib")
        }
        written = files(derivation, full=steps == "full", fragment=fragment, columns=columns or 1, there=shared)
        _write(out, written, shared)
        return
    text = derivation.render(form, steps=steps, fragment=fragment)
    if out is not None:
        suffix = {"text": "txt", "markdown": "md", "html": "html", "json": "json"}[form]
        _write(out, {f"{derivation.name}.{suffix}": text})
        return
    click.echo(prose(text) if form == "text" else text, nl=False)


def _write(folder: Path, files: Mapping[str, str], shared: Collection[str] = ()) -> None:
    """All of the files; `shared` ones (macros, references) were read, and are written with what is new."""
    output.make_folder(folder)
    for name in files:
        output.check(folder / name, appends=name in shared)
    for name, text in files.items():
        output.write_text(folder / name, text, force=name in shared)
        click.echo(folder / name)
