"""Laws of theorems as objects: explicit formulas against their directions, their limits and the published shape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from flint import arb, ctx

from boundcalc.theorems import Theorem
from boundcalc.theorems._code import at
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.symbols import ALIASES, BY_NAME, ENTRIES

_FALLING = frozenset({"m", "gamma", "epsilon", "delta", "L", "temperature"})
"""Inputs in which bounds fall; in all others they rise."""
_UNORDERED = frozenset({"smoothness", "rho"})
"""A power has no direction, nor has a regularisation: they trade one size for another."""
_SINGLE_VALUED = frozenset({"delta", "smoothness"})
"""Inputs that do not go to infinity, or whose exponential drowns everything else."""
_MIDDLE: dict[str, Any] = {name: sum(entry.typical) / 2 for name, entry in BY_NAME.items()}
_MIDDLE |= {"depth": 3, "d": 64, "heads": 2, "m": 10**6}


def value_at(formula: Formula, **values: Any) -> arb:
    """A formula at middling values but for those given, in 300 digits."""
    with ctx.workprec(1024):
        return at(formula, {symbol: arb((_MIDDLE | values)[symbol.name]) for symbol in formula.inputs})


def rises(formula: Formula, name: str) -> bool:
    """Whether a formula never moves against the direction it should, over some steps of one input."""
    low, high = BY_NAME[name].typical
    steps = [low + (high - low) * i / 8 for i in range(9)]
    if BY_NAME[name].symbol.is_integer:
        steps = sorted({int(step) for step in steps} - {0})
    values = [value_at(formula, **{name: step}) for step in (reversed(steps) if name in _FALLING else steps)]
    return all(b >= a * (1 - arb("1e-28")) for a, b in pairwise(values))


def grows_as_published(theorem: Theorem, name: str) -> bool:
    """Whether the quotient of the explicit formula and the published shape tends to a constant in one input."""

    def quotient(x: arb) -> arb:
        return value_at(theorem.explicit, **{name: x}) / value_at(theorem.published, **{name: x})

    far = arb(1000) if name == "depth" else arb(10) ** 10**6
    return bool(abs((quotient(far**2) / quotient(far)).log()) < 0.02)


# -- the laws: what is wrong with a theorem


def is_in_words(theorem: Theorem) -> Iterator[str]:
    """Title, assumptions, what the paper leaves open, why shapes differ, and statements that exist."""
    if not (theorem.name and theorem.title and theorem.statement and theorem.assumed() and theorem.published_note):
        yield "it needs a name, a title, a statement, assumptions and a note on the published form"
    yield from (f"says {why!r} of the difference in {name}" for name, why in theorem.differs.items() if len(why) <= 10)
    if not theorem.cite().startswith("@"):
        yield "it cannot be cited"
    if not theorem.uses():
        yield "it is based on nothing"


def inputs_have_a_meaning(theorem: Theorem) -> Iterator[str]:
    """Every symbol of every formula is one of the library's."""
    for formula in (*map(theorem.formula, theorem.quantities), theorem.published):
        yield from (f"{symbol} has no meaning" for symbol in set(formula.inputs) - {entry.symbol for entry in ENTRIES})


def formulas_move_the_way_they_should(theorem: Theorem) -> Iterator[str]:
    """Bounds fall with samples and slack, and rise with sizes; covering numbers rise with the sample."""
    for quantity, formula in zip(theorem.quantities, map(theorem.formula, theorem.quantities), strict=True):
        for name in {symbol.name for symbol in formula.inputs} - _UNORDERED:
            if (quantity, name) != ("covering_number", "m") and not rises(formula, name):
                yield f"{quantity} moves the wrong way in {name}"


def limits_are_right(theorem: Theorem) -> Iterator[str]:
    """The gap is positive and vanishes with the sample; the log covering number at a coarse scale."""
    if "gap" in theorem.quantities and not 0 < value_at(theorem.gap, m="1e4000") < 1e-100:
        yield "the gap does not vanish with the sample"
    coarse = {"epsilon": "1e60", "depth": 1}
    if "covering_number" in theorem.quantities and not value_at(theorem.covering_number, **coarse) < 1e-30:
        yield "a coarse cover is not small"


def grows_as_published_but_where_words_say_why(theorem: Theorem) -> Iterator[str]:
    """Input by input, and `differs` names nothing that does not differ."""
    explicit, published = ({symbol.name for symbol in f.inputs} for f in (theorem.explicit, theorem.published))
    published -= {"c"}
    for name in (explicit ^ published) - _SINGLE_VALUED - theorem.differs.keys():
        yield f"{name} is in one of the formulas only, and nothing says why"
    for name in theorem.differs:
        if ALIASES.get(name, name) not in explicit | published:
            yield f"{name} is said to differ and is in neither formula"
    for name in (explicit & published) - _SINGLE_VALUED:
        if grows_as_published(theorem, name) == (name in theorem.differs):
            yield f"the formulas grow {'alike' if name in theorem.differs else 'otherwise'} in {name}"


_LAWS = (
    is_in_words,
    inputs_have_a_meaning,
    formulas_move_the_way_they_should,
    limits_are_right,
    grows_as_published_but_where_words_say_why,
)


def check_theorem(theorem: Theorem) -> None:
    """Raises what is wrong with a theorem."""
    complaints = [f"{law.__name__}: {says}" for law in _LAWS for says in law(theorem)]
    assert not complaints, "\n".join(complaints)
