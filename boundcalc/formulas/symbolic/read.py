"""Formulas as text: "8*C*sqrt(d*log(T)/m)" to a sympy expression, in the symbols of this library. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from boundcalc.base import symbols
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.words import hint
from boundcalc.formulas.symbolic.system import Expr, number

_FUNCTIONS: Mapping[str, Callable[..., Expr]] = {
    "sqrt": sympy.sqrt,
    "log": sympy.log,
    "ln": sympy.log,
    "log2": lambda x: sympy.log(x) / sympy.log(2),
    "log10": lambda x: sympy.log(x) / sympy.log(10),
    "exp": sympy.exp,
    "min": sympy.Min,
    "max": sympy.Max,
    "ceil": sympy.ceiling,
    "ceiling": sympy.ceiling,
    "abs": sympy.Abs,
    "lgamma": sympy.loggamma,
}
_CONSTANTS: Mapping[str, Expr] = {"pi": sympy.pi, "e": sympy.E}
_OPERATIONS: Mapping[type, Callable[[Any, Any], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}
_LONGEST = 10_000


def symbol(name: str) -> sympy.Symbol:
    """The library's symbol of a name (T and seq_len are one), or a positive one of that name."""
    entry = symbols.BY_NAME.get(symbols.ALIASES.get(name, name))
    return sympy.Symbol(name, positive=True) if entry is None else entry.symbol


def expression(text: str) -> Expr:
    """The expression a text stands for; `^` is a power, numbers are taken as they are written."""
    if len(text) > _LONGEST:
        raise InvalidSetting(f"a formula of {len(text)} characters: write it in a Python file, FILE.py:NAME")
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise InvalidSetting(f"cannot read the formula {text!r}: {getattr(error, 'msg', error)}") from None
    return _Reader(text).read(tree.body)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, node: ast.AST) -> Expr:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return number(value)
            case ast.Name(id=name):
                return _CONSTANTS[name] if name in _CONSTANTS else symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.read(inner)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.read(inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if arguments:
                if name not in _FUNCTIONS:
                    known = ", ".join(_FUNCTIONS)
                    raise self.wrong(f"no function is called {name!r}{hint(name, _FUNCTIONS)}; known: {known}")
                if len(arguments) > 1 and name not in ("min", "max"):
                    raise self.wrong(f"{name} takes one argument")
                return _FUNCTIONS[name](*map(self.read, arguments))
            case _:
                raise self.wrong("only numbers, names, + - * / ^ and functions of them are read")

    def wrong(self, why: str) -> InvalidSetting:
        return InvalidSetting(f"cannot read the formula {self.text!r}: {why}")
