"""Expressions of formulas: how they are read from text, and the functions that formulas keep by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1

from boundcalc.theorems.symbols import symbol

Expr = Any
"""A SymPy expression; SymPy annotates its own functions only in part, so they cannot be held to more."""
_LARGEST_ROOT = 1e6
_WORDS = {"sqrt", "log", "exp", "expm1", "sinh", "cosh", "Min", "Max", "pi", "ceiling", "Piecewise", "Eq", "True"}
"""What a text of a formula calls as SymPy does."""


def number(x: Any) -> Expr:
    """A constant as a person would write it: 0.1 is one tenth, and the square root of 2 is no fraction."""
    if isinstance(x, float):
        square = round(x * x) if 0 < x < _LARGEST_ROOT else 0
        if x != int(x) and square and math.sqrt(square) == x:
            return sympy.sqrt(square)
        exact = Fraction(repr(x))
        return sympy.Rational(exact.numerator, exact.denominator)
    return sympy.sympify(x)


def parse(text: str, names: Mapping[str, Any] | None = None) -> Expr:
    """The expression of a text; `names` are what it may use besides SymPy's functions and the library's symbols."""
    chosen: dict[str, Any] = {name: symbol(name) for name in set(re.findall(r"[A-Za-z_]\w*", text)) - _WORDS}
    chosen |= {"expm1": expm1, **(names or {})}
    return sympy.sympify(text, locals=chosen, rational=True)  # pyright: ignore[reportCallIssue]


def probe(expr: Expr, salt: int) -> Expr:
    """The value at a point where symbols are unrelated primes over 211 (whole symbols: primes); 50 digits."""
    point: dict[Expr, Expr] = {}
    for index, free in enumerate(sorted(expr.free_symbols, key=str)):
        prime = sympy.Integer(sympy.prime(salt + 13 * index + 5))
        point[free] = prime if free.is_integer else prime / 211
    return expr.xreplace(point).evalf(50)


class Named(sympy.Function):  # type: ignore[misc]
    """A positive function that formulas keep by its letter; `explicit` writes it out.

    Attributes:
        letter: LaTeX of its name.
        variables: what its definition calls its arguments.
        value: what it stands for.
        where: what further letters of the value stand for, each in terms of later ones.
    """

    letter = ""
    variables: tuple[sympy.Symbol, ...] = ()
    value: Expr = sympy.S.One
    where: Mapping[sympy.Symbol, Expr] = {}

    def _eval_is_positive(self) -> bool:
        return True

    def _eval_evalf(self, prec: int) -> Expr:
        return self.explicit()._eval_evalf(prec)

    def explicit(self) -> Expr:
        """The function written out."""
        expr = self.value
        for letter, meaning in self.where.items():
            expr = expr.subs(letter, meaning)
        return expr.subs(dict(zip(self.variables, self.args, strict=True)), simultaneous=True)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        listed = r",\,".join(printer.doprint(arg) for arg in self.args)
        return f"{self.letter}{power}({listed})"


def functions(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, type[Named]]:
    """The functions of a table: letter, names of the arguments, value, and what else the value uses."""
    classes: dict[str, type[Named]] = {}
    for name, entry in entries.items():
        variables, where = entry["args"].split(), entry.get("where", {})
        letters = {word: sympy.Symbol(word, positive=True) for word in (*variables, *where)}
        content: dict[str, Any] = {
            "nargs": len(variables),
            "letter": entry["letter"],
            "variables": tuple(letters[word] for word in variables),
            "value": parse(entry["value"], {**classes, **letters}),
            "where": {letters[word]: parse(text, letters) for word, text in where.items()},
        }
        classes[name] = type(name, (Named,), content)
    return classes


@cache
def written_out(expr: Expr) -> Expr:
    """Every function with a letter written out."""
    while expr.has(Named):
        expr = expr.replace(lambda e: isinstance(e, Named), lambda e: e.explicit())
    return expr
