"""Theorems that are not about a setting (attention as inference, one layer, finite classes) in `eval` and `solve`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.rounding import up
from boundcalc.cli.setting import OPTION_NAMES, Question
from boundcalc.cli.values import exactly, number, short
from boundcalc.formulas.theorems import ALONE, BOUNDS, THEOREMS, Theorem, known_bound, theorem_called

if TYPE_CHECKING:
    from boundcalc.base.value import Value

_FIELDS = {
    "T": "seq_len",
    "m": "n_train",
    "C": "C",
    "d": "d",
    "heads": "heads",
    "depth": "depth",
    "gamma": "margin",
    "delta": "delta",
    "B_X": "input_radius",
    "vocabulary": "vocabulary",
}
"""Inputs of formulas that are options of a setting."""
OF_PAIRS = " and ".join(name for name, theorem in THEOREMS.items() if "L" in theorem.defaults)
"""The theorems about attention over L pairs."""
_SOLVED = ("L", "m")
"""Inputs that more of makes a bound smaller."""
_MOST = 10**18
_NEAR = 1e-4


def examples(command: str) -> str:
    """What theorems give as examples of a command, for its help."""
    typed = (theorem.examples.get(command) for theorem in THEOREMS.values())
    return "".join(f"\n  boundcalc {command} {words}" for words in typed if words)


class Given(NamedTuple):
    """The inputs of a theorem, and those among them that nobody asked for."""

    values: Mapping[str, float]
    assumed: tuple[str, ...]


def pairs(words: Sequence[str]) -> dict[str, float]:
    """--set NAME=VALUE, repeated."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        value = number(text) if equals else None
        if not name or value is None or isinstance(value, complex) or not math.isfinite(value):
            raise InvalidSetting(f"--set needs NAME=VALUE with a number, such as --set K=4, got {word!r}")
        if name in found:
            raise InvalidSetting(f"--set sets {name!r} twice")
        whole = exactly(text)
        found[name] = value if whole is None else whole
    return found


def alone(bounds: Sequence[str]) -> Theorem | None:
    """The theorem that is asked for, where it is not about a setting; such a one is asked for by itself."""
    found = [theorem for name in bounds if (theorem := theorem_called(name)) and theorem.name not in BOUNDS]
    if found and len(bounds) > 1:
        from boundcalc.base.prose import plain

        raise InvalidSetting(f"{found[0].name} ({plain(found[0].title)}) is no gap of a setting: ask for it by itself")
    return found[0] if found else None


def refuse_inputs(given: Mapping[str, float]) -> None:
    """--set and --L are for theorems that are not about a setting."""
    if given:
        name = next(iter(given))
        raise InvalidSetting(
            f"{name} is no part of a setting: --set and --L are for --bound {', '.join(ALONE)}, which are not about one"
            + ("; layers are --depth" if name == "L" else "")
        )


def refuse_idle_bits(question: Question, bounds: Sequence[str]) -> None:
    """Refuses --bits where no bound that is asked for counts stored weights."""
    if bounds and not any(BOUNDS[known_bound(name)].stored for name in bounds):
        able = " and ".join(repr(policy.name) for policy in BOUNDS.values() if policy.stored)
        question.refuse("bits", f"only {able} counts stored weights (G13), and {', '.join(bounds)} was asked for")


def inputs(theorem: Theorem, question: Question, given: Mapping[str, float], without: str = "") -> Given:
    """Every input of a theorem's formula (but one), from what is given, from the setting, or assumed."""
    names, optional = _needed(theorem)
    known = [*names, *optional]
    values: dict[str, float] = {}
    assumed: list[str] = []
    given = {_canonical(name): value for name, value in given.items()}
    for name in given:
        if name not in known:
            raise InvalidSetting(f"{theorem.name} does not depend on {name}; it has {', '.join(known)}")
    _refuse_unread(theorem, question, given, known, without)
    missing: list[str] = []
    for name in known:
        field = _FIELDS.get(name)
        if name == without:
            continue
        if name in given:
            values[name] = given[name]
        elif field is not None and not (field == "vocabulary" and question.assumed(field)):
            values[name] = _of_setting(question, field)
            if question.assumed(field):
                assumed.append(name)
        elif name in theorem.defaults:
            values[name] = theorem.defaults[name]
            assumed.append(name)
        elif name not in optional:
            missing.append(name)
    if missing:
        example = " ".join(f"--set {name}=1" for name in missing)
        raise InvalidSetting(f"{theorem.name} needs a value for {', '.join(missing)}; for instance {example}")
    return Given(values, tuple(assumed))


