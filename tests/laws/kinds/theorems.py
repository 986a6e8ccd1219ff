"""Laws of theorems as objects: explicit formulas against their directions, their limits and the published shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import mpmath
from flint import arb, ctx
from mpmath import mpf

from boundcalc.base.theory import page
from boundcalc.testing._report import Cases, Report, judge
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
_DIGITS = 40
_FAR = mpf(10) ** (10**6)
_COUNTS_SAMPLES = ("capacity", "covering_number", "sample_complexity")
"""Quantities that count m samples: they rise with m, slowly."""

Values = Mapping[str, Any]


def typical(formula: Formula, **values: Any) -> dict[str, Any]:
    """Middling values of every input, but for those given."""
    middle = {name: mpf(sum(entry.typical)) / 2 for name, entry in BY_NAME.items()}
    middle |= {
        "depth": mpf(3),
        "d": mpf(64),
        "heads": mpf(2),
        "m": mpf(10) ** 6,
    }
    chosen = middle | {name: mpf(value) for name, value in values.items()}
    return {symbol.name: chosen[symbol.name] for symbol in formula.inputs}


def value_at(formula: Formula, **values: Any) -> Any:
    """A formula at middling values but for those given, in 40 digits."""
    with mpmath.workdps(_DIGITS):
        with ctx.workprec(1024):
            point = {name: arb(mpmath.nstr(value, _DIGITS)) for name, value in typical(formula, **values).items()}
            found = at(formula, {symbol: point[symbol.name] for symbol in formula.inputs})
        return mpf(found.mid().str(_DIGITS, radius=False))


def rises(formula: Formula, name: str, values: Values) -> bool:
    """Whether a formula never moves against the direction it should, over some steps of one input."""
    sign = -1 if name in _FALLING else 1
    low, high = BY_NAME[name].typical
    steps = [low + (high - low) * mpf(i) / 8 for i in range(9)]
    if BY_NAME[name].symbol.is_integer:
        steps = sorted({mpmath.floor(step) for step in steps} - {mpf(0)})
    found = [value_at(formula, **(dict(values) | {name: step})) for step in steps]
    return all(sign * (b - a) >= -(mpf(10) ** -28) * abs(a) for a, b in pairwise(found))


def _formulas(theorem: Theorem) -> Iterator[tuple[str, Formula]]:
    for quantity in theorem.quantities:
        yield quantity, theorem.formula(quantity)


def is_in_words(theorem: Theorem, values: Values) -> str | None:
    """Title, assumptions, what the paper leaves open, why shapes differ, and statements that exist."""
    del values
    if not (theorem.name and theorem.title and theorem.statement and theorem.assumed() and theorem.published_note):
        return "it needs a name, a title, a statement, assumptions and a note on the published form"
    short = [name for name, why in theorem.differs.items() if len(why) <= 10]
    if short:
        return f"it says {theorem.differs[short[0]]!r} of the difference in {short[0]}"
    if not theorem.cite().startswith("@"):
        return "it cannot be cited"
    unknown = [name for name in theorem.uses if name not in page()]
    return f"no statement is called {unknown[0]!r}" if unknown else None if theorem.uses else "it rests on nothing"


def inputs_have_a_meaning(theorem: Theorem, values: Values) -> str | None:
    """Every symbol of every formula is one of the library's."""
    del values
    known = {entry.symbol for entry in ENTRIES}
    for quantity, formula in [*_formulas(theorem), ("published", theorem.published)]:
        unknown = set(formula.inputs) - known
        if unknown:
            return f"{quantity} has the symbol {sorted(map(str, unknown))[0]}, which has no meaning"
    return None


def formulas_move_the_way_they_should(theorem: Theorem, values: Values) -> str | None:
    """Bounds fall with samples and slack, and rise with sizes."""
    for quantity, formula in _formulas(theorem):
        for symbol in formula.inputs:
            name = symbol.name
            if name in _UNORDERED or (quantity in _COUNTS_SAMPLES and name == "m"):
                continue
            if not rises(formula, name, {key: value for key, value in values.items() if key != name}):
                return f"{quantity} moves the wrong way in {name}"
    return None


