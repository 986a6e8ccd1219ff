"""`boundcalc export`."""

from __future__ import annotations

from typing import Any

import click

from boundcalc.cli.formulas import formula_options, take_formula
from boundcalc.cli.idle import Command

_TARGETS = ("latex", "bibtex", "python", "numpy", "mathematica", "javascript")


@click.command(
    cls=Command,
    name="export",
    short_help="A bound's formula as LaTeX, BibTeX or code.",
    epilog="""\b
Examples:
  boundcalc export --bound edelman2022 --to latex
  boundcalc export --bound edelman2022 --to javascript --depth 2 --heads 1
  boundcalc export --bound trauger2024 --to bibtex
  boundcalc export --preset gpt2 --to numpy --depth 12""",
)
@formula_options
@click.option("--to", "target", type=click.Choice(_TARGETS), required=True, help="Language.")
@click.option("--published", is_flag=True, help="The paper's shape (its constant a symbol) instead of ours.")
@click.option("--expand", is_flag=True, help="LaTeX: every named part written out.")
def command(target: str, published: bool, expand: bool, **options: Any) -> None:
    """The closed form of a bound in another language, ready to paste."""
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.base.sources import HERE
    from boundcalc.formulas.derivation import derive
    from boundcalc.formulas.theorems import Theorem

    if expand and target != "latex":
        raise InvalidSetting(f"--expand is for --to latex; {target} has every part written out")
    if published and target == "bibtex":
        raise InvalidSetting("--published changes no entry of --to bibtex: leave it out")
    wanted = options.get("quantity")
    asked = take_formula(options)
    if target == "bibtex":
        click.echo(asked.what.cite() if isinstance(asked.what, Theorem) else HERE.bibtex)
        return
    if published:
        if not isinstance(asked.what, Theorem):
            raise InvalidSetting("--published is the shape of a paper's theorem: leave out --preset")
        formula = asked.what.published.with_values(**asked.values)
        if wanted not in (None, formula.name):
            raise InvalidSetting(f"the paper's shape is that of {formula.name!r}: leave out --quantity {wanted}")
    else:
        formula = derive(asked.what, asked.quantity, asked.values).formula
    click.echo(formula.latex(expand=expand) if target == "latex" else formula.code(target), nl=target == "latex")
