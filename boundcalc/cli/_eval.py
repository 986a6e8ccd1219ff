"""`boundcalc eval`: bounds of a setting, a grid of settings, or the value of a theorem that is about none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, short, up
from boundcalc.cli._lazy import FAILURE
from boundcalc.cli._options import (
    NEW_FILE,
    bounds_option,
    command_with,
    form_option,
    option,
    refuse_others,
    several,
    shown,
    write_json,
)
from boundcalc.cli._setting import ENTRIES, PARAMETERS, Question, setting_options, take_setting
from boundcalc.cli._text import say, write_table
from boundcalc.theorems import BOUNDS, Theorem, known_bound, theorem_called
from boundcalc.theorems.theorem import field_value


@command_with("""\
  boundcalc eval --depth 2 --T 512
  boundcalc eval --preset gpt2 --T 256 --m 10^7 --C 2 --bound best --bound published
  boundcalc eval --norm W_V=op:2.5,21:8 --norm W_1=op:3,21:20 --C 1
  boundcalc eval --depth 1 --why
  boundcalc eval --certificate gap.json && boundcalc verify gap.json
  boundcalc eval --sweep T=64:65536:x2 --sweep m=1e3:1e9:log7 --format csv > grid.csv

Sweeps: --sweep AXIS, repeated for a grid. AXIS is name=first:last:xF (each F times the last),
name=first:last:logN (N values, evenly in logs), name=first:last:linN (N values, evenly) or
name=a,b,c. Sweeps evaluate `best` unless --bound says otherwise.""")
@setting_options
@bounds_option
@form_option("table", "json", "csv")
@option("--certificate", NEW_FILE, "Write the certificate of the best gap bound printed.")
@option("--certificate-risk", NEW_FILE, "Write the certificate of its risk bound.")
@option("--why", bool, "What the best bound is made of, what it depends on, which change helps most.")
@option("--no-solve", bool, "Do not look for the smallest m.")
@several("--sweep axes", "Vary one value (repeatable: a grid).", "AXIS")
@click.pass_context
def command(context: click.Context, bounds: tuple[str, ...], form: str, axes: tuple[str, ...], **options: Any) -> None:
    """Bounds of the generalization gap and of the risk for a setting, every value checked.

    Values that are not given come from the preset, or are defaults, marked with * in the output.
    """
    question, theorem = take_setting(options, complete=not axes, inputs=True), alone(bounds)
    if form == ("json" if axes else "csv"):
        raise InvalidSetting(f"--format {form} is for {'one setting' if axes else '--sweep'}")
    if theorem is not None:
        refuse_others(f"for {theorem.name}, which is no bound of a setting", {*PARAMETERS, "bounds", "form"})
        _show_values(theorem, question, form)
        return
    for name in question.inputs:
        layers = "; layers are --depth" if name == "L" else ""
        raise InvalidSetting(f"--set: a setting has no field {name!r}{layers}")
    refuse_idle_bits(question, bounds)
    if axes:
        from boundcalc.cli._grid import sweep

        refuse_others("with --sweep: it is about one setting", {*PARAMETERS, "bounds", "form", "axes"})
        if not sweep(question, axes, bounds, form):
            context.exit(FAILURE)
        return
    from boundcalc.cli._report import ask, show

    report = ask(question, bounds, solve=not options["no_solve"], why=options["why"])
    best = report.best()
    for quantity, file in {"gap": options["certificate"], "risk": options["certificate_risk"]}.items():
        if file is not None and (best is None or best.of(quantity).trivial):
            reason = f"the best {quantity} bound is trivial" if best else "no bound was found"
            raise click.ClickException(f"{reason}: there is no proof to write")
        if file is not None and best is not None:
            best.of(quantity).certificate.save(file)
    if form == "json":
        write_json(report.to_json())
    else:
        show(report)
    if best is None:
        context.exit(FAILURE)


# -- theorems that are about no setting


def alone(bounds: Sequence[str]) -> Theorem | None:
    """The theorem that is not about a setting, where one was named; it is evaluated by itself."""
    theorems = [theorem for name in bounds if (theorem := theorem_called(name)) and theorem.name not in BOUNDS]
    if theorems and len(bounds) > 1:
        raise InvalidSetting(f"{theorems[0].name} is no gap of a setting: evaluate it by itself")
    return theorems[0] if theorems else None


def refuse_idle_bits(question: Question, bounds: Sequence[str]) -> None:
    """Refuses --bits where no requested bound counts stored weights."""
    if bounds and not any(BOUNDS[known_bound(name)].stored for name in bounds):
        able = " and ".join(repr(policy.name) for policy in BOUNDS.values() if policy.stored)
        question.refuse("bits", f"only {able} counts stored weights (G13), not {', '.join(bounds)}")


def _show_values(theorem: Theorem, question: Question, form: str) -> None:
    """Its values as a table or JSON."""
    values, assumed = _inputs(theorem, question)
    a = question.setting.architecture
    if theorem.network and a != type(a)(depth=a.depth, d=a.d, heads=a.heads, seq_len=a.seq_len):
        raise InvalidSetting(f"{theorem.name} is about networks of preset edelman alone: leave out what makes another")
    bounds = theorem.values(**values)
    if form == "json":
        by = {"stated_by": theorem.stated_by} if theorem.stated_by else {}
        write_json({"theorem": theorem.name, **by, "assumed": assumed, "results": [b.to_json() for b in bounds]})
        return
    rows = [("bound", "form", "kind", "value <=", "chosen", "of what")]
    for b in bounds:
        chosen = ", ".join(f"{name} {near(value, 3)}" for name, value in b.parameters.items())
        rows.append((b.name, b.form, b.kind, "~" * (b.kind == "proxy") + up(b.value), chosen, b.quantity))
    write_table(rows)
    listed = ", ".join(f"{name} {short(value)}{'*' * (name in assumed)}" for name, value in values.items())
    say(f"at {listed}" + " (* default: --set NAME=VALUE changes it)" * bool(assumed))
    if theorem.stated_by:
        say(f"{theorem.name} is stated by {theorem.stated_by}: the formula is evaluated here, not proved.")
    else:
        say(f"boundcalc derive --bound {theorem.name} gives the formula and its steps.")
    for b in bounds:
        if b.vacuous:
            say(f"{b.name} ({b.form}) is vacuous: its quantity is at most {shown(b.always)}.")


def _inputs(theorem: Theorem, question: Question) -> tuple[dict[str, float], list[str]]:
    """Every input of a theorem, and those that were not given: from --set, the setting, or the theorem's defaults."""
    from boundcalc.theorems.symbols import ALIASES
    from boundcalc.theorems.symbols import BY_NAME as SYMBOLS

    needed, optional = theorem.needed
    all_names = (*needed, *optional)
    typed = {ALIASES.get(name, name): value for name, value in question.inputs.items()}
    fields = {name: SYMBOLS[name].field if name in SYMBOLS else "" for name in all_names}
    values: dict[str, float] = {}
    assumed: list[str] = []
    for name, field in fields.items():
        if name in typed:
            values[name] = typed.pop(name)
            continue
        chosen = bool(field) and not question.assumed(field)
        if chosen or (field and name not in theorem.defaults):
            values[name] = field_value(question.setting, field)
        elif name in theorem.defaults:
            values[name] = theorem.defaults[name]
        elif name in optional:
            continue
        else:
            raise InvalidSetting(f"{theorem.name} needs a value for {name}; for instance --set {name}=1")
        assumed += [name] * (not chosen)
    for name in typed:
        raise InvalidSetting(f"{theorem.name} does not depend on {name}; it has {', '.join(all_names)}")
    for entry in ENTRIES:
        if entry.field not in fields.values():
            question.refuse(entry.field, f"{theorem.name} is not about a setting; it has {', '.join(all_names)}")
    return values, assumed
