"""A theorem with its proof: the class, the statement, the steps and the lemmas they are based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from boundcalc.base import theory
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.theory import HERE, Entry, Source
from boundcalc.base.validate import choice
from boundcalc.theorems import prose
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.theorem import Theorem


@dataclass(frozen=True)
class Derivation:
    """A formula of a theorem with its statement and its proof.

    Attributes:
        theorem: whose formula it is.
        quantity: what it bounds.
        values: what is put into the statement; the steps stay general.
    """

    theorem: Theorem
    quantity: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def formula(self) -> Formula:
        """The formula with the values in it."""
        built = self.theorem.built_values(self.values)
        rest = {name: value for name, value in self.values.items() if name not in built}
        formula = self.theorem.formula(self.quantity, **built)
        return formula.with_values(**rest) if rest else formula

    @property
    def definition(self) -> str:
        """The class, or other objects that the statement is about."""
        return self.theorem.definition({**self.theorem.built_values(self.values), **self.values})

    def statements(self) -> list[Entry]:
        """The statements used, in the order of the registry."""
        from boundcalc.statements.texts import STATEMENTS

        return [STATEMENTS[name] for name in self.theorem.uses(self.quantity)]

    def sources(self) -> list[Source]:
        """Every source that is cited, this library last; the sources of a user's own theorem are the user's."""
        cited = {} if self.theorem.stated_by else {self.theorem.source.key: self.theorem.source}
        for entry in self.statements():
            words = f"{theory.section(f'{entry.name[0]}: ')} {entry.says} {entry.proof}"
            cited |= {source.key: source for source in (entry.source, *prose.cited(words))}
        cited.pop(HERE.key, None)
        return [*cited.values(), *([] if self.theorem.stated_by else [HERE])]


def derive(what: Any, quantity: str | None = None, values: Mapping[str, Any] | None = None) -> Derivation:
    """A theorem, by name or object, with its proof; `values` are put into the statement, the steps stay general."""
    from boundcalc.theorems import THEOREMS

    theorem = THEOREMS[choice("bound", what, THEOREMS)] if isinstance(what, str) else what
    if not isinstance(theorem, Theorem):
        raise InvalidSetting(f"derive takes a theorem, got {what!r}")
    derivation = Derivation(theorem, quantity or theorem.main_quantity, values or {})
    derivation.formula  # noqa: B018 - refuses a quantity or a value now
    return derivation