def the_gap_vanishes_with_the_sample(theorem: Theorem, values: Values) -> str | None:
    """And is positive."""
    if "gap" not in theorem.quantities:
        return None
    far = value_at(theorem.gap, **(dict(values) | {"m": "1e4000"}))
    return None if 0 < far < mpf("1e-100") else f"at m = 1e4000 the gap is {mpmath.nstr(far, 5)}"


def a_coarse_cover_is_small(theorem: Theorem, values: Values) -> str | None:
    """The covering number tends to one centre."""
    if "covering_number" not in theorem.quantities:
        return None
    formula = theorem.covering_number
    if "epsilon" not in {symbol.name for symbol in formula.inputs}:
        return None  # a finite class: the same at every scale
    coarse = value_at(formula, **(dict(values) | {"epsilon": "1e60", "depth": 1}))
    return None if coarse < mpf("1e-30") else f"at epsilon = 1e60 it is {mpmath.nstr(coarse, 5)}"


def _growth(formula: Formula, name: str) -> tuple[Any, Any]:
    """(power, power of the logarithm): how f grows with x far out; in the depth (rate per block, power)."""
    x = mpf(1000) if name == "depth" else _FAR
    f = [mpmath.log(value_at(formula, **{name: y})) for y in (x, x**2, x**4)]
    power = (f[2] - f[1]) / (2 * mpmath.log(x))
    if name == "depth":
        rate = (f[1] - f[0]) / (x**2 - x)
        return (rate, mpf(0)) if abs(rate) > mpf("0.001") else (mpf(0), power)
    return (mpf(0), (f[2] - f[1]) / mpmath.log(2)) if abs(power) < mpf("0.001") else (power, mpf(0))


def _slowly(formula: Formula, name: str, power: Any) -> Any:
    """The power of the logarithm beside a known power of x."""
    f = [mpmath.log(value_at(formula, **{name: y})) - power * mpmath.log(y) for y in (_FAR, _FAR**2)]
    return (f[1] - f[0]) / mpmath.log(2)


def grows_as_published(theorem: Theorem, name: str) -> bool:
    """Whether the explicit formula and the published shape grow alike in one input."""
    explicit, published = theorem.explicit, theorem.published
    with mpmath.workdps(_DIGITS):
        a, b = _growth(explicit, name), _growth(published, name)
        if any(abs(x - y) >= mpf("0.02") for x, y in zip(a, b, strict=True)):
            return False
        power = mpmath.nint(b[0] * 12) / 12  # the shapes have powers that are multiples of 1/2 or 1/3
        if name == "depth" or abs(b[0]) < mpf("0.001") or abs(power - b[0]) > mpf("1e-5"):
            return True
        return bool(abs(_slowly(explicit, name, power) - _slowly(published, name, power)) < mpf("0.02"))


def grows_as_published_but_where_words_say_why(theorem: Theorem, values: Values) -> str | None:
    """Input by input, and `differs` names nothing that does not differ."""
    del values
    explicit = {symbol.name for symbol in theorem.explicit.inputs}
    published = {symbol.name for symbol in theorem.published.inputs} - {"c"}
    for lost in (explicit ^ published) - _SINGLE_VALUED:
        if lost not in theorem.differs:
            return f"{lost} is in one of the formulas only, and nothing says why"
    for stated in theorem.differs:
        if ALIASES.get(stated, stated) not in explicit | published:
            return f"{stated} is said to differ and is in neither formula"
    for shared in (explicit & published) - _SINGLE_VALUED:
        if grows_as_published(theorem, shared) == (shared in theorem.differs):
            return f"the formulas grow {'alike' if shared in theorem.differs else 'otherwise'} in {shared}"
    return None


LAWS = (
    is_in_words,
    inputs_have_a_meaning,
    formulas_move_the_way_they_should,
    the_gap_vanishes_with_the_sample,
    a_coarse_cover_is_small,
    grows_as_published_but_where_words_say_why,
)


def _refuses(theorem: Theorem, what: str | Values) -> str | None:
    """A quantity it has not, or values of its main formula that make no sense."""
    if isinstance(what, str):
        theorem.formula(what)
    else:
        theorem.checked(**what)
    return None


def check_theorem(theorem: Theorem, cases: Cases[Theorem, Values]) -> Report:
    """Tries every law at values of some inputs (the others are middling ones; {} will do)."""
    return judge(f"theorem {theorem.name}", theorem, cases, LAWS, _refuses)
