"""`boundcalc derive`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import OUTPUT_FOLDER, FileCommand
from boundcalc.cli.lazy import near
from boundcalc.cli.options import WHOLE, form_option, option, pairs, several
from boundcalc.cli.setting import numbers
from boundcalc.cli.text import reading_width
from boundcalc.theorems import POLICIES, THEOREMS, Theorem, theorem_called
from boundcalc.theorems.theorem import QUANTITIES

_CODE = ("python", "javascript")
_DETAIL = click.Choice(("formula", "expanded", "brief", "full"))


class _Size(click.ParamType):
    """A whole number, or a letter, which stays a symbol."""

    name = "number|letter"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, str) and value.isalpha() else WHOLE.convert(value, param, ctx)


_SIZE = _Size()


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc derive --bound edelman2022 --depth 1 --heads 1
  boundcalc derive --bound trauger2024 --detail full
  boundcalc derive --format latex -o article
  boundcalc derive --bound trauger2024 --format latex --fragment --columns 2 -o sections
  boundcalc derive --bound trauger2024 --format bibtex

Every size may be a number or a letter; letters stay symbols.""",
)
@option("--bound", str, f"Theorem: {', '.join(THEOREMS)}, or your own.", "edelman2022")
@option(
    "--quantity",
    click.Choice(QUANTITIES),
    "What to bound: gap (default where there is one), covering_number, ...",
    metavar="NAME",
)
@option("--depth", _SIZE, "Blocks.  [default: D]")
@option("--T T", _SIZE, "Rows (tokens) per sequence.  [default: T]")
@option("--heads", _SIZE, "Attention heads per block.  [default: H]")
@several("--set others", "Any other symbol (repeatable).", "NAME=VALUE")
@option(
    "--detail",
    _DETAIL,
    "The formula alone; with every named part written out; the theorem with the titles of its steps; or with proof and "
    "lemmas.  [default: brief, in LaTeX full]",
)
@form_option("text", "markdown", "latex", "bibtex", *_CODE)
@option("--fragment", bool, "LaTeX for \\input.")
@option("--columns", click.IntRange(1, 2), "Columns of the page that a LaTeX fragment is for.  [default: 1]")
@option("-o --out", OUTPUT_FOLDER, "Folder for the files (LaTeX: with macros and .bib).")
def command(
    bound: str,
    quantity: str | None,
    others: tuple[str, ...],
    detail: str | None,
    form: str,
    fragment: bool,
    columns: int | None,
    out: Path | None,
    **sizes: Any,
) -> None:
    """A theorem with its hypotheses, its formula and its proof, and where it differs from the paper."""
    from boundcalc.theorems.derivation import derive
    from boundcalc.theorems.render import files

    alone = detail in ("formula", "expanded")
    if fragment and form != "latex":
        raise InvalidSetting(f"--fragment is for --format latex, not {form}")
    if columns is not None and not (fragment and out is not None):
        raise InvalidSetting("--columns is for fragments: add --format latex --fragment -o FOLDER")
    if alone and (form not in ("text", "latex") or fragment or out is not None):
        raise InvalidSetting("a formula alone is printed as text or latex: leave out --fragment and --out")
    if out is not None and (form == "bibtex" or form in _CODE):
        raise InvalidSetting(f"{form} goes to the screen: leave out --out, and redirect it")
    theorem, more = _theorem(bound), numbers(pairs("--set", others, "C=2"))
    typed = {name: value for name, value in sizes.items() if value is not None}
    for name in typed.keys() & more.keys():
        raise InvalidSetting(f"--{name} and --set {name}=... give the same size: leave one out")
    if form == "bibtex":
        click.echo(theorem.cite())
        return
    values = {name: value for name, value in typed.items() if not isinstance(value, str)} | more
    derivation = derive(theorem, quantity, values)
    detail = detail or ("full" if form == "latex" else "brief")
    if form in _CODE:
        click.echo(derivation.formula.code(form), nl=False)
    elif alone:
        write = derivation.formula.latex if form == "latex" else derivation.formula.text
        click.echo(write(expand=detail == "expanded"))
    elif out is not None and form == "latex":
        kinds = (".tex", ".bib")
        shared = {path.name: path.read_text("utf-8") for path in out.glob("boundcalc*") if path.suffix in kinds}
        full = detail == "full"
        _write(out, files(derivation, full=full, fragment=fragment, columns=columns or 1, there=shared), shared)
    else:
        text = derivation.render(form, detail=detail, width=reading_width())
        if out is None:
            click.echo(text, nl=False)
        else:
            _write(out, {f"{theorem.name}.{'md' if form == 'markdown' else 'txt'}": text})


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


def _write(folder: Path, files: Mapping[str, str], shared: Collection[str] = ()) -> None:
    """All of the files; `shared` ones (macros, references) were read, and are written with what is new."""
    output.make_folder(folder)
    for name in files:
        output.check(folder / name, appends=name in shared)
    for name, text in files.items():
        output.write_text(folder / name, text, force=name in shared)
        click.echo(folder / name)
