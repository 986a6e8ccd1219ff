"""A theorem with its proof: the class, the statement, the steps and the lemmas they are based on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from boundcalc.base import prose, theory
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.theory import HERE, Entry, Source
from boundcalc.base.validate import choice
from boundcalc.theorems.formula import Definition, Formula
from boundcalc.theorems.printing import WIDE


class DerivationError(BoundcalcError):
    """A step of a derivation that does not hold."""


class Row(NamedTuple):
    """left <= right; the right side is an expression, or LaTeX of something that is none."""

    left: str
    relation: str
    right: Any


@dataclass(frozen=True)
class Step:
    """One step of a proof, its words in Markdown with LaTeX between dollars.

    Attributes:
        title: a few words.
        uses: names of the statements used.
        text: what they need, why it holds here, and what follows.
        rows: what follows, as displays.
        parts: named parts of the formula that this step introduces.
        children: the steps it is based on.
    """

    title: str
    uses: tuple[str, ...] = ()
    text: str = ""
    rows: tuple[Row, ...] = ()
    parts: tuple[Definition, ...] = ()
    children: tuple[Step, ...] = ()

    def walk(self, number: str) -> Iterator[tuple[str, Step]]:
        """This step and all it is based on, numbered 1, 1.1, 1.2, ..."""
        yield number, self
        for index, child in enumerate(self.children, 1):
            yield from child.walk(f"{number}.{index}")


@dataclass(frozen=True)
class Derivation:
    """A formula with its statement and its proof, all words in Markdown with LaTeX between dollars.

    Attributes:
        name: of the theorem.
        title: a few words.
        definition: the class, or other objects that the statement is about.
        claim: the statement up to its formula.
        formula: what is derived.
        remark: what follows the formula in the statement.
        proof: its steps.
        source: where the theorem is from.
        differences: how the paper has it, where that is otherwise.
        values: what was put into the formula; the steps stay general.
        stated_by: whose theorem it is, where it is a user's own, which is neither proved nor checked here.
    """

    name: str
    title: str
    definition: str
    claim: str
    formula: Formula
    remark: str = ""
    proof: tuple[Step, ...] = ()
    source: Source = HERE
    differences: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stated_by: str = ""

    def steps(self) -> list[tuple[str, Step]]:
        """All steps with their numbers, in reading order."""
        return [found for index, step in enumerate(self.proof, 1) for found in step.walk(str(index))]

    @cached_property
    def names(self) -> dict[Any, str]:
        """LaTeX of every named part."""
        return {part.symbol: part.latex for _, step in self.steps() for part in step.parts} | self.formula.names

    def statements(self) -> list[Entry]:
        """The statements used, in the order of the registry."""
        from boundcalc.statements.texts import STATEMENTS

        used = {name for _, step in self.steps() for name in step.uses}
        if unknown := sorted(used - set(STATEMENTS)):
            raise DerivationError(f"no statement is called {unknown[0]!r}")
        return [entry for name, entry in STATEMENTS.items() if name in used]

    def sources(self) -> list[Source]:
        """Every source that is cited, this library last; the sources of a user's own theorem are the user's."""
        cited = {} if self.stated_by else {self.source.key: self.source}
        for entry in self.statements():
            words = f"{theory.section(entry.name[0])} {entry.says} {entry.proof}"
            cited |= {source.key: source for source in (entry.source, *prose.cited(words))}
        cited.pop(HERE.key, None)
        return [*cited.values(), *([] if self.stated_by else [HERE])]

    def render(self, form: str = "text", *, detail: str = "brief", width: int = WIDE) -> str:
        """The derivation as text, markdown or a LaTeX article; brief: without lemmas and the details of steps."""
        from boundcalc.theorems import render

        choice("format", form, ("text", "markdown", "latex"))
        full = choice("detail", detail, ("brief", "full")) == "full"
        if form == "latex":
            return render.article(self, full=full)
        return render.text(self, full, width) if form == "text" else render.markdown(self, full)

    def _repr_markdown_(self) -> str:
        return self.render("markdown")


def derive(what: Any, quantity: str | None = None, values: Mapping[str, Any] | None = None) -> Derivation:
    """A theorem, by name or object, with its proof; `values` are put into the statement, the steps stay general."""
    from boundcalc.theorems import THEOREMS

    theorem = THEOREMS[choice("bound", what, THEOREMS)] if isinstance(what, str) else what
    values = values or {}
    if not hasattr(theorem, "formula"):
        raise InvalidSetting(f"derive takes a theorem, got {what!r}")
    chosen = quantity or theorem.main_quantity
    formula = theorem.formula(chosen, **theorem.given(values))
    steps: Callable[[Any, str, Formula], tuple[Step, ...]] = theorem.steps
    rest = {name: value for name, value in values.items() if name not in theorem.given(values)}
    return Derivation(
        theorem.name,
        theorem.title,
        theorem.definition({**theorem.given(values), **values}),
        theorem.claim(chosen),
        formula.with_values(**rest) if rest else formula,
        theorem.remark(chosen),
        steps(theorem.form, chosen, formula),
        theorem.source,
        theorem.differences(),
        values,
        theorem.stated_by,
    )
