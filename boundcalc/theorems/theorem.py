"""A theorem of a paper: hypotheses, statement, formulas, proof, differences from the paper, citation.

Creating one imports nothing heavy; SymPy is imported when a formula is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.theory import HERE, Source
from boundcalc.base.validate import choice
from boundcalc.base.value import Value
from boundcalc.theorems.policies import Policy

if TYPE_CHECKING:
    from boundcalc.setting import Setting
    from boundcalc.theorems._formula import Formula

QUANTITIES = (
    "gap",
    "covering_number",
    "rademacher",
    "excess",
    "error",
    "best_error",
    "plain_error",
    "any_head_error",
)
"""What formulas bound. An error is attention's: at given parameters, at the best of them, or in its plainest form."""


@dataclass(frozen=True)
class Step:
    """One step of a proof, its words in Markdown with LaTeX between dollars.

    Attributes:
        title: a few words.
        uses: names of the statements used.
        text: what they need, why it holds here, and what follows.
        of: the quantities whose proof has it; all, unless named.
    """

    title: str
    uses: tuple[str, ...] = ()
    text: str = ""
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Theorem:
    """A named theorem. The mathematics in its words is LaTeX between dollars, as in `boundcalc.theorems.prose`.

    Attributes:
        name: on the command line and in `boundcalc.theorems`.
        title: a few words.
        source: the paper.
        statement: what it promises, in a sentence.
        published_note: what the paper leaves open (its constant), in words.
        compares: the quantity whose published shape is given ("gap" or "covering_number").
        published_form: builds the published shape.
        forms: builds the explicit formulas, by quantity.
        assumptions: what it assumes, in words.
        definition: the class, for values that are put in.
        claims: per quantity what the statement says before its formula, and after it.
        proof: the steps.
        differs: per input, why the explicit formula does not grow like the published shape.
        also: further differences from the paper.
        of: what the quantity it is about is, where its name does not say.
        statement_name: the statement of the calculus it is, if it is one.
        lemmas: the covers by which `boundcalc eval` bounds the gap of any setting; None where the theorem is not about
            the gap of a setting.
        search: how it goes about it, as `Policy.form`.
        network: whether it is about the networks of preset edelman alone.
        builds: inputs that the formula is built for, with their default: they are numbers in it.
        defaults: values of inputs that `boundcalc eval` assumes, where the theorem is not about a setting.
        evaluates: quantities whose values `boundcalc eval` shows, those whose inputs are given; the main one unless
            named.
        at_most_1: expressions of the inputs that its hypotheses bound by 1, by their letters.
        kind: of its values.
        stated_by: whose theorem it is, where it is a user's own and neither proved nor checked here.
    """

    name: str
    title: str
    source: Source
    statement: str
    published_note: str
    compares: str
    published_form: Callable[[], Formula] = field(repr=False)
    forms: Mapping[str, Callable[..., Formula]] = field(repr=False)
    assumptions: tuple[str, ...] = ()
    definition: Callable[[Mapping[str, Any]], str] = field(default=lambda values: "", repr=False)
    claims: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]], repr=False)
    proof: tuple[Step, ...] = field(default=(), repr=False)
    differs: Mapping[str, str] = field(default_factory=dict[str, str])
    also: tuple[str, ...] = ()
    of: str = ""
    statement_name: str = ""
    lemmas: frozenset[str] | None = None
    search: str = "search"
    network: bool = False
    builds: Mapping[str, int] = field(default_factory=dict[str, int])
    defaults: Mapping[str, float] = field(default_factory=dict[str, float])
    evaluates: tuple[str, ...] = ()
    at_most_1: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: str = "bound"
    stated_by: str = ""

    @property
    def policy(self) -> Policy | None:
        """The rule by which `boundcalc eval` bounds the gap of a setting, if the theorem is about one."""
        if self.lemmas is None:
            return None
        return Policy(self.name, self.title, self.lemmas, self.search)

    # -- formulas

    @cached_property
    def _built(self) -> dict[tuple[Any, ...], Formula]:
        return {}

    @property
    def quantities(self) -> tuple[str, ...]:
        """What there are explicit formulas of."""
        return tuple(self.forms)

    @property
    def main_quantity(self) -> str:
        """The quantity that commands show where none is named."""
        return "gap" if "gap" in self.quantities else self.compares

    def built_values(self, values: Mapping[str, Any]) -> dict[str, int]:
        """The values of `builds`."""
        return {name: int(values.get(name, default)) for name, default in self.builds.items()}

    def formula(self, quantity: str | None = None, **built: int) -> Formula:
        """One of the explicit formulas (the main one, unless named)."""
        quantity = quantity or self.main_quantity
        values = self.built_values(built)
        key = (choice("quantity", quantity, self.forms), *values.items())
        if key not in self._built:
            self._built[key] = self.forms[quantity](**values)
        return self._built[key]

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

    def checked(self, quantity: str | None = None, **values: float) -> Value:
        """The formula's value at a point, its upper end in ball arithmetic."""
        from boundcalc.base import validate
        from boundcalc.base.intervals import upper_float
        from boundcalc.theorems.symbols import BY_NAME

        formula = self.formula(quantity, **{name: int(values[name]) for name in self.builds if name in values})
        rest = {name: value for name, value in values.items() if name not in self.builds}
        for symbol, value in formula.resolve(rest).items():
            if symbol.name in BY_NAME and symbol.is_integer:
                validate.size(symbol.name, float(value))
        self._check_hypotheses(values)
        what = self.of if self.of and quantity in (None, self.main_quantity) else formula.name.replace("_", " ")
        return Value.of(self.name, what, self.kind, upper_float(formula.ball(**rest)), formula.name, dict(values))

    def _check_hypotheses(self, values: Mapping[str, float]) -> None:
        from boundcalc.theorems._algebra import parse

        products = {letters: float(parse(text, values)) for letters, text in self.at_most_1.items()}
        if any(product > 1 for product in products.values()):
            shown = " and ".join(f"{letters} = {product:g}" for letters, product in products.items())
            raise InvalidSetting(f"{self.name} does not hold here: {shown} must be at most 1")

    def _inputs(self, quantity: str) -> tuple[str, ...]:
        return (*self.builds, *(symbol.name for symbol in self.formula(quantity).inputs))

    @property
    def needed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The inputs of its values, and those that may be left out."""
        names = [self._inputs(q) for q in self.evaluates or (self.main_quantity,)]
        order = [*self.defaults, *names[0]]
        always = tuple(dict.fromkeys(name for name in order if all(name in other for other in names)))
        return always, tuple(dict.fromkeys(name for other in names for name in other if name not in always))

    def values(self, **inputs: float) -> Sequence[Value]:
        """Values at a point, of the formulas whose inputs are given."""
        quantities = self.evaluates or (self.main_quantity,)
        names = {q: self._inputs(q) for q in quantities}
        chosen = [q for q in quantities if set(names[q]) <= inputs.keys()] or [quantities[-1]]
        return [self.checked(q, **{name: inputs[name] for name in names[q] if name in inputs}) for q in chosen]

    def cite(self) -> str:
        """BibTeX: the paper, and this library for the explicit constants."""
        return self.source.bibtex if self.source == HERE else f"{self.source.bibtex}\n\n{HERE.bibtex}"

    # -- words

    def steps(self, quantity: str | None = None) -> tuple[Step, ...]:
        """The proof of one of its formulas."""
        return tuple(step for step in self.proof if not step.of or (quantity or self.main_quantity) in step.of)

    def uses(self, quantity: str | None = None) -> list[str]:
        """The statements of the calculus that the proof of one of its formulas is based on."""
        from boundcalc.statements.texts import STATEMENTS

        return sorted({name for step in self.steps(quantity) for name in step.uses}, key=[*STATEMENTS].index)

    def assumed(self) -> tuple[str, ...]:
        """What it assumes: its own words, or those of the statement that it is."""
        if self.assumptions or not self.statement_name:
            return self.assumptions
        from boundcalc.base.theory import page

        return page()[self.statement_name].assumes

    def differences(self) -> tuple[str, ...]:
        """What the explicit formula and the paper do not share, in words."""
        return (*(f"In {_letter(name)}: {why}" for name, why in self.differs.items()), *self.also)


def field_value(setting: Setting, field: str) -> float:
    """What a setting gives an input of a formula, by the field that the input stands for."""
    if field == "C":
        if setting.norms.C is None or setting.norms.budgets:
            raise InvalidSetting(
                "the formula has one C for every matrix, and the setting has budgets of its own: say what C is "
                "(values={'C': 2} of a bound of your own)"
            )
        return setting.norms.C
    if field == "temperature":
        return setting.architecture.normaliser.temperature or 1.0
    return getattr(setting.sample if hasattr(setting.sample, field) else setting.architecture, field)


def _letter(name: str) -> str:
    """An input in prose: by its letter, where it is called as that."""
    from boundcalc.theorems.symbols import BY_NAME

    return f"${BY_NAME[name].latex}$" if name in BY_NAME and BY_NAME[name].latex.lstrip("\\") == name else name
