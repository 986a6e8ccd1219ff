"""Formulas as code, by SymPy's printers: functions of floats, arrays, mpmath numbers and balls, and source text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import mpmath
import sympy
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.numpy import NumPyPrinter
from sympy.printing.pycode import MpmathPrinter, PythonCodePrinter

from boundcalc.base.intervals import IntervalSystem
from boundcalc.formulas.symbolic.functions import Lambda
from boundcalc.formulas.symbolic.system import Expr
from boundcalc.setting.validate import choice

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

_LANGUAGES = ("python", "numpy", "javascript")


class Cbrt(sympy.Function):  # type: ignore[misc]
    """A cube root, which is several times faster than a power."""

    nargs = 1


def _options(module: str) -> dict[str, Any]:
    functions = {"Cbrt": f"{module}.cbrt", "expm1": f"{module}.expm1"}
    return {"fully_qualified_modules": True, "user_functions": functions}


class _Numpy(NumPyPrinter):
    """Broadcasts in minima and maxima, where SymPy's asks for equal shapes."""

    def _print_Max(self, expr: Any) -> str:
        return reduce(lambda text, arg: f"numpy.maximum({text}, {arg})", map(self._print, expr.args))

    def _print_Min(self, expr: Any) -> str:
        return reduce(lambda text, arg: f"numpy.minimum({text}, {arg})", map(self._print, expr.args))


class _Balls(PythonCodePrinter):
    """The number system of the checker; a rational is a quotient of balls."""

    def __init__(self) -> None:
        super().__init__()
        names = {"log": "log", "exp": "exp", "expm1": "expm1", "Cbrt": "cbrt", "loggamma": "lgamma", "ceiling": "ceil"}
        names |= {"Max": "maximum", "Min": "minimum", "sqrt": "sqrt"}
        self.known_functions = {name: f"iv.{here}" for name, here in names.items()}
        self.known_constants = {"Exp1": "iv.e", "Pi": "iv.pi"}

    def _print_Rational(self, expr: Any) -> str:
        return f"(iv.number({int(expr.p)})/{int(expr.q)})"

    def _print_Integer(self, expr: Any) -> str:
        return f"iv.number({int(expr)})"

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        del rational
        base, power = expr.as_base_exp()
        if base is sympy.E:
            return f"iv.exp({self._print(power)})"
        if abs(power) == sympy.S.Half:
            return f"iv.sqrt({self._print(base)})" if power > 0 else f"(1/iv.sqrt({self._print(base)}))"
        return f"({self._print(base)})**({self._print(power)})"


class _Intervals(IntervalSystem):
    """The number system of the checker with the names it lacks."""

    @property
    def e(self) -> Any:
        return self.exp(1)

    @staticmethod
    def cbrt(x: Any) -> Any:
        return x.root(3)


class _Javascript(JavascriptCodePrinter):
    def _print_Piecewise(self, expr: Any) -> str:
        (value, condition), *rest = expr.args
        if not rest or condition is sympy.true:
            return self._print(value)
        other = self._print(sympy.Piecewise(*rest))
        return f"(({self._print(condition)}) ? {self._print(value)} : {other})"


def _program(formula: Formula) -> tuple[list[tuple[sympy.Symbol, Expr]], Expr]:
    """Assignments and a result: the named parts, constants with a name, and whatever else is shared, each computed once."""
    parts = [(part.symbol, part.expr if part.stable is None else part.stable) for part in formula.where]
    result = formula.expr
    constants = sorted({c for e in (result, *(e for _, e in parts)) for c in e.atoms(Lambda)}, key=str)
    named = {constant: sympy.Symbol(f"Lambda_{i}", positive=True) for i, constant in enumerate(constants)}
    parts = [(symbol, expr.xreplace(named)) for symbol, expr in parts]
    parts += [(symbol, constant.explicit()) for constant, symbol in named.items()]  # type: ignore[attr-defined]
    exprs = [_with_cube_roots(expr) for expr in (result.xreplace(named), *(expr for _, expr in parts))]
    taken = {symbol.name for symbol in formula.inputs}
    fresh = (symbol for symbol in sympy.numbered_symbols("x") if symbol.name not in taken)
    shared, (result, *values) = sympy.cse(exprs, symbols=fresh, order="none")
    steps = dict([*shared, *((symbol, value) for (symbol, _), value in zip(parts, values, strict=True))])
    return _in_order(steps), result


