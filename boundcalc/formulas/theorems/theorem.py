"""A published theorem as an object: its shape, our explicit constants, what is assumed and what differs.

Creating one imports nothing heavy; sympy is imported when a formula is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.sources import HERE, Source
from boundcalc.base.value import Value
from boundcalc.formulas.theorems.policies import Policy
from boundcalc.setting.validate import choice

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

Forms = Mapping[str, Callable[[], "Formula"]]


def shape(quantity: str, expr: Callable[[Any, Any], Any]) -> Callable[[], Formula]:
    """How a paper's bound grows, as a proxy: `expr` makes it of the library's symbols and sympy, unspecified constants c."""

    def made() -> Formula:
        import sympy

        from boundcalc.base import symbols
        from boundcalc.formulas.symbolic.formula import LEFT, Formula

        return Formula(quantity, expr(symbols, sympy), (), LEFT[quantity], kind="proxy")

    return made


@dataclass(frozen=True)
class Theorem:
    """A named theorem. The mathematics in its words is LaTeX between dollars, as in `boundcalc.base.prose`.

    Attributes:
        name: on the command line and in `boundcalc.formulas.theorems`.
        title: a few words.
        source: the paper.
        statement: what it says, in words.
        assumptions: what it assumes, in words; none where it is a statement of the calculus, whose entry says it.
        published_note: what the paper leaves open (its constant), in words.
        compares: the quantity whose published shape is given ("gap" or "covering_number").
        differs: per input, why the explicit formula does not grow like the published shape.
        also: further differences from the paper.
        uses: statements of the calculus the explicit formula rests on.
        of: what the quantity it is about is, where its name does not say.
        statement_name: the statement of the calculus it is, if it is one.
        lemmas: the covers by which `boundcalc eval` bounds the gap of any setting; None where the theorem is not about
            the gap of a setting.
        search: how it goes about it, as `Policy.form`.
        fixed_positions: whether it needs positions that are not learned.
        defaults: values of inputs that `boundcalc eval` and `solve` assume, where the theorem is not about a setting.
        sharper: checked values at given inputs, where a search beats the formula; what it takes beside `defaults` it may
            choose itself.
        examples: what to type after `boundcalc eval` and `boundcalc solve`, by command.
        kind: of its values.
        stated_by: whose word it is, where it is a user's own and neither proved nor checked here.
        published_form: builds the published shape.
        forms: builds what derives the explicit formulas (a form of `boundcalc.formulas.symbolic`, or None), and them by name.
    """

    name: str
    title: str
    source: Source
    statement: str
    published_note: str
    compares: str
    differs: Mapping[str, str]
    also: tuple[str, ...]
    uses: tuple[str, ...]
    published_form: Callable[[], Formula] = field(repr=False)
    forms: Callable[[], tuple[Any, Forms]] = field(repr=False)
    assumptions: tuple[str, ...] = ()
    of: str = ""
    statement_name: str = ""
    lemmas: frozenset[str] | None = None
    search: str = "search"
    fixed_positions: bool = False
    defaults: Mapping[str, float] = field(default_factory=dict[str, float])
    sharper: Callable[..., Sequence[Value]] | None = field(default=None, repr=False)
    examples: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: str = "bound"
    stated_by: str = ""

    @property
    def policy(self) -> Policy | None:
        """The rule by which `boundcalc eval` bounds the gap of a setting, if the theorem is about one."""
        if self.lemmas is None:
            return None
        return Policy(self.name, self.title, self.lemmas, self.search, self.fixed_positions)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Inputs that its search chooses unless they are given."""
        if self.sharper is None:
            return ()
        from inspect import signature

        return tuple(name for name in signature(self.sharper).parameters if name not in self.defaults)

    # -- formulas

    @property
    def quantities(self) -> tuple[str, ...]:
        """The explicit formulas there are."""
        return tuple(self._forms)

    @property
    def _forms(self) -> Forms:
        return self._built[1]

    @property
    def form(self) -> Any:
        """What derives the formulas: a form of `boundcalc.formulas.symbolic`, or None where there is no network."""
        return self._built[0]

    @cached_property
    def _built(self) -> tuple[Any, Forms]:
        return self.forms()

    @cached_property
    def _made(self) -> dict[str, Formula]:
        """The formulas that were asked for."""
        return {}

    def formula(self, quantity: str = "gap") -> Formula:
        """One of the explicit formulas."""
        if quantity in QUANTITIES and quantity not in self._forms:
            listed = ", ".join(self._forms)
            raise Unsupported(
                Refusal(f"theorem {self.name}", f"the quantity {quantity!r}", f"one of {listed}", _elsewhere(quantity))
            )
        choice("quantity", quantity, self._forms)
        if quantity not in self._made:
            self._made[quantity] = self._forms[quantity]()
        return self._made[quantity]

    @property
    def gap(self) -> Formula:
        """Upper bound of the generalization gap, all constants explicit."""
        return self.formula("gap")

    @property
    def covering_number(self) -> Formula:
        """Upper bound of log N(F, eps), all constants explicit."""
        return self.formula("covering_number")

    @property
    def rademacher(self) -> Formula:
        """Upper bound of the Rademacher complexity, all constants explicit."""
        return self.formula("rademacher")

    @property
    def explicit(self) -> Formula:
        """The explicit formula of the quantity that `published` is about."""
        return self.formula(self.compares)

    @cached_property
    def published(self) -> Formula:
        """The paper's shape, its unspecified constant the symbol c."""
        return self.published_form()

    # -- uses

    @property
    def main_quantity(self) -> str:
        """What is meant where no quantity is named."""
        return "gap" if "gap" in self._forms else self.compares

    def checked(self, quantity: str | None = None, **values: float) -> Value:
        """The formula's value at a point, its upper end in interval arithmetic."""
        from boundcalc.base.intervals import INTERVAL, upper_float
        from boundcalc.formulas.symbolic.code import interval_function
        from boundcalc.setting import validate

        formula = self.formula(quantity or self.main_quantity)
        formula.mp(**values)  # complains about what is missing or unknown
        given = {symbol.name: value for symbol, value in formula._resolve(values).items()}
        exact: list[Any] = []
        for symbol in formula.inputs:
            value = float(given[symbol.name])
            if symbol.name == "delta":
                validate.fraction("delta", value, ends=False)
            exact.append(
                INTERVAL.number((validate.size if symbol.is_integer else validate.positive)(symbol.name, value))
            )
        value = upper_float(interval_function(formula)(*exact))
        what = self.of if self.of and quantity in (None, self.main_quantity) else formula.name.replace("_", " ")
        return Value.of(self.name, what, self.kind, value, formula.name, dict(values))

    @property
    def needed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The inputs of its values, and those that its search chooses unless they are given."""
        if self.sharper is not None:
            return tuple(self.defaults), self.chosen
        return tuple(symbol.name for symbol in self.formula(self.main_quantity).inputs), ()

    def values(self, **inputs: float) -> Sequence[Value]:
        """Values at a point, re-derived in interval arithmetic: by its own search, or of its formula."""
        return [self.checked(None, **inputs)] if self.sharper is None else self.sharper(**inputs)

    def latex(self, quantity: str | None = None, *, expand: bool = False) -> str:
        """A formula (the gap, unless named) as the content of a display."""
        return self.formula(quantity or self.main_quantity).latex(expand=expand)

    def lambdify(self, *names: str, quantity: str | None = None) -> Callable[..., Any]:
        """A NumPy function of the inputs named (all, in order, unless named)."""
        return self.formula(quantity or self.main_quantity).lambdify(*names)

    def code(self, language: str, quantity: str | None = None) -> str:
        """A formula in another language."""
        return self.formula(quantity or self.main_quantity).code(language)

    def cite(self) -> str:
        """BibTeX: the paper, and this library for the explicit constants."""
        return self.source.bibtex if self.source == HERE else f"{self.source.bibtex}\n\n{HERE.bibtex}"

    @property
    def bibtex(self) -> str:
        """BibTeX of the paper."""
        return self.source.bibtex

    def assumed(self) -> tuple[str, ...]:
        """What it assumes: what is said here, or what the statement that it is says."""
        if self.assumptions or not self.statement_name:
            return self.assumptions
        from boundcalc.base.theory import page

        return page()[self.statement_name].assumes

    def differences(self) -> tuple[str, ...]:
        """What the explicit formula and the paper do not share, in words."""
        return (*(f"In {_letter(name)}: {why}" for name, why in self.differs.items()), *self.also)

    def __str__(self) -> str:
        return f"{self.name} ({self.source.short}): {self.explicit.text()}"

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def _letter(name: str) -> str:
    """An input in prose: by its letter, where it is called as that."""
    from boundcalc.base.symbols import BY_NAME

    return f"${BY_NAME[name].latex}$" if name in BY_NAME and BY_NAME[name].latex.lstrip("\\") == name else name


QUANTITIES = (
    "gap",
    "covering_number",
    "rademacher",
    "sample_complexity",
    "capacity",
    "excess",
    "error",
    "best_error",
    "plain_error",
    "any_head_error",
    "input_size",
)
"""What formulas bound. An error is attention's: at given parameters, at the best of them, or in its plainest form; the
input size is the number of pairs at which it meets a target."""


def _elsewhere(quantity: str) -> str:
    return "The theorem edelman2022 has it." if quantity in ("rademacher", "sample_complexity", "capacity") else ""
