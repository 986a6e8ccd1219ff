"""Sympy as a number system of the calculus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import sympy

Expr = Any
"""A sympy expression; sympy annotates its own functions only in part, so they cannot be held to more."""


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
        ones = [term for term in x.args if _at_least_one(term)]
        return bool(ones) and all(term.is_nonnegative for term in x.args)
    return False


_PROBES = (3, 7, 11)
_SIMPLE = 60
"""Differences of more operations than this are not worth asking sympy's assumptions about."""


def probe(expr: Expr, salt: int) -> Expr:
    """The value at a point where symbols are unrelated primes over 1009 (whole symbols: primes); 50 digits."""
    point: dict[Expr, Expr] = {}
    for index, symbol in enumerate(sorted(expr.free_symbols, key=str)):
        prime = sympy.Integer(sympy.prime(salt + 13 * index + 5))
        point[symbol] = prime if symbol.is_integer else prime / 211
    return expr.xreplace(point).evalf(50)


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal: identical, or of equal value to forty digits at unrelated points."""
    if a == b:
        return True
    difference = (a - b) / b
    return all(abs(probe(difference, salt)) < sympy.Float("1e-40") for salt in _PROBES)


Order = tuple[sympy.Symbol, ...]
"""Symbols each of which is assumed to be at most the next."""


def _ordered(expr: Expr, order: Order) -> Expr:
    """An expression with every ordered symbol as a multiple, by at least 1, of the one before."""
    grown: dict[Expr, Expr] = {}
    for small, large in pairwise(order):
        more = sympy.Symbol(f"more_{large}", positive=True)
        grown[large] = grown.get(small, small) * (1 + more)
    return expr.xreplace(grown)


def known_le(a: Expr, b: Expr, order: Order = ()) -> bool:
    """Whether a <= b whatever the symbols are (False: not known)."""
    if a == b:
        return True
    a, b = _ordered(a, order), _ordered(b, order)
    difference = b - a
    if any(probe(difference, salt) < 0 for salt in _PROBES):
        return False
    if a.is_positive and _at_least_one(b / a):
        return True
    return difference.count_ops() < _SIMPLE and bool(difference.is_nonnegative)


_Any = TypeVar("_Any")


def undominated(xs: Iterable[_Any], dominates: Callable[[_Any, _Any], bool]) -> list[_Any]:
    """Those that none of the others is known to dominate."""
    kept: list[_Any] = []
    for x in xs:
        if not any(dominates(other, x) for other in kept):
            kept = [*(other for other in kept if not dominates(x, other)), x]
    return kept


class SympySystem:
    """Expressions. A minimum is simplified where the assumptions of its symbols decide it.

    Attributes:
        cap: replace min(x, number), where undecided, by the number. Radii, norms and gains enter a bound increasingly,
            so what is then obtained is an upper bound of the exact expression, equal to it where the cap is reached.
        plain: replace a minimum, where undecided, by the one argument that is a symbol by itself: a budget that was
            given, rather than what follows from others. Again an upper bound.
        order: symbols each of which is assumed to be at most the next.
        capped: the minima that were replaced, as (expression, number).
    """

    name = "sympy"
    pi = sympy.pi
    number = staticmethod(number)

    def __init__(self, *, cap: bool = False, plain: bool = False, order: Order = ()) -> None:
        self.cap = cap
        self.plain = plain
        self.order = order
        self.capped: list[tuple[Expr, Expr]] = []

    @staticmethod
    def log(x: Any) -> Expr:
        return sympy.log(x)

    @staticmethod
    def log1p(x: Any) -> Expr:
        return sympy.log(1 + sympy.sympify(x))

    @staticmethod
    def exp(x: Any) -> Expr:
        return sympy.exp(x)

    @staticmethod
    def expm1(x: Any) -> Expr:
        return sympy.exp(x) - 1

    @staticmethod
    def sqrt(x: Any) -> Expr:
        return sympy.sqrt(x)

    @staticmethod
    def ceil(x: Any) -> Expr:
        return sympy.ceiling(x)

    @staticmethod
    def lgamma(x: Any) -> Expr:
        return sympy.loggamma(x)

    @staticmethod
    def lgamma_sum(x: Any, count: int) -> Expr:
        return sympy.Add(*(sympy.loggamma(x + i) for i in range(count)))

    def minimum(self, *xs: Any) -> Expr:
        kept = undominated(map(sympy.sympify, xs), lambda a, b: known_le(a, b, self.order))
        if len(kept) == 1:
            return kept[0]
        numbers = [x for x in kept if x.is_number]
        if self.cap and numbers:
            self.capped += [(x, numbers[0]) for x in kept if not x.is_number]
            return numbers[0]
        given = [x for x in kept if x.is_Symbol]
        if self.plain and len(given) == 1:
            return given[0]
        return sympy.Min(*kept)

    @staticmethod
    def maximum(*xs: Any) -> Expr:
        kept = undominated(map(sympy.sympify, xs), lambda a, b: known_le(b, a))
        return kept[0] if len(kept) == 1 else sympy.Max(*kept)


SYMPY = SympySystem()
