"""Steps and trees of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.prose import plain
from boundcalc.base.sources import HERE, Source
from boundcalc.base.statement import Statement
from boundcalc.formulas.symbolic.formula import Definition, Formula


class DerivationError(BoundcalcError):
    """A step of a derivation that does not hold."""


@dataclass(frozen=True)
class Relation:
    """before <= after, or before = after.

    Attributes:
        before: left side; an expression, or LaTeX of something that is not one.
        sign: "le", "eq" or "ge".
        after: right side.
    """

    before: Any
    sign: str
    after: Any


@dataclass(frozen=True)
class Words:
    """A side of a relation that is no expression: what the class, the loss or the network does."""

    latex: str

    @property
    def text(self) -> str:
        """As a terminal shows it."""
        return plain(f"${self.latex}$")


@dataclass(frozen=True)
class Step:
    """One step. The mathematics in its words is marked, as in `boundcalc.base.prose`.

    Attributes:
        title: a few words.
        uses: names of the statements used.
        hypothesis: what these need, and why it holds here.
        relation: what follows.
        where: named parts that this step introduces.
        children: the steps it rests on.
    """

    title: str
    uses: tuple[str, ...]
    hypothesis: str
    relation: Relation | None = None
    where: tuple[Definition, ...] = ()
    children: tuple[Step, ...] = ()

    @property
    def defines(self) -> tuple[Definition, ...]:
        """The parts it introduces beside the one that its relation is about."""
        said = None if self.relation is None else self.relation.before
        return tuple(part for part in self.where if part.symbol != said)

    def walk(self, number: str = "") -> Iterator[tuple[str, Step]]:
        """This step and all it rests on, numbered 1, 1.1, 1.2, ..."""
        yield number, self
        for index, child in enumerate(self.children, 1):
            yield from child.walk(f"{number}.{index}" if number else str(index))


def last_step(formula: Formula, steps: Sequence[Step]) -> Step:
    """The formula itself, resting on the steps."""
    return Step(
        "the bound",
        (),
        "the last step with every part put in",
        Relation(Words(formula.latex_name), formula.relation, formula.expr),
        formula.where,
        tuple(steps),
    )


@dataclass(frozen=True)
class Derivation:
    """A formula and the tree of steps that lead to it. The mathematics in its words is marked.

    Attributes:
        name: of the theorem or policy.
        title: a few words.
        claim: what is proved, in words.
        formula: what is derived.
        assumptions: what is assumed, in words.
        root: the last step; its children lead to it.
        source: where the theorem is from.
        differences: what the paper has otherwise, in words.
        values: what was put into the formula at the end; the steps stay general.
        stated_by: whose word it is, where it is a theorem of one's own that is not derived here.
    """

    name: str
    title: str
    claim: str
    formula: Formula
    assumptions: tuple[str, ...]
    root: Step
    source: Source = HERE
    differences: tuple[str, ...] = field(default=())
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stated_by: str = ""

    @cached_property
    def names(self) -> Mapping[Any, str]:
        """LaTeX of every named part."""
        parts = [*self.formula.where, *(part for _, step in self.steps() for part in step.where)]
        return {part.symbol: part.latex for part in parts}

    def steps(self) -> list[tuple[str, Step]]:
        """All steps below the root with their numbers, in reading order; the root last."""
        found = [(number, step) for number, step in self.root.walk() if number]
        return [*found, ("", self.root)]

    def statements(self) -> list[Statement]:
        """The statements used, in the order of the registry."""
        from boundcalc.statements.texts import STATEMENTS

        used = {name for _, step in self.steps() for name in step.uses}
        unknown = used - set(STATEMENTS)
        if unknown:
            raise DerivationError(f"no statement is called {sorted(unknown)[0]!r}")
        return [statement for name, statement in STATEMENTS.items() if name in used]

    def render(self, form: str, *, steps: str = "full", fragment: bool = False) -> str:
        """The derivation as text, markdown or latex."""
        from boundcalc.formulas.derivation.render import render

        return render(self, form, steps=steps, fragment=fragment)

    def _repr_markdown_(self) -> str:
        return self.render("markdown", steps="brief")
