"""A setting as JSON with nothing left to a reader's defaults: what a certificate is about.

`Setting.to_json` writes what differs from the defaults, which is what people want to read and edit. A proof must not
change its meaning with the version of whoever reads it, so here every field of every part is written, and the reader
takes nothing less.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting.layer import Layer
from boundcalc.setting.named import layer_to_json
from boundcalc.setting.norms import Norms
from boundcalc.setting.setting import Setting


def complete_json(setting: Setting) -> dict[str, Any]:
    """Every field of a setting, as a JSON object that `Setting.from_json` reads back."""
    return {
        "architecture": _fields(setting.architecture),
        "norms": complete_norms(setting.norms),
        "sample": _fields(setting.sample),
    }


def complete_norms(norms: Norms) -> dict[str, Any]:
    """Every field of norms; of a budget the limits it sets, as a limit that is not set is none."""
    budgets = {key: _plain(budget.to_json()) for key, budget in norms.budgets.items()}
    return {"C": norms.C, "budgets": budgets, "measured": norms.measured, "failure": norms.failure}


def read_complete(data: object) -> Setting:
    """The setting of a complete JSON object; refuses one that leaves anything out or writes it otherwise."""
    setting = Setting.from_json(data)
    problem = difference("setting", data, complete_json(setting))
    if problem is not None:
        raise InvalidSetting(problem)
    return setting


def difference(where: str, given: object, full: object) -> str | None:
    """The first place where JSON is not what it should be, or None."""
    if isinstance(full, dict):
        if not isinstance(given, dict):
            return f"{where} must be a JSON object"
        for key in full:
            if key not in given:
                return f"{where} does not give {key!r}, and nothing may be left to defaults"
        for key, value in given.items():
            if key not in full:
                return f"{where} has no {key!r:.60}"
            problem = difference(f"{where}.{key}", value, full[key])
            if problem is not None:
                return problem
        return None
    if isinstance(full, list):
        if not isinstance(given, list | tuple) or len(given) != len(full):
            return f"{where} must be a list of {len(full)}"
        pairs = enumerate(zip(given, full, strict=True))
        return next((p for i, (a, b) in pairs if (p := difference(f"{where}[{i}]", a, b)) is not None), None)
    whole = isinstance(given, int) or not isinstance(full, int)  # 8.0 is not how 8 is written
    if given == full and whole and isinstance(given, bool) == isinstance(full, bool):
        return None
    return f"{where} is read as {full!r:.60}: write that"


def _fields(part: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(part, f.name)) for f in fields(part)}


def _plain(value: Any) -> Any:
    """A value as JSON: layers by name, tuples as lists."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    named = {"layer": layer_to_json(value)["layer"]} if isinstance(value, Layer) else {}
    return named | _fields(value)
