"""`boundcalc eval`."""

from __future__ import annotations

from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FileCommand, output_file
from boundcalc.cli.lazy import FAILURE
from boundcalc.cli.options import (
    bounds_option,
    form_option,
    option,
    refuse_others,
    several,
    why_option,
    write_json,
)
from boundcalc.cli.setting import PARAMETERS, Question, setting_options, take_setting
from boundcalc.cli.theorem import alone, refuse_idle_bits, refuse_inputs, show_values


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
@option("--certificate", output_file(), "Write the certificate of the best gap bound printed.")
@option("--certificate-risk", output_file(), "Write the certificate of its risk bound.")
@option("--explain", bool, "Show the proofs, with their numbers: of the best, or of every --bound.")
@why_option
@option("--norms-template template", bool, "Print a norms file with all kinds that are read; stop.")
@click.option("--solve/--no-solve", default=None, help="Look for the smallest m (table format: yes, unless slow).")
@several("--sweep axes", "Vary one value (repeatable: a grid).", "AXIS")
@click.pass_context
def command(
    context: click.Context, bounds: tuple[str, ...], form: str, axes: tuple[str, ...], template: bool, **options: Any
) -> None:
    """Bounds of the generalization gap and of the risk for a setting, every value checked.

    Values that are not given come from the preset, or are defaults, marked with * in the output.
    """
    if template:
        refuse_others("with --norms-template, which prints a norms file and stops", {*PARAMETERS, "template"})
    question = take_setting(options, complete=not (template or axes), inputs=True)
    theorem = alone(bounds)
    if template:
        _template(question)
    elif theorem is not None:
        refuse_others(f"for {theorem.name}, which is no bound of a setting", {*PARAMETERS, "bounds", "form"})
        show_values(theorem, question, form)
    else:
        refuse_inputs(question)
        refuse_idle_bits(question, bounds)
        if axes:
            from boundcalc.cli.grid import sweep

            refuse_others("with --sweep: it is about one setting", {*PARAMETERS, "bounds", "form", "axes"})
            any_bound = sweep(question, axes, bounds, form)
        else:
            any_bound = _one(question, bounds, form, **options)
        if not any_bound:
            context.exit(FAILURE)


def _one(
    question: Question, bounds: tuple[str, ...], form: str, explain: bool, why: bool, solve: bool | None, **files: Any
) -> bool:
    """The bounds of one setting; whether there is any."""
    from boundcalc.cli.report import ask, write_certificates
    from boundcalc.cli.screen import show

    if form == "csv":
        raise InvalidSetting("--format csv is for --sweep")
    if explain and form != "table":
        raise InvalidSetting(f"--explain draws a tree next to the table: leave out --format {form}, or --explain")
    report = ask(question, bounds, solve=solve if solve is not None or form == "table" else False, why=why)
    write_certificates(report.best, {"gap": files["certificate"], "risk": files["certificate_risk"]})
    if form == "json":
        write_json(report.to_json())
    else:
        show(report)
    if explain:
        from boundcalc.cli.proofs import show_proofs

        show_proofs(report, all_bounds=bool(bounds))
    return report.best is not None


def _template(question: Question) -> None:
    """The norms file on stdout; what it means on stderr."""
    from boundcalc.cli.budgets import legend, template

    write_json(template(question.setting))
    for line in legend(question.setting):
        click.echo(line, err=True)