def _refuse_unread(
    theorem: Theorem, question: Question, given: Mapping[str, float], known: Sequence[str], without: str
) -> None:
    """Refuses options of a setting that no input of a theorem is taken from."""
    read = {_FIELDS[name] for name in known if name in _FIELDS and name not in given and name != without}
    for field, origin in question.origin.items():
        if origin == "given" and field in OPTION_NAMES and field not in read:
            instead = f"it has {', '.join(known)}"
            if any(_FIELDS.get(name) == field for name in given):
                instead = "--set gives it already"
            elif _FIELDS.get(without) == field:
                instead = f"{without} is what is solved for"
            raise InvalidSetting(
                f"{OPTION_NAMES[field]} would change nothing: {theorem.name} is not about a setting; {instead}"
            )
    for name in question.sources:
        if name in ("--norms", "--norm") or not any(question.origin.get(field) in ("preset", "file") for field in read):
            raise InvalidSetting(
                f"{name} would change nothing: {theorem.name} is not about a setting; it has {', '.join(known)}"
            )


def _canonical(name: str) -> str:
    short_names = {"tau": "temperature", "r": "smoothness", "reg": "rho"}
    return short_names.get(name, name)


def _of_setting(question: Question, field: str) -> float:
    setting = question.setting
    if field == "C":
        if setting.norms.C is None or setting.norms.budgets:
            raise InvalidSetting(
                "the formula has one C for every matrix, and --norms has budgets of their own: --set C="
            )
        return setting.norms.C
    return getattr(setting.sample if hasattr(setting.sample, field) else setting.architecture, field)


def _needed(theorem: Theorem) -> tuple[list[str], list[str]]:
    """Inputs that are needed, and those a search may choose."""
    if theorem.sharper is not None:
        return list(theorem.defaults), list(theorem.chosen)
    return [symbol.name for symbol in theorem.formula(theorem.main_quantity).inputs], []


def _checked(theorem: Theorem, values: Mapping[str, float]) -> Sequence[Value]:
    """Values at a point, re-derived in interval arithmetic: by the theorem's own search, or of its formula."""
    if theorem.sharper is not None:
        return theorem.sharper(**values)
    return [theorem.checked(None, **values)]


def show_values(theorem: Theorem, given: Given, form: str) -> None:
    """A table, or JSON or CSV."""
    from boundcalc.cli.latent import nothing_said
    from boundcalc.cli.latent_show import FORMATS, show

    if form not in FORMATS:
        raise InvalidSetting(f"{theorem.name} is shown as {', '.join(FORMATS)}: leave out --format {form}")
    found = _checked(theorem, given.values)
    rows = [(b.name, b.form, b.kind, _height(b), _inside(b.parameters), b.quantity) for b in found]
    listed = ", ".join(
        f"{name} {short(value)}{'*' if name in given.assumed else ''}" for name, value in given.values.items()
    )
    notes = [f"at {listed}" + ("   (* assumed: --set NAME=VALUE changes it)" if given.assumed else "")]
    if theorem.stated_by:
        notes.append(f"{theorem.name} is stated by {theorem.stated_by}: the formula is evaluated here, not proved.")
    else:
        notes.append(f"boundcalc derive --bound {theorem.name} gives the formula and its steps.")
    notes += nothing_said(found)
    headings = ("bound", "form", "kind", "value <=", "chosen", "of what")
    document: dict[str, Any] = {"theorem": theorem.name} | (
        {"stated_by": theorem.stated_by} if theorem.stated_by else {}
    )
    document |= {"assumed": list(given.assumed), "results": [b.to_json() for b in found]}
    show(form, document, headings, rows, notes)


def _height(bound: Value) -> str:
    from boundcalc.cli.latent_show import ceiling

    return f"{'~' if bound.kind == 'proxy' else ''}{ceiling(bound.value)}"


def _inside(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in parameters.items())


class Size(NamedTuple):
    """The least input size at which a bound meets a target, and the bound there."""

    value: int
    bound: Value


def least_size(theorem: Theorem, variable: str, target: float, given: Given) -> Size:
    """Found by doubling and halving, to four digits; the bound is checked at what is returned."""
    needed = [name for part in _needed(theorem) for name in part]
    if variable not in needed or variable not in _SOLVED:
        can = [name for name in _SOLVED if name in needed]
        instead = f"solve for {' or '.join(can)}" if can else "it has no input size: eval gives its value"
        raise InvalidSetting(f"{theorem.name} cannot be solved for {variable}: {instead}")
    if not target > 0:
        raise InvalidSetting(f"target must be above 0, got {target:g}")

    def at(size: int) -> Value:
        return min(_checked(theorem, {**given.values, variable: size}), key=lambda bound: bound.value)

    always = at(1).always
    if always is not None and target >= always:
        raise InvalidSetting(f"{theorem.name} bounds what is at most {always:g} anyway: give a target below that")
    low, high = 0, 1
    while (bound := at(high)).value > target:
        low, high = high, high * 4
        if high > _MOST:
            raise NoSolution(
                f"no {variable} up to {short(_MOST)} gives {theorem.name} of at most {target:g}: even there it is "
                f"{up(at(_MOST).value)}"
            )
    while high - low > max(1, _NEAR * high):
        middle = (low + high) // 2
        found = at(middle)
        if found.value <= target:
            high, bound = middle, found
        else:
            low = middle
    return Size(high, bound)
