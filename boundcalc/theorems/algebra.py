"""SymPy as a number system of the calculus, and the two functions that formulas keep by name.

The same statements that give the numbers of `eval` give the formulas: they are evaluated in expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeVar

import sympy
from sympy.codegen.cfunctions import expm1

from boundcalc.statements.covers import CoverLemma, MatrixPerceptron
from boundcalc.statements.targets import Target

Expr = Any
"""A SymPy expression; SymPy annotates its own functions only in part, so they cannot be held to more."""
_LARGEST_ROOT = 1e6


def number(x: Any) -> Expr:
    """A constant as a person would write it: 0.1 is one tenth, and the square root of 2 is no fraction."""
    if isinstance(x, float):
        square = round(x * x) if 0 < x < _LARGEST_ROOT else 0
        if x != int(x) and square and math.sqrt(square) == x:
            return sympy.sqrt(square)
        exact = Fraction(repr(x))
        return sympy.Rational(exact.numerator, exact.denominator)
    return sympy.sympify(x)


# -- comparisons


def _at_least_one(x: Expr) -> bool:
    """Whether x >= 1 whatever its symbols are (False: not known)."""
    if x.is_number:
        return bool(x >= 1)
    if x.is_Symbol:
        return bool(x.is_integer and x.is_positive)
    if isinstance(x, sympy.Pow):
        base, power = x.as_base_exp()
        return bool(power.is_nonnegative) and _at_least_one(base)
    if isinstance(x, sympy.Mul):
        return all(_at_least_one(factor) for factor in x.args)
    if isinstance(x, sympy.Add):
        return any(_at_least_one(term) for term in x.args) and all(term.is_nonnegative for term in x.args)
    return False


_PROBES = (3, 7, 11)
_SIMPLE = 60
"""Differences of more operations than this are not worth asking SymPy's assumptions about."""


