"""`boundcalc derive`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FileCommand, output_folder
from boundcalc.cli.lazy import near
from boundcalc.cli.options import form_option
from boundcalc.cli.setting import numbers
from boundcalc.cli.values import exactly, pairs
from boundcalc.theorems import POLICIES, THEOREMS, Theorem, theorem_called
from boundcalc.theorems.theorem import QUANTITIES

_CODE = ("python", "javascript")


class _NumberOrLetter(click.ParamType):
    """A whole number, or the letter that stands for the size and keeps it a symbol."""

    name = "number|letter"

    def __init__(self, size: str, letter: str) -> None:
        self.names = (size, letter)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.names:
            return None
        whole = value if isinstance(value, int) else exactly(value)
        if whole is None or whole < 1:
            self.fail(f"needs a whole number of at least 1 or the letter {self.names[1]}, got {value!r}", param, ctx)
        return whole


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc derive --bound edelman2022 --depth 1 --heads 1
  boundcalc derive --bound trauger2024 --detail full
  boundcalc derive --bound K1 --depth 2
  boundcalc derive --format latex -o article
  boundcalc derive --bound trauger2024 --format latex --fragment --columns 2 -o sections
  boundcalc derive --bound edelman2022 --format javascript --depth 2 --heads 1
  boundcalc derive --bound trauger2024 --format bibtex

Every size may be a number or a letter; letters stay symbols.""",
)
@click.option("--bound", default="edelman2022", show_default=True, help=f"Theorem: {', '.join(THEOREMS)}, or your own.")
@click.option(
    "--quantity",
    metavar="NAME",
    type=click.Choice(QUANTITIES),
    help="What to bound: gap (default where there is one), covering_number, ...",
)
@click.option("--depth", type=_NumberOrLetter("depth", "D"), help="Blocks.  [default: D]")
@click.option("--T", "T", type=_NumberOrLetter("T", "T"), help="Rows (tokens) per sequence.  [default: T]")
@click.option("--heads", type=_NumberOrLetter("heads", "H"), help="Attention heads per block.  [default: H]")
@click.option("--set", "others", multiple=True, metavar="NAME=VALUE", help="Any other symbol (repeatable).")
@click.option(
    "--detail",
    type=click.Choice(("formula", "expanded", "brief", "full")),
    help="The formula alone; with every named part written out; the theorem with the titles of its steps; or with "
    "proof and lemmas.  [default: brief, in LaTeX full]",
)
@form_option("text", "markdown", "latex", "bibtex", *_CODE)
@click.option("--fragment", is_flag=True, help="LaTeX for \\input.")
@click.option(
    "--columns", type=click.IntRange(1, 2), help="Columns of the page that a LaTeX fragment is for.  [default: 1]"
)
@click.option("-o", "--out", type=output_folder(), help="Folder for the files (LaTeX: with macros and .bib).")
def command(
    bound: str,
    quantity: str | None,
    others: tuple[str, ...],
    detail: str | None,
    form: str,
    fragment: bool,
    columns: int | None,
    out: Path | None,
    **sizes: int | None,
) -> None:
    """A theorem with its hypotheses, its formula and its proof, and where it differs from the paper."""
    from boundcalc.cli.text import reading_width
    from boundcalc.theorems.derivation import derive

    if fragment and form != "latex":
        raise InvalidSetting(f"--fragment is for --format latex, not {form}")
    if columns is not None and not (fragment and out is not None):
        raise InvalidSetting("--columns is for fragments: add --format latex --fragment -o FOLDER")
    if detail in ("formula", "expanded") and (form not in ("text", "latex") or fragment or out is not None):
        raise InvalidSetting("a formula alone is printed as text or latex: leave out --fragment and --out")
    if out is not None and (form == "bibtex" or form in _CODE):
        raise InvalidSetting(f"{form} goes to the screen: leave out --out, and redirect it")
    theorem, values = _theorem(bound), {name: value for name, value in sizes.items() if value is not None}
    more = numbers(pairs("--set", others, "C=2"))
    for name in values.keys() & more.keys():
        raise InvalidSetting(f"--{name} and --set {name}=... give the same size: leave one out")
    if form == "bibtex":
        click.echo(theorem.cite())
        return
    derivation = derive(theorem, quantity, values | more)
    detail = detail or ("full" if form == "latex" else "brief")
    if form in _CODE:
        click.echo(derivation.formula.code(form), nl=False)
    elif detail in ("formula", "expanded"):
        expand = detail == "expanded"
        click.echo(
            derivation.formula.latex(expand=expand) if form == "latex" else derivation.formula.text(expand=expand)
        )
    elif out is not None and form == "latex":
        from boundcalc.theorems.render import files

        shared = {
            path.name: path.read_text("utf-8") for path in out.glob("boundcalc*") if path.suffix in (".tex", ".bib")
        }
        full = detail == "full"
        _write(out, files(derivation, full=full, fragment=fragment, columns=columns or 1, there=shared), shared)
    else:
        text = derivation.render(form, detail=detail, width=reading_width())
        if out is None:
            click.echo(text, nl=False)
        else:
            _write(out, {f"{derivation.theorem.name}.{'md' if form == 'markdown' else 'txt'}": text})


def _theorem(name: str) -> Theorem:
    """The theorem of a name; refuses policies, which give numbers."""
    theorem = theorem_called(name)
    if theorem is not None:
        return theorem
    if name in POLICIES:
        raise InvalidSetting(
            f"policy {name!r} gives numbers, not a formula: `boundcalc eval --bound {name} --explain` prints the proof "
            "of its number; `boundcalc explain theorems` names the formulas"
        )
    raise InvalidSetting(near(f"no theorem is called {name!r}", name, [*THEOREMS, *POLICIES]))


def _write(folder: Path, files: Mapping[str, str], shared: Collection[str] = ()) -> None:
    """All of the files; `shared` ones (macros, references) were read, and are written with what is new."""
    output.make_folder(folder)
    for name in files:
        output.check(folder / name, appends=name in shared)
    for name, text in files.items():
        output.write_text(folder / name, text, force=name in shared)
        click.echo(folder / name)
