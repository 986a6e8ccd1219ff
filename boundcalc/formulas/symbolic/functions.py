"""Functions that formulas keep by name: the constant of the perceptron cover, as papers print it and as it is computed."""

from __future__ import annotations

from typing import Any

import sympy

from boundcalc.formulas.symbolic.system import SYMPY, Expr
from boundcalc.statements.covers import CoverLemma, MatrixPerceptron
from boundcalc.statements.targets import Target


class PerceptronConstant(sympy.Function):  # type: ignore[misc]
    """The constant of `MatrixPerceptron` for k columns and N points, unevaluated; `expand_constants` puts the formula in."""

    nargs = 2

    def _eval_is_positive(self) -> bool:
        return True

    def _eval_is_extended_real(self) -> bool:
        return True

    def _eval_evalf(self, prec: int) -> Expr:
        return self.explicit()._eval_evalf(prec)

    def explicit(self) -> Expr:
        """Rho log((2Nk+1) rho^2/(rho-1)) at rho = 1 + 1/log(2Nk+1), from the lemma itself."""
        columns, points = self.args
        return MatrixPerceptron.constant(SYMPY, columns, points)

    def _numpycode(self, printer: Any) -> str:
        return f"({printer.doprint(self.explicit())})"

    _scipycode = _pythoncode = _mpmathcode = _numpycode

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        columns, points = (printer.doprint(arg) for arg in self.args)
        return rf"\Lambda{power}({columns},\,{points})"

    def _sympystr(self, printer: Any) -> str:
        columns, points = (printer.doprint(arg) for arg in self.args)
        return f"Lambda({columns}, {points})"


def factor(lemma: CoverLemma, target: Target, points: Expr) -> Expr:
    """The lemma's closed cost at y = 1, a constant that has a name by its name."""
    if isinstance(lemma, MatrixPerceptron):
        return Lambda(target.k, points)
    return sympy.sympify(lemma.closed(SYMPY, sympy.S.One, target, points))


Lambda = PerceptronConstant
"""How papers call it."""
COLUMNS, POINTS = sympy.Symbol("q", integer=True, positive=True), sympy.Symbol("N", integer=True, positive=True)
"""The arguments with which Lambda is defined where it is printed; k is a scale of chaining there."""


def expand_constants(expr: Expr) -> Expr:
    """Every Lambda(k, N) written out."""
    return expr.replace(lambda e: isinstance(e, Lambda), lambda e: e.explicit())


def geometric_sum(ratio: Expr, terms: Expr, *, lower: int = 1) -> Expr:
    """sum_{i=lower}^{terms} ratio^i by sympy's summation, the branch ratio = 1 included."""
    index = sympy.Symbol("i", integer=True, nonnegative=True)
    base = sympy.Dummy("q", positive=True)
    total = sympy.summation(base**index, (index, lower, terms))
    if not isinstance(total, sympy.Piecewise):
        return total.subs(base, ratio)
    branches: list[tuple[Expr, Any]] = []
    for value, condition in total.args:  # type: ignore[misc]
        if condition == sympy.Eq(base, 1):
            branches.append((sympy.factor(value), sympy.Eq(base, 1)))
        else:
            branches.append((sympy.simplify(value), True))
    return sympy.Piecewise(*((value.subs(base, ratio), sympy.sympify(c).subs(base, ratio)) for value, c in branches))


class expm1(sympy.Function):  # type: ignore[misc]  # noqa: N801 - its name in every language
    """exp(x) - 1, kept apart so that every language computes it without cancellation."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        return sympy.exp(self.args[0])

    def _eval_evalf(self, prec: int) -> Expr:
        return (sympy.exp(self.args[0]) - 1).evalf(2 * prec // 3 + 15)

    def _eval_is_extended_real(self) -> bool:
        return True


def stable_geometric_sum(ratio: Expr, terms: Expr, *, lower: int = 1) -> Expr:
    """The same sum for floating point: accurate however near to 1 the ratio is."""
    log = sympy.log(ratio)
    count = terms - lower + 1
    value = ratio**lower * expm1(count * log) / expm1(log)
    return sympy.Piecewise((count, sympy.Eq(log, 0)), (value, True))
