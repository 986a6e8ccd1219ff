"""Formulas as code: NumPy functions for sweeps, and source text in other languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import mpmath
import sympy
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.mathematica import MCodePrinter
from sympy.printing.pycode import PythonCodePrinter

from boundcalc.base.intervals import IntervalSystem
from boundcalc.formulas.symbolic.functions import Lambda
from boundcalc.formulas.symbolic.printing import Cases
from boundcalc.formulas.symbolic.system import Expr
from boundcalc.setting.validate import choice

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

_LANGUAGES = ("python", "numpy", "mathematica", "javascript")
_LONGEST_PRODUCT = 8
"""Whole powers up to this are written as products, which every language multiplies faster than it raises."""


class Cbrt(sympy.Function):  # type: ignore[misc]
    """A cube root, which is several times faster than a power."""

    nargs = 1


class _Products(Cases):
    """What the languages print alike: cases one by one, and short powers as products."""

    def _power(self, expr: Any) -> str | None:
        base, power = expr.as_base_exp()
        if power.is_Integer and 2 <= power <= _LONGEST_PRODUCT and base.is_Symbol:
            return "(" + "*".join([self._print(base)] * int(power)) + ")"  # type: ignore[attr-defined]
        return None


_FUNCTIONS = {"Cbrt": "cbrt", "expm1": "expm1", "log": "log", "exp": "exp", "loggamma": "lgamma", "ceiling": "ceil"}
_CONSTANTS = {"Exp1": "e", "Pi": "pi"}


class _PythonPrinter(_Products, PythonCodePrinter):
    module = "math"
    functions: Mapping[str, str] = {}
    """What a module calls otherwise than Python's own."""

    def __init__(self) -> None:
        super().__init__()
        named = {**_FUNCTIONS, **self.functions}
        self.known_functions.update({name: f"{self.module}.{here}" for name, here in named.items()})
        self.known_constants.update({name: f"{self.module}.{here}" for name, here in _CONSTANTS.items()})

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        del rational
        product = self._power(expr)
        if product is not None:
            return product
        base, power = expr.as_base_exp()
        if base is sympy.E:
            return f"{self.module}.exp({self._print(power)})"
        if abs(power) == sympy.S.Half:
            root = f"{self.module}.sqrt({self._print(base)})"
            return root if power > 0 else f"(1/{root})"
        if power == -1:
            return f"(1/{self._paren(base)})"
        return f"{self._paren(base)}**({self._print(power)})"

    def _paren(self, expr: Any) -> str:
        text = self._print(expr)
        return text if expr.is_Symbol or (expr.is_Integer and expr >= 0) else f"({text})"

    def _print_Rational(self, expr: Any) -> str:
        return repr(int(expr.p) / int(expr.q))

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_Relational(self, expr: Any) -> str:
        return f"({self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)})"

    def _case(self, condition: Any, value: str, other: str) -> str:
        return f"({value} if {self._print(condition)} else {other})"


class _NumpyPrinter(_PythonPrinter):
    module = "np"

    def _print_Max(self, expr: Any) -> str:
        return reduce(lambda text, arg: f"np.maximum({text}, {arg})", map(self._print, expr.args))

    def _print_Min(self, expr: Any) -> str:
        return reduce(lambda text, arg: f"np.minimum({text}, {arg})", map(self._print, expr.args))

    def _case(self, condition: Any, value: str, other: str) -> str:
        return f"np.where({self._print(condition)}, {value}, {other})"


class _MpmathPrinter(_PythonPrinter):
    module = "mp"
    functions: Mapping[str, str] = {"loggamma": "loggamma"}

    def _print_Rational(self, expr: Any) -> str:
        return f"(mp.mpf({int(expr.p)})/{int(expr.q)})"

    def _print_Integer(self, expr: Any) -> str:
        return f"mp.mpf({int(expr)})" if abs(int(expr)) > 10**15 else super()._print_Integer(expr)


