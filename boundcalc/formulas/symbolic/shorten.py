"""Abbreviations for what would not fit on a line: long inner sums get a name of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

import sympy

from boundcalc.formulas.symbolic.formula import Definition
from boundcalc.formulas.symbolic.system import Expr

LINE = 47.0
"""Rough number of symbols that fit on a line of an article beside a left-hand side."""
_INNER = 14.0
"""Sums narrower than this are left where they are."""


def width(expr: Expr) -> float:
    """Roughly how many symbols wide an expression is when typeset."""
    if expr.is_Symbol:
        return 1.0 + 0.6 * (len(str(expr)) > 1)
    if expr.is_Rational:
        return 0.9 * max(len(str(abs(expr.p))), len(str(expr.q))) if expr.q != 1 else float(min(7, len(str(expr))))
    if isinstance(expr, sympy.Add):
        return sum(width(arg) for arg in expr.args) + 1.8 * (len(expr.args) - 1)
    if isinstance(expr, sympy.Mul):
        top, bottom = sympy.fraction(expr)
        if bottom != 1:
            return max(width(top), width(bottom)) + 0.5
        return sum(width(arg) + (1.5 if arg.is_Add else 0.2) for arg in expr.args)
    if isinstance(expr, sympy.Pow):
        base, power = expr.as_base_exp()
        if power == sympy.S.Half:
            return width(base) + 1.0
        return width(base) + (1.5 if base.is_Add else 0.0) + 0.7 * width(power)
    if isinstance(expr, sympy.Piecewise):
        return max(width(value) for value, _ in expr.args) + 10  # type: ignore[misc]
    if isinstance(expr, sympy.Min | sympy.Max):
        return 5.0 + sum(width(arg) + 1.5 for arg in expr.args)
    if expr.args:
        return 2.5 + sum(width(arg) for arg in expr.args) + len(expr.args)
    return 1.0


def widest_term(expr: Expr) -> float:
    """The width of the widest piece that cannot be broken across lines: a term of a sum."""
    return max(width(term) for term in sympy.Add.make_args(expr))


def shortened(
    parts: Iterable[Definition], letter: str = "u", limit: float = LINE, numbers: Iterator[int] | None = None
) -> list[Definition]:
    """The same definitions, with inner sums named u_1, u_2, ... (as `numbers` goes on) where a term is wider than a line."""
    done: list[Definition] = []
    todo = list(parts)
    names: dict[Expr, sympy.Symbol] = {}
    fresh: Iterator[sympy.Symbol] = (sympy.Symbol(f"{letter}_{i}", positive=True) for i in numbers or count(1))
    while todo:
        part = todo.pop(0)
        expr = part.expr
        if names:
            expr = expr.func(*(arg.xreplace(names) for arg in expr.args)) if expr.args else expr
        while widest_term(expr) > limit:
            inner = _candidate(expr, limit)
            if inner is None:
                break
            if inner not in names:
                names[inner] = next(fresh)
                todo.append(Definition(names[inner], inner, "abbreviation", _latex(names[inner])))
            expr = expr.xreplace({inner: names[inner]})
        done.append(part if expr == part.expr else replace(part, expr=expr))
    return done


def without_nested_radicals(parts: Iterable[Definition]) -> list[Definition]:
    """The same definitions, with sums of numbers and roots (1 + 16 sqrt(3), a radius) named b_1, b_2, ... ."""
    names: dict[Expr, sympy.Symbol] = {}
    done: list[Definition] = []
    for part in parts:
        found = [e for e in sympy.preorder_traversal(part.expr) if _is_radical_sum(e) and e != part.expr]
        for expr in found:
            names.setdefault(expr, sympy.Symbol(f"b_{len(names) + 1}", positive=True))
        done.append(replace(part, expr=part.expr.xreplace({e: names[e] for e in found})) if found else part)
    return done + [Definition(name, expr, "abbreviation", _latex(name)) for expr, name in names.items()]


def _is_radical_sum(expr: Expr) -> bool:
    return (
        expr.is_Add
        and not expr.free_symbols
        and bool(expr.is_positive)
        and any(power.exp.is_Rational and not power.exp.is_Integer for power in expr.atoms(sympy.Pow))
    )


def _latex(symbol: sympy.Symbol) -> str:
    letter, _, index = str(symbol).partition("_")
    return f"{letter}_{{{index}}}"


def _candidate(expr: Expr, limit: float) -> Expr | None:
    """The widest sum strictly inside an expression (of several, the one met most often)."""
    sums = [arg for arg in sympy.preorder_traversal(expr) if arg.is_Add and arg != expr and width(arg) > _INNER]
    if not sums:
        return None
    fitting = [arg for arg in sums if width(arg) <= 1.6 * limit] or sums
    return max(fitting, key=lambda arg: (fitting.count(arg) * width(arg), width(arg), str(arg)))
