"""What dominates a formula as one input grows, and how it reacts at a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mpmath
import sympy

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.formulas.symbolic.functions import Lambda
from boundcalc.formulas.symbolic.system import Expr, number, probe

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula


@dataclass(frozen=True)
class _Growth:
    """coefficient * base^x * x^power * (log x)^logs * (log log x)^loglogs, for x towards infinity."""

    coefficient: Expr
    base: Expr = sympy.S.One
    power: Expr = sympy.S.Zero
    logs: Expr = sympy.S.Zero
    loglogs: Expr = sympy.S.Zero

    def times(self, other: _Growth) -> _Growth:
        return _Growth(
            self.coefficient * other.coefficient,
            self.base * other.base,
            self.power + other.power,
            self.logs + other.logs,
            self.loglogs + other.loglogs,
        )

    def raised(self, e: Expr) -> _Growth:
        return _Growth(self.coefficient**e, self.base**e, self.power * e, self.logs * e, self.loglogs * e)

    def term(self, x: sympy.Symbol) -> Expr:
        """As an expression."""
        slow = sympy.log(x) ** self.logs * sympy.log(sympy.log(x)) ** self.loglogs
        return sympy.powsimp(self.coefficient * self.base**x) * x**self.power * slow

    @property
    def constant(self) -> bool:
        """Whether it neither grows nor falls."""
        return self.base == 1 and self.power == 0 and self.logs == 0 and self.loglogs == 0


class _Undecided(Exception):
    """Two terms of which it depends on the inputs which one dominates."""


def _sign(x: Expr) -> int:
    """The sign of an exponent; undecided where it depends on the inputs."""
    if x.is_number:
        return int(sympy.sign(sympy.N(x)))
    if x.is_positive:
        return 1
    if x.is_negative:
        return -1
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
        sign = _sign(sympy.log(ratio)) if ratio.is_number else _sign_of_base(ratio)
        if sign:
            return sign
    for mine, other in ((a.power, b.power), (a.logs, b.logs), (a.loglogs, b.loglogs)):
        sign = _sign(mine - other)
        if sign:
            return sign
    return 0


def _sign_of_base(ratio: Expr) -> int:
    if ratio.has(_GROWING):
        power = ratio.as_base_exp()[1] if ratio.is_Pow else sympy.S.One
        if ratio.as_base_exp()[0] == _GROWING and power.is_number:
            return int(sympy.sign(power))
    raise _Undecided(str(ratio))


_GROWING = sympy.Symbol("r_above_one", positive=True)
"""Stands for a ratio of blocks that is known to exceed 1."""


class _Walk:
    def __init__(self, x: sympy.Symbol) -> None:
        self.x = x

    def of(self, e: Expr) -> _Growth:
        if not e.has(self.x):
            return _Growth(e)
        if e == self.x:
            return _Growth(sympy.S.One, power=sympy.S.One)
        if isinstance(e, sympy.Add):
            return self.total([self.of(arg) for arg in e.args])
        if isinstance(e, sympy.Mul):
            product = _Growth(sympy.S.One)
            for arg in e.args:
                product = product.times(self.of(arg))
            return product
        if isinstance(e, sympy.Pow):
            return self.power(e)
        if isinstance(e, sympy.log):
            return self.log(self.of(e.args[0]))
        if isinstance(e, Lambda):
            return self.of(e.explicit())
        if isinstance(e, sympy.Max | sympy.Min):
            return self.extreme(e)
        if isinstance(e, sympy.Piecewise):
            return self.of(_generic_branch(e))
        if isinstance(e, sympy.ceiling):
            return self.of(e.args[0])
        raise Unsupported(Refusal("leading()", f"a term {type(e).__name__}", "powers, logarithms, minima and maxima"))

    @staticmethod
    def total(terms: list[_Growth]) -> _Growth:
        best = terms[0]
        for term in terms[1:]:
            order = _compare(term, best)
            if order > 0:
                best = term
            elif order == 0:
                best = replace(best, coefficient=best.coefficient + term.coefficient)
        if best.coefficient == 0:
            raise _Undecided("leading terms cancel")
        return best

    def power(self, e: Expr) -> _Growth:
        base, exponent = e.as_base_exp()
        if not exponent.has(self.x):
            return self.of(base).raised(exponent)
        if base.has(self.x):
            raise _Undecided(str(e))
        slope = sympy.diff(exponent, self.x)
        if slope.has(self.x):
            raise _Undecided(str(e))
        rest = sympy.expand(exponent - slope * self.x)
        return _Growth(base**rest, base=base**slope)

    def log(self, inner: _Growth) -> _Growth:
        if inner.base != 1:
            return _Growth(sympy.log(inner.base), power=sympy.S.One)
        if inner.power != 0:
            return _Growth(inner.power, logs=sympy.S.One)
        if inner.logs != 0:
            return _Growth(inner.logs, loglogs=sympy.S.One)
        if inner.constant:
            return _Growth(sympy.log(inner.coefficient))
        raise _Undecided("log log log")

    def extreme(self, e: Expr) -> _Growth:
        sign = 1 if isinstance(e, sympy.Max) else -1
        best, *rest = [self.of(arg) for arg in e.args]
        for other in rest:
            mine, its = _sign_of_value(best.coefficient), _sign_of_value(other.coefficient)
            # Of two negative terms the one that grows is the less.
            order = its - mine if mine != its else _compare(other, best) * (mine or 1)
            if order * sign > 0:
                best = other
            elif order == 0:
                best = replace(best, coefficient=type(e)(best.coefficient, other.coefficient))
        return best


def _generic_branch(e: Expr) -> Expr:
    return next(value for value, condition in e.args if condition is sympy.true)  # type: ignore[misc]


def leading(formula: Formula, x: sympy.Symbol, assume: Mapping[sympy.Symbol, Expr]) -> Expr:
    """The dominant term of a formula as x grows; named parts that do not depend on x stay named.

    In the depth, the ratio r of blocks is taken to exceed 1, as it does whenever every budget is at least 1.
    """
    expr = formula.expr
    ratios = [part.symbol for part in formula.where if str(part.symbol) == "r"]
    for part in formula.where:
        depends = _depends(part.symbol, x, formula)
        if depends:
            expr = expr.xreplace({part.symbol: part.expr})
    growing = {ratio: _GROWING for ratio in ratios}
    expr = expr.subs(dict(assume)).xreplace(growing)
    try:
        found = _Walk(x).of(expr)
    except _Undecided as error:
        hint = ", ".join(f"{symbol}=2" for symbol in formula.inputs if symbol != x)
        raise Unsupported(
            Refusal(
                f"leading({x})",
                f"{error}, on whose value it depends what dominates",
                "numbers for the other inputs",
                f"Give them: leading({str(x)!r}, {hint}).",
            )
        ) from None
    return found.term(x).xreplace({_GROWING: ratios[0]} if ratios else {})


def _depends(symbol: sympy.Basic, x: sympy.Symbol, formula: Formula) -> bool:
    parts = {part.symbol: part.expr for part in formula.where}
    todo, seen = [symbol], set()
    while todo:
        current = todo.pop()
        if current == x:
            return True
        if current in seen or current not in parts:
            continue
        seen.add(current)
        todo += list(parts[current].free_symbols)  # type: ignore[index]
    return False


def exponents(formula: Formula, values: Mapping[str, Any]) -> dict[str, float]:
    """D log(formula) / d log(x) at a point for every input x, by central differences in sixty digits.

    Sizes are treated as real numbers; where the point is a kink of a minimum, the mean of both sides is returned.
    """
    total = formula.mp(**values)  # complains about what is missing
    if total <= 0:
        raise Unsupported(Refusal("exponents()", f"the value {total}", "a positive value", "Choose another point."))
    with mpmath.workdps(60):
        point = {name: mpmath.mpmathify(str(number(value).evalf(60))) for name, value in values.items()}
        step = mpmath.mpf(10) ** -20
        out: dict[str, float] = {}
        for name in values:
            up, down = (formula.at(point | {name: point[name] * (1 + sign * step)}) for sign in (1, -1))
            out[name] = float((mpmath.log(up) - mpmath.log(down)) / (2 * step))
    return out
