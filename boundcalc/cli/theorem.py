"""The value of a theorem that is not about the gap of a setting: attention as inference, or a theorem of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, up
from boundcalc.cli.options import write_json
from boundcalc.cli.setting import BY_NAME, Question
from boundcalc.cli.text import Line, wrapped, write_table
from boundcalc.cli.values import short, shown
from boundcalc.theorems import BOUNDS, Theorem, known_bound, theorem_called
from boundcalc.theorems.theorem import field_value

_NAMES = {"B_X": "input_radius", "tau": "temperature", "r": "smoothness", "reg": "rho"}
"""Other names of inputs of formulas."""


def alone(bounds: Sequence[str]) -> Theorem | None:
    """The theorem that is not about a setting, where one was named; it is evaluated by itself."""
    theorems = [theorem for name in bounds if (theorem := theorem_called(name)) and theorem.name not in BOUNDS]
    if theorems and len(bounds) > 1:
        raise InvalidSetting(f"{theorems[0].name} is no gap of a setting: evaluate it by itself")
    return theorems[0] if theorems else None


def refuse_inputs(question: Question) -> None:
    """Refuses inputs of --set that no field of a setting has."""
    for name in question.inputs:
        raise InvalidSetting(
            f"--set: a setting has no field {name!r}" + ("; layers are --depth" if name == "L" else "")
        )


def refuse_idle_bits(question: Question, bounds: Sequence[str]) -> None:
    """Refuses --bits where no requested bound counts stored weights."""
    if bounds and not any(BOUNDS[known_bound(name)].stored for name in bounds):
        able = " and ".join(repr(policy.name) for policy in BOUNDS.values() if policy.stored)
        question.refuse("bits", f"only {able} counts stored weights (G13), not {', '.join(bounds)}")


def show_values(theorem: Theorem, question: Question, form: str) -> None:
    """Its values as a table or JSON."""
    if form not in ("table", "json"):
        raise InvalidSetting(f"{theorem.name} is shown as table or json: leave out --format {form}")
    values, assumed = _inputs(theorem, question)
    a = question.setting.architecture
    if theorem.network and a != type(a)(depth=a.depth, d=a.d, heads=a.heads, seq_len=a.seq_len):
        raise InvalidSetting(f"{theorem.name} is about networks of preset edelman alone: leave out what makes another")
    bounds = theorem.values(**values)
    by = {"stated_by": theorem.stated_by} if theorem.stated_by else {}
    if form == "json":
        write_json({"theorem": theorem.name, **by, "assumed": assumed, "results": [b.to_json() for b in bounds]})
        return
    listed = ", ".join(f"{name} {short(value)}{'*' * (name in assumed)}" for name, value in values.items())
    notes = [f"at {listed}" + ("   (* default: --set NAME=VALUE changes it)" if assumed else "")]
    if theorem.stated_by:
        notes.append(f"{theorem.name} is stated by {theorem.stated_by}: the formula is evaluated here, not proved.")
    else:
        notes.append(f"boundcalc derive --bound {theorem.name} gives the formula and its steps.")
    rows = [
        Line(
            (
                b.name,
                b.form,
                b.kind,
                "~" * (b.kind == "proxy") + up(b.value),
                ", ".join(f"{k} {near(v, 3)}" for k, v in b.parameters.items()),
                b.quantity,
            )
        )
        for b in bounds
    ]
    write_table(("bound", "form", "kind", "value <=", "chosen", "of what"), rows)
    notes += [
        f"{b.name} ({b.form}) is vacuous: its quantity is at most {shown(b.always)}." for b in bounds if b.vacuous
    ]
    for note in notes:
        click.echo("\n".join(wrapped(note.split())))


def _inputs(theorem: Theorem, question: Question) -> tuple[Mapping[str, float], list[str]]:
    """Every input of a theorem, and those that were not given: from --set, the setting, or the theorem's defaults."""
    needed, optional = theorem.needed
    typed = {_NAMES.get(name, name): value for name, value in question.inputs.items()}
    values: dict[str, float] = {}
    assumed: list[str] = []
    for name in (*needed, *optional):
        entry = BY_NAME.get(_NAMES.get(name, name))
        if name in typed:
            values[name] = typed.pop(name)
        elif entry is not None and (name not in theorem.defaults or not question.assumed(entry.field)):
            values[name] = field_value(question.setting, entry.field)
        elif name in theorem.defaults:
            values[name] = theorem.defaults[name]
        elif name not in optional:
            example = f"--set {name}=1"
            raise InvalidSetting(f"{theorem.name} needs a value for {name}; for instance {example}")
        if name in values and name not in question.inputs and (entry is None or question.assumed(entry.field)):
            assumed.append(name)
    names = ", ".join((*needed, *optional))
    for name in typed:
        raise InvalidSetting(f"{theorem.name} does not depend on {name}; it has {names}")
    for entry in BY_NAME.values():
        if question.origin.get(entry.field) == "given" and entry.field not in _read(needed, optional):
            question.refuse(entry.field, f"{theorem.name} is not about a setting; it has {names}")
    return values, assumed


def _read(needed: Sequence[str], optional: Sequence[str]) -> set[str]:
    """The fields of a setting that inputs of these names are taken from."""
    names = [_NAMES.get(name, name) for name in (*needed, *optional)]
    return {BY_NAME[name].field for name in names if name in BY_NAME}