def probe(expr: Expr, salt: int) -> Expr:
    """The value at a point where symbols are unrelated primes over 211 (whole symbols: primes); 50 digits."""
    point: dict[Expr, Expr] = {}
    for index, symbol in enumerate(sorted(expr.free_symbols, key=str)):
        prime = sympy.Integer(sympy.prime(salt + 13 * index + 5))
        point[symbol] = prime if symbol.is_integer else prime / 211
    return expr.xreplace(point).evalf(50)


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal: identical, or of equal value to forty digits at unrelated points."""
    return a == b or all(abs(probe((a - b) / b, salt)) < sympy.Float("1e-40") for salt in _PROBES)


def known_le(a: Expr, b: Expr) -> bool:
    """Whether a <= b whatever the symbols are (False: not known)."""
    if a == b:
        return True
    difference = b - a
    if any(probe(difference, salt) < 0 for salt in _PROBES):
        return False
    if a.is_positive and _at_least_one(b / a):
        return True
    return difference.count_ops() < _SIMPLE and bool(difference.is_nonnegative)


_Any = TypeVar("_Any")


def undominated(xs: Iterable[_Any], dominates: Callable[[_Any, _Any], bool]) -> list[_Any]:
    """The items that no other item is known to dominate."""
    kept: list[_Any] = []
    for x in xs:
        if not any(dominates(other, x) for other in kept):
            kept = [*(other for other in kept if not dominates(x, other)), x]
    return kept


class SympySystem:
    """Expressions. A minimum is simplified where the assumptions of its symbols decide it.

    Attributes:
        relaxed: an undecided minimum becomes a number among its arguments, else the last budget among them, which
            is the one that is given. Radii, norms and gains enter a bound increasingly, so the result is an upper
            bound of the exact expression, with equality where that argument is the smallest.
    """

    name = "sympy"
    pi = sympy.pi
    number = staticmethod(number)
    log, exp, sqrt, ceil = (staticmethod(f) for f in (sympy.log, sympy.exp, sympy.sqrt, sympy.ceiling))
    lgamma = staticmethod(sympy.loggamma)

    def __init__(self, *, relaxed: bool = False) -> None:
        self.relaxed = relaxed

    @staticmethod
    def log1p(x: Any) -> Expr:
        return sympy.log(1 + sympy.sympify(x))

    @staticmethod
    def expm1(x: Any) -> Expr:
        return sympy.exp(x) - 1

    @staticmethod
    def lgamma_sum(x: Any, count: int) -> Expr:
        return sympy.Add(*(sympy.loggamma(x + i) for i in range(count)))

    def minimum(self, *xs: Any) -> Expr:
        kept = undominated(map(sympy.sympify, xs), known_le)
        simple = [x for x in kept if x.is_Symbol] + [x for x in kept if x.is_number] if self.relaxed else []
        return kept[0] if len(kept) == 1 else simple[-1] if simple else sympy.Min(*kept)

    @staticmethod
    def maximum(*xs: Any) -> Expr:
        kept = undominated(map(sympy.sympify, xs), lambda a, b: known_le(b, a))
        return kept[0] if len(kept) == 1 else sympy.Max(*kept)


SYMPY = SympySystem()

# -- functions with a name


class Named(sympy.Function):  # type: ignore[misc]
    """A positive function that formulas keep by its letter; `explicit` writes it out."""

    letter = ""

    def _eval_is_positive(self) -> bool:
        return True

    def _eval_evalf(self, prec: int) -> Expr:
        return self.explicit()._eval_evalf(prec)

    def explicit(self) -> Expr:
        """The function written out."""
        raise NotImplementedError

    @classmethod
    def definition(cls) -> tuple[Expr, Expr, str]:
        """It at letters, what it stands for, and LaTeX of what those letters stand for."""
        raise NotImplementedError

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        listed = r",\,".join(printer.doprint(arg) for arg in self.args)
        return f"{self.letter}{power}({listed})"


class LambdaT2(Named):
    """The constant of T2 for k columns and N points."""

    nargs = 2
    letter = r"\Lambda"

    def explicit(self) -> Expr:
        """Rho log((2Nk+1) rho^2/(rho-1)) at rho = 1 + 1/log(2Nk+1), from the lemma itself."""
        return MatrixPerceptron.constant(SYMPY, *self.args)

    @classmethod
    def definition(cls) -> tuple[Expr, Expr, str]:
        columns, points, wide, rho = (sympy.Symbol(name, positive=True) for name in ("q", "N", "w", "rho"))
        constant: Any = cls(columns, points)
        short = constant.explicit().subs(2 * points * columns + 1, wide).subs(1 + 1 / sympy.log(wide), rho)
        return constant, short, r"\rho = 1+1/\log w,\quad w = 2qN+1"


def written_out(expr: Expr) -> Expr:
    """Every function with a letter written out."""
    while expr.has(Named):
        expr = expr.replace(lambda e: isinstance(e, Named), lambda e: e.explicit())
    return expr


def cover_constant(lemma: CoverLemma, target: Target, points: Expr) -> Expr:
    """The lemma's closed cost at y = 1; the constant of T2 by its name."""
    if isinstance(lemma, MatrixPerceptron):
        return LambdaT2(target.k, points)
    return sympy.sympify(lemma.closed(SYMPY, sympy.S.One, target, points))


def geometric_sum(ratio: Expr, terms: Expr, one: Expr) -> tuple[Expr, Expr]:
    """sum_{i=1}^{terms} ratio^i as papers print it, and in a form that floating point can be trusted with near 1.

    `one`: what equals 1 when the ratio does.
    """
    printed = (ratio ** (terms + 1) - ratio) / (ratio - 1)
    log = sympy.log(ratio)
    stable = ratio * expm1(terms * log) / expm1(log)
    return (
        sympy.Piecewise((terms, sympy.Eq(one, 1)), (printed, True)),
        sympy.Piecewise((terms, sympy.Eq(log, 0)), (stable, True)),
    )