class _IntervalPrinter(_PythonPrinter):
    module = "iv"
    functions: Mapping[str, str] = {"Max": "maximum", "Min": "minimum"}

    def _print_Rational(self, expr: Any) -> str:
        return f"(iv.number({int(expr.p)})/{int(expr.q)})"

    def _print_Integer(self, expr: Any) -> str:
        return f"iv.number({int(expr)})"


class _Intervals(IntervalSystem):
    """The number system of the checker with the two names it lacks."""

    @property
    def e(self) -> Any:
        return self.exp(1)

    @staticmethod
    def cbrt(x: Any) -> Any:
        return x.root(3)


class _JavascriptPrinter(_Products, JavascriptCodePrinter):
    def _print_Cbrt(self, expr: Any) -> str:
        return f"Math.cbrt({self._print(expr.args[0])})"

    def _print_expm1(self, expr: Any) -> str:
        return f"Math.expm1({self._print(expr.args[0])})"

    def _print_Pow(self, expr: Any) -> str:
        return self._power(expr) or super()._print_Pow(expr)

    def _case(self, condition: Any, value: str, other: str) -> str:
        return f"(({self._print(condition)}) ? {value} : {other})"


class _MathematicaPrinter(Cases, MCodePrinter):
    def _print_Cbrt(self, expr: Any) -> str:
        return f"CubeRoot[{self._print(expr.args[0])}]"

    def _print_expm1(self, expr: Any) -> str:
        return f"(Exp[{self._print(expr.args[0])}] - 1)"

    def _case(self, condition: Any, value: str, other: str) -> str:
        return f"If[{self._print(condition.lhs)} {condition.rel_op} {self._print(condition.rhs)}, {value}, {other}]"


def _with_cube_roots(expr: Expr) -> Expr:
    """x^(p/3) as a whole power of the cube root of x, so that all of them share it."""

    def third(e: Any) -> bool:
        return e.is_Pow and e.exp.is_Rational and e.exp.q == 3

    return expr.replace(third, lambda e: Cbrt(e.base) ** e.exp.p)


_Program = tuple[list[tuple[sympy.Symbol, Expr]], Expr]


def _program(formula: Formula) -> _Program:
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
    steps = [*shared, *((symbol, value) for (symbol, _), value in zip(parts, values, strict=True))]
    bases: dict[Expr, sympy.Symbol] = {}
    result = _name_bases(result, bases, fresh)
    steps = [(symbol, _name_bases(value, bases, fresh)) for symbol, value in steps]
    return _in_order([*steps, *((symbol, base) for base, symbol in bases.items())]), result


def _name_bases(expr: Expr, bases: dict[Expr, sympy.Symbol], fresh: Iterator[sympy.Symbol]) -> Expr:
    """Sums and calls that are raised to a whole power get a name, so that they can be multiplied instead."""

    def compound(e: Any) -> bool:
        return e.is_Pow and e.exp.is_Integer and 2 <= e.exp <= _LONGEST_PRODUCT and not e.base.is_Symbol

    def named(e: Any) -> Expr:
        if e.base not in bases:
            bases[e.base] = next(fresh)
        return bases[e.base] ** e.exp

    return expr.replace(compound, named)


def _in_order(steps: list[tuple[sympy.Symbol, Expr]]) -> list[tuple[sympy.Symbol, Expr]]:
    """Assignments so that each comes after those it uses."""
    exprs = dict(steps)
    done: dict[sympy.Symbol, Expr] = {}

    def emit(symbol: sympy.Symbol) -> None:
        if symbol in exprs and symbol not in done:
            for used in sorted(exprs[symbol].free_symbols, key=str):
                emit(used)  # type: ignore[arg-type]
            done[symbol] = exprs[symbol]

    for symbol, _ in steps:
        emit(symbol)
    return list(done.items())