def _with_cube_roots(expr: Expr) -> Expr:
    """x^(p/3) as a whole power of the cube root of x, so that all of them share it."""

    def third(e: Any) -> bool:
        return e.is_Pow and e.exp.is_Rational and e.exp.q == 3

    return expr.replace(third, lambda e: Cbrt(e.base) ** e.exp.p)


def _in_order(exprs: Mapping[sympy.Symbol, Expr]) -> list[tuple[sympy.Symbol, Expr]]:
    """Assignments so that each comes after those it uses."""
    done: dict[sympy.Symbol, Expr] = {}

    def emit(symbol: Any) -> None:
        if symbol in exprs and symbol not in done:
            for used in sorted(exprs[symbol].free_symbols, key=str):
                emit(used)
            done[symbol] = exprs[symbol]

    for symbol in exprs:
        emit(symbol)
    return list(done.items())


def _python(formula: Formula, printer: Any, name: str, inputs: Sequence[sympy.Symbol], note: str = "") -> str:
    """A Python function."""
    steps, result = _program(formula)
    lines = [f'"""{note}"""'] if note else []
    lines += [f"{symbol} = {printer.doprint(value)}" for symbol, value in steps]
    lines.append(f"return {printer.doprint(result)}")
    return f"def {name}({', '.join(map(str, inputs))}):\n" + "".join(f"    {line}\n" for line in lines)


def _compiled(formula: Formula, printer: Any, inputs: Sequence[sympy.Symbol], **modules: Any) -> Callable[..., Any]:
    space: dict[str, Any] = dict(modules)
    exec(compile(_python(formula, printer, "formula", inputs), "<formula>", "exec"), space)
    return space["formula"]


def mpmath_function(formula: Formula) -> Callable[..., Any]:
    """A function of mpmath numbers, at whatever precision is set when it is called."""
    return _compiled(formula, MpmathPrinter(_options("mpmath")), formula.inputs, mpmath=mpmath)


def interval_function(formula: Formula) -> Callable[..., Any]:
    """A function of enclosures (Arb balls) that encloses the formula's value."""
    return _compiled(formula, _Balls(), formula.inputs, iv=_Intervals())


def numpy_function(formula: Formula, inputs: Sequence[sympy.Symbol]) -> Callable[..., Any]:
    """A function of NumPy arrays; beyond the range of floats it returns inf, silently."""
    import numpy as np

    evaluate = _compiled(formula, _Numpy(_options("numpy")), inputs, numpy=np)

    def vectorised(*values: Any, **named: Any) -> Any:
        arrays = {name: np.asarray(value, dtype=float) for name, value in named.items()}
        with np.errstate(all="ignore"):
            return evaluate(*(np.asarray(value, dtype=float) for value in values), **arrays)

    vectorised.__name__ = formula.name
    vectorised.__doc__ = f"{formula.name}({', '.join(str(symbol) for symbol in inputs)})"
    return vectorised


def source(formula: Formula, language: str) -> str:
    """A formula as source text that runs by itself."""
    choice("language", language, _LANGUAGES)
    inputs, name, note = formula.inputs, formula.name, f"{formula.name}, generated by boundcalc"
    if language == "python":
        return "import math\n\n\n" + _python(formula, PythonCodePrinter(_options("math")), name, inputs, note)
    if language == "numpy":
        return "import numpy\n\n\n" + _python(formula, _Numpy(_options("numpy")), name, inputs, note)
    steps, result = _program(formula)
    javascript = _Javascript({"user_functions": _options("Math")["user_functions"]})
    lines = [f"  const {symbol} = {javascript.doprint(value)};" for symbol, value in steps]
    head = f"// {note}\nfunction {name}({', '.join(str(symbol) for symbol in inputs)}) {{\n"
    return head + "\n".join([*lines, f"  return {javascript.doprint(result)};"]) + "\n}\n"
