"""`boundcalc eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FileCommand
from boundcalc.cli.lazy import FAILURE
from boundcalc.cli.options import bounds_option, certificate_options, form_option, why_option, write_json
from boundcalc.cli.setting import parameters, setting_options, take_setting
from boundcalc.cli.theorem import alone, refuse_idle_bits, refuse_inputs, show_values

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc eval --depth 2 --T 512
  boundcalc eval --preset gpt2 --T 256 --m 10^7 --C 2 --bound best --bound published
  boundcalc eval --norm W_V=op:2.5,21:8 --norm W_1=op:3,21:20 --C 1
  boundcalc eval --preset gpt2 --norms-template > norms.json
  boundcalc eval --norms norms.json --m 1e6 --train-error 0.02 --format json
  boundcalc eval --depth 1 --explain
  boundcalc eval --preset gpt2 --C 2 --why
  boundcalc eval --certificate gap.json && boundcalc verify gap.json
  boundcalc eval --bound mine.py:bound --m 1e6 --T 64
  boundcalc eval --sweep T=64:65536:x2 --sweep m=1e3:1e9:log7 --format csv > grid.csv

Sweeps: --sweep AXIS, repeated for a grid. AXIS is name=first:last:xF (each F times the last),
name=first:last:logN (N values, evenly in logs), name=first:last:linN (N values, evenly) or
name=a,b,c. Sweeps evaluate `best` unless --bound says otherwise.""",
)
@setting_options
@bounds_option
@form_option("table", "json", "csv")
@certificate_options(" printed")
@click.option("--explain", is_flag=True, help="Show the proofs, with their numbers: of the best, or of every --bound.")
@why_option
@click.option(
    "--norms-template", "template", is_flag=True, help="Print a norms file with all kinds that are read; stop."
)
@click.option("--solve/--no-solve", default=None, help="Look for the smallest m (table format: yes, unless slow).")
@click.option("--sweep", "axes", multiple=True, metavar="AXIS", help="Vary one value (repeatable: a grid).")
@click.pass_context
def command(
    context: click.Context,
    bounds: tuple[str, ...],
    form: str,
    certificate: Path | None,
    certificate_risk: Path | None,
    explain: bool,
    why: bool,
    template: bool,
    solve: bool | None,
    axes: tuple[str, ...],
    **options: Any,
) -> None:
    """Bounds of the generalization gap and of the risk for a setting, every value checked.

    Values that are not given come from the preset, or are defaults, marked with * in the output.
    """
    question = take_setting(options, complete=not (template or axes), inputs=True)
    if template:
        _template(context, question)
        return
    of_one = {
        "--solve/--no-solve": solve is not None,
        "--explain": explain,
        "--why": why,
        "--certificate": certificate,
        "--certificate-risk": certificate_risk,
    }
    theorem = alone(bounds)
    if theorem is not None:
        for name, used in {**of_one, "--sweep": axes}.items():
            if used:
                raise InvalidSetting(f"{name} is for bounds of a setting, which {theorem.name} is not: leave it out")
        show_values(theorem, question, form)
        return
    refuse_inputs(question)
    refuse_idle_bits(question, bounds)
    if axes:
        for name, used in of_one.items():
            if used:
                raise InvalidSetting(f"{name} is about one setting: leave out --sweep, or {name}")
        from boundcalc.cli.sweeping import sweep

        if not sweep(question, axes, bounds, form):
            context.exit(FAILURE)
        return
    if explain and form != "table":
        raise InvalidSetting(f"--explain draws a tree next to the table: leave out --format {form}, or --explain")
    if why and form not in ("table", "json"):
        raise InvalidSetting(f"--why is written as table or json: leave out --format {form}, or --why")
    from boundcalc.cli.report import ask, write_certificates

    report = ask(question, bounds, solve=solve if solve is not None or form == "table" else False, why=why)
    write_certificates(report.best, certificate, certificate_risk)
    from boundcalc.cli.formats import show

    show(report, form)
    if explain:
        from boundcalc.cli.tree import show_proofs

        show_proofs(report, all_bounds=bool(bounds))
    if report.best is None:
        context.exit(FAILURE)


def _template(context: click.Context, question: Any) -> None:
    """The norms file on stdout; what it means on stderr."""
    from boundcalc.cli.budgets import legend, template
    from boundcalc.cli.idle import refuse_given

    others = [p.name for p in context.command.params if p.name and p.name not in {*parameters(), "template"}]
    refuse_given(dict.fromkeys(others, "with --norms-template, which prints a norms file and stops"))
    write_json(template(question.setting))
    for line in legend(question.setting):
        click.echo(line, err=True)
