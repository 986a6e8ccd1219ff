"""Theorems of papers as objects, and the names that `eval` takes: policies, and theorems about the gap of a setting.

Importing it is light: a theorem's formulas import SymPy when they are first needed.
"""

from __future__ import annotations

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name
from boundcalc.base.registry import Registry
from boundcalc.base.validate import choice
from boundcalc.theorems._data import theorems
from boundcalc.theorems.policies import POLICIES as POLICIES
from boundcalc.theorems.policies import Policy as Policy
from boundcalc.theorems.theorem import Theorem as Theorem

BOUNDS: dict[str, Policy] = dict(POLICIES)
"""What bounds the gap of any setting: the policies, and the theorems about one, by the covers and the form of their
formula."""


class _Theorems(Registry[Theorem]):
    """Theorems about the gap of a setting are bounds as well."""

    def register(self, entry: Theorem) -> Theorem:
        super().register(entry)
        if entry.policy is not None:
            BOUNDS.setdefault(entry.name, entry.policy)
        return entry

    def remove(self, name: str) -> None:
        BOUNDS.pop(name, None)
        super().remove(name)


THEOREMS = _Theorems("theorem", theorems())
"""Every theorem by name; `register` adds one to the commands."""
edelman2022, edelman2022_head, trauger2024, zhang2022, K1, X3, X4, X6 = THEOREMS.values()
BOUNDS.update({theorem.name: theorem.policy for theorem in THEOREMS.values() if theorem.policy is not None})


def known_bound(name: str) -> str:
    """The name under which `BOUNDS` has a bound; refuses names of nothing, and of theorems about something else."""
    theorem = theorem_called(name)
    if theorem is not None and theorem.name not in BOUNDS:
        from boundcalc.theorems.prose import plain

        raise InvalidSetting(
            f"{name} ({plain(theorem.title)}) is no bound of the gap of a setting: `boundcalc eval --bound {name}` "
            f"gives its value, `boundcalc derive --bound {name}` its formula"
        )
    return choice("bound", name if theorem is None else theorem.name, dict.fromkeys([*BOUNDS, *THEOREMS]))


def theorem_called(name: str) -> Theorem | None:
    """The theorem of a name, of the statement it is, or of your own (mine.py:bound)."""
    if is_name(name):
        from boundcalc.theorems.own import own

        return own(name).theorem
    if name in THEOREMS:
        return THEOREMS[name]
    return next((theorem for theorem in THEOREMS.values() if theorem.statement_name == name), None)