def _python_body(formula: Formula, printer: PythonCodePrinter) -> list[str]:
    steps, result = _program(formula)
    lines = [f"{symbol} = {printer.doprint(value)}" for symbol, value in steps]
    return [*lines, f"return {printer.doprint(result)}"]


def _define(name: str, inputs: Sequence[sympy.Symbol], body: Sequence[str], note: str = "") -> str:
    head = f"def {name}({', '.join(str(symbol) for symbol in inputs)}):\n"
    doc = f'    """{note}"""\n' if note else ""
    return head + doc + "".join(f"    {line}\n" for line in body)


def _compiled(text: str, name: str, module: str, value: Any) -> Callable[..., Any]:
    space: dict[str, Any] = {module: value}
    exec(compile(text, f"<{name}>", "exec"), space)
    return space[name]


def mpmath_function(formula: Formula) -> Callable[..., Any]:
    """A function of mpmath numbers, at whatever precision is set when it is called."""
    text = _define("formula", formula.inputs, _python_body(formula, _MpmathPrinter()))
    return _compiled(text, "formula", "mp", mpmath)


def interval_function(formula: Formula) -> Callable[..., Any]:
    """A function of enclosures (Arb balls) that encloses the formula's value."""
    text = _define("formula", formula.inputs, _python_body(formula, _IntervalPrinter()))
    return _compiled(text, "formula", "iv", _Intervals())


def numpy_function(formula: Formula, inputs: Sequence[sympy.Symbol]) -> Callable[..., Any]:
    """A function of NumPy arrays; beyond the range of floats it returns inf, silently."""
    import numpy as np

    text = _define("formula", inputs, _python_body(formula, _NumpyPrinter()))
    evaluate = _compiled(text, "formula", "np", np)

    def vectorised(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return evaluate(*(np.asarray(value, dtype=float) for value in values))

    vectorised.__name__ = formula.name
    vectorised.__doc__ = f"{formula.name}({', '.join(str(symbol) for symbol in inputs)})"
    return vectorised


def source(formula: Formula, language: str) -> str:
    """A formula as source text that runs by itself."""
    choice("language", language, _LANGUAGES)
    inputs, name = formula.inputs, formula.name
    note = f"{formula.name}, generated by boundcalc"
    if language in ("python", "numpy"):
        printer = _PythonPrinter() if language == "python" else _NumpyPrinter()
        head = "import math" if language == "python" else "import numpy as np"
        return f"{head}\n\n\n" + _define(name, inputs, _python_body(formula, printer), note)
    steps, result = _program(formula)
    if language == "javascript":
        javascript = _JavascriptPrinter()
        lines = [f"  const {symbol} = {javascript.doprint(value)};" for symbol, value in steps]
        head = f"// {note}\nfunction {name}({', '.join(str(symbol) for symbol in inputs)}) {{\n"
        return head + "\n".join([*lines, f"  return {javascript.doprint(result)};"]) + "\n}\n"
    mathematica = _MathematicaPrinter()
    plain = {symbol: sympy.Symbol(_camel(symbol.name)) for symbol in (*inputs, *(s for s, _ in steps))}
    lines = [f"{plain[symbol]} = {mathematica.doprint(value.xreplace(plain))}" for symbol, value in steps]
    arguments = ", ".join(f"{plain[symbol]}_" for symbol in inputs)
    local = ", ".join(str(plain[symbol]) for symbol, _ in steps)
    body = ";\n  ".join([*lines, str(mathematica.doprint(result.xreplace(plain)))])
    return f"(* {note} *)\n{_camel(name)}[{arguments}] := Module[{{{local}}},\n  {body}]\n"


def _camel(name: str) -> str:
    """Mathematica knows no underscores in names, and keeps C, D, E, I, K, N and O for itself."""
    joined = "".join(part if index == 0 else part[:1].upper() + part[1:] for index, part in enumerate(name.split("_")))
    return f"{joined.lower()}Budget" if joined in {"C", "D", "E", "I", "K", "N", "O"} else joined
