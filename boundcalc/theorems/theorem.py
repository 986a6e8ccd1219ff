"""A published theorem as an object: its shape, our explicit constants, what is assumed and what differs.

Creating one imports nothing heavy; sympy is imported when a formula is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boundcalc.errors import Refusal, Unsupported
from boundcalc.setting.validate import choice
from boundcalc.sources import HERE, Source

if TYPE_CHECKING:
    from boundcalc.symbolic.formula import Formula

Forms = Mapping[str, Callable[[], "Formula"]]


@dataclass(frozen=True)
class Theorem:
    """A named theorem.

    Attributes:
        name: on the command line and in `boundcalc.theorems`.
        title: a few words.
        source: the paper.
        statement: what it says, in words.
        assumptions: what it assumes, in words.
        published_note: what the paper leaves open (its constant), in words.
        compares: the quantity whose published shape is given ("gap" or "covering_number").
        differs: per input, why the explicit formula does not grow like the published shape.
        also: further differences from the paper.
        uses: statements of the calculus the explicit formula rests on.
        policy: the policy of `boundcalc eval` that goes with it, if any.
        published_form: builds the published shape.
        forms: builds what derives the explicit formulas (a form of `boundcalc.symbolic`, or None), and them by name.
        kind: "bound", or "proxy".
    """

    name: str
    title: str
    source: Source
    statement: str
    assumptions: tuple[str, ...]
    published_note: str
    compares: str
    differs: Mapping[str, str]
    also: tuple[str, ...]
    uses: tuple[str, ...]
    published_form: Callable[[], Formula] = field(repr=False)
    forms: Callable[[], tuple[Any, Forms]] = field(repr=False)
    policy: str | None = None
    kind: str = "bound"
    _made: dict[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

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
        """What derives the formulas: a form of `boundcalc.symbolic`, or None where there is no network."""
        return self._built[0]

    @property
    def _built(self) -> tuple[Any, Forms]:
        if "forms" not in self._made:
            self._made["forms"] = self.forms()
        return self._made["forms"]

    def formula(self, quantity: str = "gap") -> Formula:
        """One of the explicit formulas."""
        if quantity in _QUANTITIES and quantity not in self._forms:
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

    @property
    def published(self) -> Formula:
        """The paper's shape, its unspecified constant the symbol c."""
        if "published" not in self._made:
            self._made["published"] = self.published_form()
        return self._made["published"]

    # -- uses

    def _default(self) -> str:
        return "gap" if "gap" in self._forms else self.compares

    def latex(self, quantity: str | None = None, *, expand: bool = False) -> str:
        """A formula (the gap, unless named) as the content of a display."""
        return self.formula(quantity or self._default()).latex(expand=expand)

    def lambdify(self, *names: str, quantity: str | None = None) -> Callable[..., Any]:
        """A NumPy function of the inputs named (all, in order, unless named)."""
        return self.formula(quantity or self._default()).lambdify(*names)

    def code(self, language: str, quantity: str | None = None) -> str:
        """A formula in another language."""
        return self.formula(quantity or self._default()).code(language)

    def cite(self) -> str:
        """BibTeX: the paper, and this library for the explicit constants."""
        return self.source.bibtex if self.source == HERE else f"{self.source.bibtex}\n\n{HERE.bibtex}"

    @property
    def bibtex(self) -> str:
        """BibTeX of the paper."""
        return self.source.bibtex

    def differences(self) -> tuple[str, ...]:
        """What the explicit formula and the paper do not share, in words."""
        return (*(f"In {name}: {why}" for name, why in self.differs.items()), *self.also)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


_QUANTITIES = ("gap", "covering_number", "rademacher", "sample_complexity", "capacity", "excess")


def _elsewhere(quantity: str) -> str:
    return "The theorem edelman2022 has it." if quantity in ("rademacher", "sample_complexity", "capacity") else ""
