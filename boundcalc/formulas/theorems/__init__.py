"""The registry of what can be asked for by name: policies of `eval`, and theorems as objects.

Importing it is light: a theorem's formulas import sympy when they are first asked for.
"""

from __future__ import annotations

from dataclasses import replace

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import is_own
from boundcalc.base.registry import Registry
from boundcalc.formulas.theorems.edelman import edelman2022 as edelman2022
from boundcalc.formulas.theorems.edelman import edelman2022_head as edelman2022_head
from boundcalc.formulas.theorems.inference import INFERENCE
from boundcalc.formulas.theorems.policies import POLICIES as POLICIES
from boundcalc.formulas.theorems.policies import Policy as Policy
from boundcalc.formulas.theorems.theorem import Theorem as Theorem
from boundcalc.formulas.theorems.trauger import trauger2024 as trauger2024
from boundcalc.formulas.theorems.zhang import zhang2022 as zhang2022
from boundcalc.setting.validate import choice


class _Theorems(Registry[Theorem]):
    """Theorems about the gap of a setting are bounds as well."""

    def register(self, entry: Theorem) -> Theorem:
        super().register(entry)
        if entry.policy is not None:
            BOUNDS.setdefault(entry.name, entry.policy)
        return entry

    def remove(self, name: str) -> None:
        if name in self._added:
            BOUNDS.pop(name, None)
        super().remove(name)


THEOREMS = _Theorems(
    "theorem",
    (
        edelman2022,
        edelman2022_head,
        trauger2024,
        zhang2022,
        *INFERENCE,
    ),
)
"""Every theorem by name; `register` adds one to the commands."""

BOUNDS: dict[str, Policy] = dict(POLICIES)
for _theorem in THEOREMS.values():
    if _theorem.policy is not None:
        BOUNDS.setdefault(_theorem.name, _theorem.policy)
"""What bounds the gap of any setting: the policies, and the theorems that are about one, by the covers each paper uses
with this library's constants."""


ALONE = tuple(name for name in THEOREMS if name not in BOUNDS)
"""Theorems that are not about the gap of a setting: `eval` and `solve` take their inputs one by one."""


def aliases() -> dict[str, str]:
    """Bounds that are searched for by the same rules as one before them, and which: the same numbers, by another name."""
    rules: dict[Policy, str] = {}
    found: dict[str, str] = {}
    for name, policy in BOUNDS.items():
        first = rules.setdefault(replace(policy, name="", title=""), name)
        if first != name:
            found[name] = first
    return found


def known_bound(name: str) -> str:
    """The name under which `BOUNDS` has a bound; refuses names of nothing, and theorems that are not about a setting."""
    theorem = theorem_called(name)
    if theorem is not None and theorem.name not in BOUNDS:
        from boundcalc.base.prose import plain

        raise InvalidSetting(
            f"{name} ({plain(theorem.title)}) is no bound of the gap of a setting: `boundcalc eval --bound {name}` gives its "
            f"value, `boundcalc derive --bound {name}` its formula"
        )
    return choice("bound", name if theorem is None else theorem.name, dict.fromkeys([*BOUNDS, *THEOREMS]))


def theorem_called(name: str) -> Theorem | None:
    """The theorem of a name, of the statement it is, or of one's own (mine.py:bound)."""
    if is_own(name):
        from boundcalc.formulas.theorems.own import own

        return own(name).theorem
    if name in THEOREMS:
        return THEOREMS[name]
    return next((theorem for theorem in THEOREMS.values() if theorem.statement_name == name), None)
