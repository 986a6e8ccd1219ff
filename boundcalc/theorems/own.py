"""A theorem of your own: a SymPy expression that becomes a named bound, of the kind its author states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import load_name
from boundcalc.base.intervals import upper_float
from boundcalc.base.theory import Source
from boundcalc.setting import Setting
from boundcalc.theorems.theorem import Theorem, field_value

if TYPE_CHECKING:
    from boundcalc.theorems._formula import Formula

_KINDS = ("bound", "a_posteriori", "proxy", "estimate")


@dataclass(frozen=True)
class Bound:
    """A theorem of your own, next to the library's in `eval`, `plot` and `derive`. Its proof is its author's.

    Attributes:
        name: what tables and legends call it.
        formula: a SymPy expression, a text such as "8*C*sqrt(d*log(T)/m)", or a formula of the library. Symbols called
            as the library's (T, m, C, gamma, ...; seq_len, n_train, margin) take their values from a setting.
        kind: what its author states it is: "bound", "a_posteriori", "proxy" (constants are missing) or "estimate".
        quantity: "gap", or "risk" at training error 0.
        title: a few words.
        author: whose theorem it is.
        assumptions: in words, with LaTeX between dollars where they hold mathematics, as the title may.
        values: inputs that are fixed, such as an unspecified constant: {"c": 3}.
    """

    name: str
    formula: Any
    kind: str = "bound"
    quantity: str = "gap"
    title: str = ""
    author: str = ""
    assumptions: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        from boundcalc.theorems import BOUNDS, THEOREMS

        if not self.name or self.name in BOUNDS or self.name in THEOREMS:
            raise InvalidSetting(f"a bound needs a name of its own, got {validate.shown(self.name)}")
        validate.choice("kind", self.kind, _KINDS)
        validate.choice("quantity", self.quantity, ("gap", "risk"))
        if isinstance(self.assumptions, str):
            raise InvalidSetting("assumptions is a list of sentences, got one text")
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "formula", self._read())

    def _read(self) -> Formula:
        import sympy

        from boundcalc.theorems._algebra import parse
        from boundcalc.theorems._formula import Formula
        from boundcalc.theorems.symbols import symbol

        if isinstance(self.formula, Formula):
            if self.formula.name not in (self.quantity, "excess", "error"):
                raise InvalidSetting(
                    f"the formula given to {self.name!r} is of the {self.formula.name}, not the {self.quantity}"
                )
            formula = replace(self.formula, kind=self.kind, name=self.quantity)
        else:
            expr = parse(self.formula) if isinstance(self.formula, str) else self.formula
            if not isinstance(expr, sympy.Expr):
                raise InvalidSetting(f"the formula of {self.name!r} is no expression: {validate.shown(self.formula)}")
            renamed = {old: symbol(old.name) for old in expr.free_symbols if isinstance(old, sympy.Symbol)}
            left = rf"\mathrm{{{self.quantity}}}"
            formula = Formula(self.quantity, expr.xreplace(renamed), left=left, kind=self.kind)
        return formula.with_values(**self.values) if self.values else formula

    def inputs_at(self, setting: Setting) -> dict[str, float]:
        """The values that a setting gives the formula's inputs."""
        from boundcalc.theorems.symbols import BY_NAME

        entries = {symbol.name: BY_NAME.get(symbol.name) for symbol in self.formula.inputs}
        for name, entry in entries.items():
            if entry is None or not entry.field:
                raise InvalidSetting(
                    f"{self.name!r} has an input {name!r} that no setting gives: fix it (values={{{name!r}: 1}})"
                )
        return {name: field_value(setting, entry.field) for name, entry in entries.items() if entry is not None}

    def log10(self, setting: Setting) -> float:
        """Base-10 logarithm of the formula at a setting, in forty digits and rounded up."""
        return math.nextafter(self.formula.log10(**self.inputs_at(setting)), math.inf)

    def value(self, setting: Setting) -> float:
        """The formula at a setting, never below its exact value; inf beyond the range of floats."""
        return upper_float(self.formula.ball(**self.inputs_at(setting)))

    @property
    def stated_by(self) -> str:
        """Whose word it is."""
        return self.author or "its author"

    @property
    def theorem(self) -> Theorem:
        """The bound as `derive` and `eval` take theorems."""
        return Theorem(
            name=self.name,
            title=self.title or "a theorem of your own",
            source=Source("", self.stated_by, self.title or self.name, 0, "stated by its author"),
            statement=f"Stated by {self.stated_by}; neither proved nor checked here.",
            published_note="as stated",
            compares=self.quantity,
            published_form=lambda: self.formula,
            forms={self.quantity: lambda: self.formula},
            assumptions=self.assumptions or ("none are stated",),
            claims={self.quantity: (self._claim, "")},
            kind=self.kind,
            stated_by=self.stated_by,
        )

    @property
    def _claim(self) -> str:
        """The hypotheses, as its author states them."""
        lines = "\n".join(f"- {line[:1].upper()}{line[1:].rstrip('.')}." for line in self.assumptions)
        then = f"Then the {'gap' if self.quantity == 'gap' else 'risk'} is at most the following."
        return f"Suppose:\n\n{lines}\n\n{then}" if lines else then


def own(name: str) -> Bound:
    """The bound of a Python file's name, such as "mine.py:bound"."""
    file = Path(name.rpartition(":")[0])
    if not file.is_file():
        raise InvalidSetting(f"there is no file {file}: a bound of your own is FILE.py:NAME")
    return _loaded(name, file.stat().st_mtime_ns)


@cache
def _loaded(name: str, changed: int) -> Bound:
    del changed
    loaded = load_name(name)
    if not isinstance(loaded, Bound):
        called = name.rpartition(":")[2]
        raise InvalidSetting(
            f"{name} is a {type(loaded).__name__}, where a boundcalc.Bound is needed: "
            f"{called} = boundcalc.Bound({called!r}, expression, kind='bound')"
        )
    return loaded
