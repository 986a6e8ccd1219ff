"""A theorem that is not about a setting (attention as inference, one layer, finite classes): its inputs and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.latent_show import FORMATS, show_bounds
from boundcalc.cli.setting import OPTION_NAMES, Question
from boundcalc.cli.values import short
from boundcalc.formulas.theorems import Theorem

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


class _Given(NamedTuple):
    """The inputs of a theorem, and those among them that nobody asked for."""

    values: Mapping[str, float]
    assumed: tuple[str, ...]


def inputs(theorem: Theorem, question: Question, given: Mapping[str, float], without: str = "") -> _Given:
    """Every input of a theorem's formula (but one), from what is given, from the setting, or assumed."""
    names, optional = theorem.needed
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
    return _Given(values, tuple(assumed))


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


def show_values(theorem: Theorem, given: _Given, form: str) -> None:
    """A table, or JSON or CSV."""
    if form not in FORMATS:
        raise InvalidSetting(f"{theorem.name} is shown as {', '.join(FORMATS)}: leave out --format {form}")
    found = theorem.values(**given.values)
    listed = ", ".join(
        f"{name} {short(value)}{'*' if name in given.assumed else ''}" for name, value in given.values.items()
    )
    notes = [f"at {listed}" + ("   (* assumed: --set NAME=VALUE changes it)" if given.assumed else "")]
    if theorem.stated_by:
        notes.append(f"{theorem.name} is stated by {theorem.stated_by}: the formula is evaluated here, not proved.")
    else:
        notes.append(f"boundcalc derive --bound {theorem.name} gives the formula and its steps.")
    document: dict[str, Any] = {"theorem": theorem.name} | (
        {"stated_by": theorem.stated_by} if theorem.stated_by else {}
    )
    document |= {"assumed": list(given.assumed), "results": [b.to_json() for b in found]}
    show_bounds(form, document, found, notes)
