"""The value of a theorem that is not about the gap of a setting: attention as inference, or a theorem of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, short, up
from boundcalc.cli.options import shown, write_json
from boundcalc.cli.setting import BY_NAME, Question
from boundcalc.cli.text import say, write_table
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
        layers = "; layers are --depth" if name == "L" else ""
        raise InvalidSetting(f"--set: a setting has no field {name!r}{layers}")


def refuse_idle_bits(question: Question, bounds: Sequence[str]) -> None:
    """Refuses --bits where no requested bound counts stored weights."""
    if bounds and not any(BOUNDS[known_bound(name)].stored for name in bounds):
        able = " and ".join(repr(policy.name) for policy in BOUNDS.values() if policy.stored)
        question.refuse("bits", f"only {able} counts stored weights (G13), not {', '.join(bounds)}")


def show_values(theorem: Theorem, question: Question, form: str) -> None:
    """Its values as a table or JSON."""
    if form == "csv":
        raise InvalidSetting("--format csv is for --sweep")
    values, assumed = _inputs(theorem, question)
    a = question.setting.architecture
    if theorem.network and a != type(a)(depth=a.depth, d=a.d, heads=a.heads, seq_len=a.seq_len):
        raise InvalidSetting(f"{theorem.name} is about networks of preset edelman alone: leave out what makes another")
    bounds = theorem.values(**values)
    if form == "json":
        by = {"stated_by": theorem.stated_by} if theorem.stated_by else {}
        write_json({"theorem": theorem.name, **by, "assumed": assumed, "results": [b.to_json() for b in bounds]})
        return
    rows = [
        [
            *(b.name, b.form, b.kind, "~" * (b.kind == "proxy") + up(b.value)),
            *(", ".join(f"{k} {near(v, 3)}" for k, v in b.parameters.items()), b.quantity),
        ]
        for b in bounds
    ]
    write_table(("bound", "form", "kind", "value <=", "chosen", "of what"), rows)
    listed = ", ".join(f"{name} {short(value)}{'*' * (name in assumed)}" for name, value in values.items())
    say(f"at {listed}" + " (* default: --set NAME=VALUE changes it)" * bool(assumed))
    if theorem.stated_by:
        say(f"{theorem.name} is stated by {theorem.stated_by}: the formula is evaluated here, not proved.")
    else:
        say(f"boundcalc derive --bound {theorem.name} gives the formula and its steps.")
    for b in bounds:
        if b.vacuous:
            say(f"{b.name} ({b.form}) is vacuous: its quantity is at most {shown(b.always)}.")


def _inputs(theorem: Theorem, question: Question) -> tuple[Mapping[str, float], list[str]]:
    """Every input of a theorem, and those that were not given: from --set, the setting, or the theorem's defaults."""
    needed, optional = theorem.needed
    all_names = (*needed, *optional)
    typed = {_NAMES.get(name, name): value for name, value in question.inputs.items()}
    entries = {name: BY_NAME.get(_NAMES.get(name, name)) for name in all_names}
    values: dict[str, float] = {}
    assumed: list[str] = []
    for name, entry in entries.items():
        if name in typed:
            values[name] = typed.pop(name)
            continue
        chosen = entry is not None and not question.assumed(entry.field)
        if entry is not None and (chosen or name not in theorem.defaults):
            values[name] = field_value(question.setting, entry.field)
        elif name in theorem.defaults:
            values[name] = theorem.defaults[name]
        elif name in optional:
            continue
        else:
            raise InvalidSetting(f"{theorem.name} needs a value for {name}; for instance --set {name}=1")
        assumed += [name] * (not chosen)
    for name in typed:
        raise InvalidSetting(f"{theorem.name} does not depend on {name}; it has {', '.join(all_names)}")
    for entry in BY_NAME.values():
        if entry not in entries.values():
            question.refuse(entry.field, f"{theorem.name} is not about a setting; it has {', '.join(all_names)}")
    return values, assumed
