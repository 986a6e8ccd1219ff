"""Checking a derivation: inequalities in interval arithmetic at random points, equalities symbolically."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import sympy
from flint import arb

from boundcalc.base import symbols
from boundcalc.base.intervals import INTERVAL
from boundcalc.base.prose import plain
from boundcalc.formulas.derivation.step import Derivation, DerivationError, Step
from boundcalc.formulas.symbolic.code import interval_function
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.system import probe

_SLACK = arb("1e-25")
"""Two sides that are equal in mathematics differ by the width of their enclosures."""


@dataclass(frozen=True)
class Report:
    """What a check did.

    Attributes:
        steps: how many there are.
        inequalities: how many were tested at random points.
        equalities: how many were tested symbolically.
        points: how many points in all.
        unchecked: the steps that say something and have no test of their own.
    """

    steps: int
    inequalities: int
    equalities: int
    points: int
    unchecked: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = (
            f"{self.steps} steps: {self.inequalities} inequalities held at {self.points} random points in all "
            f"(intervals), {self.equalities} equalities held symbolically"
        )
        if not self.unchecked:
            return text
        several = f"{len(self.unchecked)} steps have" if len(self.unchecked) > 1 else "1 step has"
        return f"{text}; {several} no check of their own: {', '.join(self.unchecked)}"


def check(derivation: Derivation, *, points: int = 20, seed: int = 0) -> Report:
    """Every trial of every step at so many points, and every identity."""
    random = Random(seed)
    inequalities = equalities = tested = 0
    steps = derivation.steps()
    derivation.statements()  # refuses statements that do not exist
    _is_the_last_step(derivation, random)
    for number, step in steps:
        for trial in step.trials:
            inequalities += 1
            for _ in range(points):
                tested += 1
                _test(number, step, *trial(random))
        for identity in step.identities:
            equalities += 1
            _equal(number, step, *identity())
    tested_here = [step for _, step in steps if step.trials or step.identities]
    said = [step.relation.after for step in tested_here if step.relation is not None]
    unchecked = tuple(
        f"{number or 'the last'} ({plain(step.title)})"
        for number, step in steps
        if step.relation is not None and step not in tested_here and not any(step.relation.after is x for x in said)
    )
    return Report(len(steps), inequalities, equalities, tested, unchecked)


def _is_the_last_step(derivation: Derivation, random: Random) -> None:
    """The formula is what the last step says, at a random point."""
    said = derivation.root.relation
    if said is None or not isinstance(said.after, sympy.Expr):
        raise DerivationError("the last step says nothing about the formula")
    general = Formula("last step", said.after, derivation.root.where)
    fixed = {str(symbol): value for symbol, value in general._resolve(derivation.values).items()}
    point = random_point(general, random, {name: float(value) for name, value in fixed.items()})
    here, there = on_intervals(derivation.formula)(point), on_intervals(general)(point)
    if not here.overlaps(there + _SLACK * abs(there) * arb(0, 1)):
        raise DerivationError(f"the formula is not what the last step says: {here} is not {there}")


def _name(number: str, step: Step) -> str:
    return f"step {number} ({plain(step.title)})" if number else f"the last step ({plain(step.title)})"


def _test(number: str, step: Step, less: Any, more: Any) -> None:
    less, more = arb(less), arb(more)
    if not (less.is_finite() and more.is_finite()):
        raise DerivationError(f"{_name(number, step)}: a side is not finite: {less} <= {more}")
    if not bool(less <= more + _SLACK * abs(more)):
        raise DerivationError(f"{_name(number, step)} fails at a random point: {less} <= {more} is false")


def _equal(number: str, step: Step, left: Any, right: Any) -> None:
    if not identical(left, right):
        raise DerivationError(f"{_name(number, step)}: {left} = {right} does not simplify to an identity")


LARGE = 300
"""Operations beyond which cancelling and simplifying may take for ever (how long depends on the order of hashes)."""


def identical(left: Any, right: Any) -> bool:
    """Whether two expressions are equal, by simplification; False also where that would take too long."""
    difference = sympy.sympify(left) - sympy.sympify(right)
    quick: tuple[Callable[[Any], Any], ...] = (
        lambda e: e,
        sympy.expand,
        lambda e: sympy.powsimp(sympy.expand(sympy.expand_power_base(e, force=True)), force=True),
    )
    if any(attempt(difference) == 0 for attempt in quick):
        return True
    if difference.count_ops() > LARGE or _apart(difference):
        return False
    return bool(sympy.cancel(sympy.together(difference)) == 0 or sympy.simplify(difference) == 0)


def _apart(difference: Any) -> bool:
    """Whether a difference is certainly not 0: it has a value at some point, far from 0."""
    value = probe(difference, 3)
    return bool(value.is_number and value.is_finite and abs(value) > sympy.Float("1e-20"))


def random_point(formula: Formula, random: Random, fixed: dict[str, Any] | None = None) -> dict[str, arb]:
    """A random admissible value of every input."""
    point: dict[str, arb] = {}
    for symbol in formula.inputs:
        if fixed and symbol.name in fixed:
            point[symbol.name] = arb(fixed[symbol.name])
            continue
        entry = symbols.BY_NAME.get(symbol.name)
        low, high = entry.typical if entry else (0.5, 4.0)
        value = low * (high / low) ** random.random() if low > 0 else random.uniform(low, high)
        point[symbol.name] = INTERVAL.number(round(value) if symbol.is_integer else value)
    return point


def random_vector(random: Random, size: int = 3) -> list[arb]:
    """Normal entries."""
    return [arb(random.gauss(0, 1)) for _ in range(size)]


def norm(x: Iterable[arb]) -> arb:
    """The length of a vector."""
    return sum((value**2 for value in x), arb(0)).sqrt()


def on_intervals(formula: Formula) -> Callable[[dict[str, arb]], arb]:
    """A formula as a function of enclosures."""
    function = interval_function(formula)
    return lambda point: function(*(point[symbol.name] for symbol in formula.inputs))
