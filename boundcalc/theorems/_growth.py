"""What dominates a formula as one input grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.theorems import symbols
from boundcalc.theorems._algebra import Expr, probe, written_out

if TYPE_CHECKING:
    from boundcalc.theorems._formula import Formula

_GROWING = sympy.Symbol("r_above_one", positive=True)
"""Stands for a ratio of blocks that is known to exceed 1."""


class _Undecided(Exception):
    """It depends on the other inputs which of two terms dominates."""


@dataclass(frozen=True)
class _Growth:
    """coefficient * base^x * x^p * (log x)^q * (log log x)^r for x towards infinity; `powers` is (p, q, r)."""

    coefficient: Expr
    base: Expr = sympy.S.One
    powers: tuple[Expr, ...] = (sympy.S.Zero,) * 3

    def times(self, other: _Growth) -> _Growth:
        powers = tuple(a + b for a, b in zip(self.powers, other.powers, strict=True))
        return _Growth(self.coefficient * other.coefficient, self.base * other.base, powers)

    def raised(self, e: Expr) -> _Growth:
        return _Growth(self.coefficient**e, self.base**e, tuple(power * e for power in self.powers))

    def term(self, x: sympy.Symbol) -> Expr:
        """As an expression."""
        slow = [x, sympy.log(x), sympy.log(sympy.log(x))]
        factors = [base**power for base, power in zip(slow, self.powers, strict=True)]
        return sympy.Mul(sympy.powsimp(self.coefficient * self.base**x), *factors)


def _unit(which: int) -> tuple[Expr, ...]:
    return tuple(sympy.S(int(i == which)) for i in range(3))


def _sign(x: Expr) -> int:
    """The sign of an exponent; undecided where it depends on the inputs."""
    if x.is_number:
        return int(sympy.sign(sympy.N(x)))
    if x.is_positive or x.is_negative:
        return 1 if x.is_positive else -1
    raise _Undecided(str(x))


def _sign_of_value(x: Expr) -> int:
    """The sign of a coefficient: the same at every probe, or undecided."""
    x = x.xreplace({_GROWING: sympy.Rational(3, 2)})
    signs = {int(sympy.sign(sympy.N(x) if x.is_number else probe(x, salt))) for salt in (3, 7, 11)}
    if len(signs) != 1:
        raise _Undecided(str(x))
    return signs.pop()


def _compare(a: _Growth, b: _Growth) -> int:
    ratio = a.base / b.base
    if ratio != 1:
        base, power = ratio.as_base_exp()
        if not ratio.is_number and (base != _GROWING or not power.is_number):
            raise _Undecided(str(ratio))
        return _sign(sympy.log(ratio)) if ratio.is_number else int(sympy.sign(power))
    return next((sign for p, q in zip(a.powers, b.powers, strict=True) if (sign := _sign(p - q))), 0)


def _growth(e: Expr, x: sympy.Symbol) -> _Growth:
    if not e.has(x):
        return _Growth(e)
    if e == x:
        return _Growth(sympy.S.One, powers=_unit(0))
    if isinstance(e, sympy.Piecewise):
        cases: Any = e.args
        return _growth(next(value for value, case in cases if case is sympy.true), x)
    if e.is_Pow:
        return _power(e, x)
    parts = [_growth(arg, x) for arg in e.args]
    if e.is_Add:
        return _total(parts)
    if e.is_Mul:
        product = parts[0]
        for part in parts[1:]:
            product = product.times(part)
        return product
    if isinstance(e, sympy.log):
        return _log(parts[0])
    if isinstance(e, sympy.Max | sympy.Min):
        return _extreme(e, parts)
    raise Unsupported(Refusal("leading()", f"a term {type(e).__name__}", "powers, logarithms, minima and maxima"))


def _total(terms: list[_Growth]) -> _Growth:
    best = terms[0]
    for term in terms[1:]:
        order = _compare(term, best)
        best = term if order > 0 else best if order else replace(best, coefficient=best.coefficient + term.coefficient)
    if best.coefficient == 0:
        raise _Undecided("leading terms cancel")
    return best


def _power(e: Expr, x: sympy.Symbol) -> _Growth:
    base, exponent = e.as_base_exp()
    if not exponent.has(x):
        return _growth(base, x).raised(exponent)
    slope = sympy.diff(exponent, x)
    if base.has(x) or slope.has(x):
        raise _Undecided(str(e))
    return _Growth(base ** sympy.expand(exponent - slope * x), base=base**slope)


def _log(inner: _Growth) -> _Growth:
    if inner.base != 1:
        return _Growth(sympy.log(inner.base), powers=_unit(0))
    for which, power in enumerate(inner.powers[:2]):
        if power != 0:
            return _Growth(power, powers=_unit(which + 1))
    if inner.powers[2] != 0:
        raise _Undecided("log log log")
    return _Growth(sympy.log(inner.coefficient))


def _extreme(e: Expr, parts: list[_Growth]) -> _Growth:
    sign = 1 if isinstance(e, sympy.Max) else -1
    best, *rest = parts
    for other in rest:
        mine, its = _sign_of_value(best.coefficient), _sign_of_value(other.coefficient)
        # Of two negative terms the one that grows is the smaller.
        order = its - mine if mine != its else _compare(other, best) * (mine or 1)
        if order * sign > 0:
            best = other
        elif order == 0:
            best = replace(best, coefficient=type(e)(best.coefficient, other.coefficient))
    return best


def _dominant(formula: Formula, x: sympy.Symbol, assume: Mapping[sympy.Symbol, Expr]) -> tuple[_Growth, dict[Any, Any]]:
    """The growth of the dominant term, and what its symbols stand for.

    In the depth, the ratio r of blocks is taken to exceed 1, as it does whenever every budget is at least 1.
    """
    expr, ratio = formula.expr, next((part for part in formula.where if str(part.symbol) == "r"), None)
    for part in formula.where:
        if part is not ratio or part.expr.has(x):
            expr = expr.xreplace({part.symbol: part.expr})
    growing = {} if ratio is None else {ratio.symbol: _GROWING}
    meanings = {symbol: symbols.plain(symbol) for symbol in formula.inputs}
    if ratio is not None:
        meanings[_GROWING] = ratio.expr.subs(dict(assume)).xreplace(meanings)
    try:
        return _growth(written_out(expr).subs(dict(assume)).xreplace(growing), x), meanings
    except _Undecided as error:
        typical = {symbol: symbols.BY_NAME[symbol.name].typical for symbol in formula.inputs if symbol != x}
        middle = {symbol: float(f"{(low * high) ** 0.5:.1g}") for symbol, (low, high) in typical.items()}
        hint = ", ".join(f"{symbol}={value:g}" for symbol, value in middle.items())
        why = f"{error}, on whose value it depends what dominates"
        fix = f"Give them, for instance leading({str(x)!r}, {hint})."
        raise Unsupported(Refusal(f"leading({x})", why, "numbers for the other inputs", fix)) from None


def leading(formula: Formula, x: sympy.Symbol, assume: Mapping[sympy.Symbol, Expr]) -> Expr:
    """The dominant term of a formula as x grows, in plain symbols."""
    growth, meanings = _dominant(formula, x, assume)
    return growth.term(x).xreplace(meanings)


def limit(formula: Formula, x: sympy.Symbol, assume: Mapping[sympy.Symbol, Expr]) -> Expr:
    """The limit of a formula as x grows without end."""
    growth, meanings = _dominant(formula, x, assume)
    order = _compare(growth, _Growth(sympy.S.One))
    return growth.coefficient.xreplace(meanings) if order == 0 else sympy.oo if order > 0 else sympy.S.Zero
