"""Values of formulas in ball arithmetic, and formulas as code by SymPy's printers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import sympy
from flint import arb, ctx
from sympy.codegen.cfunctions import expm1

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.validate import choice
from boundcalc.theorems._algebra import Expr, Named, written_out

if TYPE_CHECKING:
    from boundcalc.theorems._formula import Formula

_BALLS: Mapping[Any, Callable[..., arb]] = {
    sympy.log: INTERVAL.log,
    sympy.exp: INTERVAL.exp,
    expm1: INTERVAL.expm1,
    sympy.loggamma: INTERVAL.lgamma,
    sympy.ceiling: INTERVAL.ceil,
    sympy.sinh: arb.sinh,
    sympy.cosh: arb.cosh,
    sympy.Max: INTERVAL.maximum,
    sympy.Min: INTERVAL.minimum,
}
_RELATIONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def enclose(formula: Formula, values: Mapping[sympy.Symbol, Expr]) -> arb:
    """An enclosure of a formula at numbers; infinity where it is beyond any number, or not enclosed in 2,000 bits."""
    start = ctx.prec
    try:
        for bits in (start, 512, 2048):
            ctx.prec = max(bits, start)
            value = at(formula, {symbol: ball(value, {}) for symbol, value in values.items()})
            if value.is_finite():
                return value
    finally:
        ctx.prec = start
    return arb("inf")


def at(formula: Formula, point: dict[Expr, arb]) -> arb:
    """An enclosure of a formula at enclosures of its inputs, in the set precision; `point` grows by its parts."""
    for part in reversed(formula.where):  # each stands after those that use it
        point[part.symbol] = ball(part.computed, point)
    return ball(formula.expr, point)


def ball(e: Expr, values: dict[Expr, arb]) -> arb:
    """An enclosure of an expression; `values` grows by what is computed."""
    if e in values:
        return values[e]
    if e.is_Rational:
        value = arb(int(e.p)) / int(e.q)
    elif isinstance(e, sympy.Piecewise):
        cases: Any = e.args

        def holds(case: Expr) -> bool:
            return case is sympy.true or _RELATIONS[case.rel_op](ball(case.lhs, values), ball(case.rhs, values))

        value = next(ball(branch, values) for branch, case in cases if holds(case))
    elif isinstance(e, Named):
        inside = dict(zip(e.variables, (ball(arg, values) for arg in e.args), strict=True))
        for letter, meaning in reversed([*e.where.items()]):  # each in terms of later ones
            inside[letter] = ball(meaning, inside)
        value = ball(e.value, inside)
    elif e is sympy.E or e is sympy.pi:
        value = arb(1).exp() if e is sympy.E else arb.pi()
    else:
        args = [ball(arg, values) for arg in e.args]
        if e.is_Add or e.is_Mul:
            value = reduce(lambda a, b: a + b if e.is_Add else a * b, args)
        elif e.is_Pow:
            value = _power(args[0], args[1], e.exp)
        elif e.func in _BALLS:
            value = _BALLS[e.func](*args)
        else:
            raise TypeError(f"a formula may not hold {e.func}, whose values are not enclosed")
    values[e] = value
    return value


def _power(base: arb, exponent: arb, exact: Expr) -> arb:
    if exact.is_Rational and exact.q in (2, 3):
        root = base.sqrt() if exact.q == 2 else base.root(3)
        return root ** int(exact.p)
    return base ** int(exact) if exact.is_Integer else base**exponent


# -- code


def _program(formula: Formula) -> tuple[list[tuple[sympy.Symbol, Expr]], Expr]:
    """Assignments and a result: named parts, functions with a letter, and what else is shared, each computed once."""
    exprs = {part.symbol: part.computed for part in reversed(formula.where)}
    constants = sorted({c for e in (formula.expr, *exprs.values()) for c in e.atoms(Named)}, key=str)
    named = {
        constant: sympy.Symbol(f"{type(constant).__name__}_{i}", positive=True) for i, constant in enumerate(constants)
    }
    parts: dict[sympy.Symbol, Expr] = {name: written_out(constant).xreplace(named) for constant, name in named.items()}
    parts |= {symbol: expr.xreplace(named) for symbol, expr in exprs.items()}
    shared, (*values, result) = sympy.cse([*parts.values(), formula.expr.xreplace(named)])
    assigned: dict[Any, Any] = dict(shared) | dict(zip(parts, values, strict=True))
    done: dict[Any, Expr] = {}

    def emit(symbol: Any) -> None:
        if symbol in assigned and symbol not in done:
            for used in sorted(assigned[symbol].free_symbols, key=str):
                emit(used)
            done[symbol] = assigned[symbol]

    for symbol in assigned:
        emit(symbol)
    return list(done.items()), result


def source(formula: Formula, language: str) -> str:
    """A formula as a function in a language, which runs by itself."""
    choice("language", language, ("python", "javascript"))
    steps, result = _program(formula)
    inputs, note = ", ".join(symbol.name for symbol in formula.inputs), f"{formula.name}, generated by boundcalc"
    if language == "python":
        lines = [f"    {symbol} = {sympy.pycode(value)}\n" for symbol, value in steps]
        head = f'import math\n\n\ndef {formula.name}({inputs}):\n    """{note}"""\n'
        return head + "".join(lines) + f"    return {sympy.pycode(result)}\n"
    lines = [f"  const {symbol} = {_javascript(value)};\n" for symbol, value in steps]
    return f"// {note}\nfunction {formula.name}({inputs}) {{\n{''.join(lines)}  return {_javascript(result)};\n}}\n"


def _javascript(expr: Expr) -> str:
    return " ".join(str(sympy.jscode(expr, user_functions={"expm1": "Math.expm1"})).split())


def numpy_function(
    formula: Formula, inputs: Sequence[sympy.Symbol], fixed: Mapping[sympy.Symbol, Expr]
) -> Callable[..., Any]:
    """A function of NumPy arrays of any matching shapes; beyond the range of floats it returns inf, silently."""
    import numpy as np

    steps, result = _program(formula)
    program = [(symbol, value.xreplace(dict(fixed))) for symbol, value in steps], result.xreplace(dict(fixed))
    extremes = {"amax": lambda xs, axis: reduce(np.maximum, xs), "amin": lambda xs, axis: reduce(np.minimum, xs)}
    options: dict[str, Any] = {"modules": [extremes, "numpy"], "cse": lambda _: program}
    evaluate = sympy.lambdify(list(inputs), result, **options)

    def vectorised(*values: Any, **named: Any) -> Any:
        arrays = {formula.input(name).name: np.asarray(value, dtype=float) for name, value in named.items()}
        with np.errstate(all="ignore"):
            return evaluate(*(np.asarray(value, dtype=float) for value in values), **arrays)

    vectorised.__name__ = formula.name
    vectorised.__doc__ = f"{formula.name}({', '.join(symbol.name for symbol in inputs)})"
    return vectorised
