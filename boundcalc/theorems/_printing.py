"""How formulas are printed: LaTeX by SymPy's printer, and the same on a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from boundcalc.theorems import symbols
from boundcalc.theorems._algebra import Expr
from boundcalc.theorems.prose import cut, plain

SIGNS = {"le": r"\le", "eq": "=", "ge": r"\ge"}
_POWER = PRECEDENCE["Pow"]
WIDE = 84
"""Glyphs of mathematics that fit on a line of an article in one column."""
NARROW = 40
"""The same in two columns."""


class _Printer(LatexPrinter):
    """SymPy's, with decimals, powers of logarithms, products of roots under one root, and cases as papers have them."""

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = super()._as_ordered_terms(expr, order=order)
        return sorted(terms, key=lambda term: bool(term.as_coeff_Mul()[0] < 0))

    def _print_Rational(self, expr: Any) -> str:
        rest = expr.q
        for prime in (2, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1 and expr.q >= 100:
            digits, _, power = str(sympy.Float(expr, 15)).partition("e")
            digits = digits.rstrip("0").rstrip(".")
            return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits
        return super()._print_Rational(expr)

    def _print_Mul(self, expr: Any) -> str:
        factor, others = expr.as_coeff_Mul()
        if factor.is_Rational and "." in (shown := self._print_Rational(factor)):
            top, bottom = sympy.fraction(others)
            above = shown if top == 1 else f"{shown} {self.parenthesize(top, PRECEDENCE['Mul'])}"
            return above if bottom == 1 else rf"\frac{{{above}}}{{{self._print(bottom)}}}"
        roots = [factor for factor in expr.args if abs(factor.as_base_exp()[1]) == sympy.S.Half]
        if len(roots) < 2:
            return super()._print_Mul(expr)
        radicand = sympy.Mul(*(base ** (2 * power) for base, power in (root.as_base_exp() for root in roots)))
        coefficient, rest = sympy.Mul(*(factor for factor in expr.args if factor not in roots)).as_coeff_Mul()
        inside = radicand * coefficient**2
        if coefficient > 0 and _size(inside) <= _size(radicand):
            coefficient, radicand = sympy.S.One, inside
        front = "" if coefficient * rest == 1 else f"{self._print(coefficient * rest)} "
        return rf"{front}\sqrt{{{self._print(radicand)}}}"

    def _print_Pow(self, expr: Any) -> str:
        power = expr.exp
        if power.is_Rational and power > 0 and power.q > 1 and power != sympy.S.Half:
            if expr.base.is_Function:
                return self._print(expr.base, exp=f"{power.p}/{power.q}")
            return f"{self.parenthesize(expr.base, _POWER)}^{{{power.p}/{power.q}}}"
        top, bottom = sympy.fraction(sympy.together(power))
        if bottom.is_Integer and bottom > 1 and not power.is_Rational:
            inner = f"({self._print(top)})" if top.is_Add else self._print(top)
            return f"{self.parenthesize(expr.base, _POWER)}^{{{inner}/{bottom}}}"
        return super()._print_Pow(expr)

    def _print_Exp1(self, expr: Any, exp: Any = None) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return r"\mathrm e" if exp is None else rf"\mathrm e^{{{exp}}}"

    def _print_log(self, expr: Any, exp: Any = None) -> str:
        power, arg = "" if exp is None else f"^{{{exp}}}", expr.args[0]
        top, below = sympy.fraction(arg)
        if top == 1 and not below.is_Add:
            shown = self._print(below)
            return rf"\log{power}(1/{shown if below.is_Symbol else f'({shown})'})"
        return rf"\log{power}({self._print(arg)})"

    def _print_sinh(self, expr: Any, exp: Any = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"\{type(expr).__name__}{power}({self._print(expr.args[0])})"

    _print_cosh = _print_sinh

    def _print_Max(self, expr: Any, exp: Any = None) -> str:
        listed = r",\, ".join(self._print(arg) for arg in sorted(expr.args, key=lambda arg: arg.count_ops()))
        shown = rf"\{type(expr).__name__.lower()}\big\{{{listed}\big\}}"
        return shown if exp is None else rf"\big({shown}\big)^{{{exp}}}"

    _print_Min = _print_Max  # noqa: N815 - as SymPy calls it

    def _print_Piecewise(self, expr: Any) -> str:
        rows = [
            f"{self._print(value)} & "
            + (r"\text{otherwise}" if case is sympy.true else rf"\text{{if }} {self._print(case)}")
            for value, case in expr.args
        ]
        return r"\begin{cases}" + r" \\ ".join(rows) + r"\end{cases}"


def _size(expr: Expr) -> int:
    """Digits of the number in front."""
    factor: Any = expr.as_coeff_Mul()[0]
    return factor.p * factor.q if factor.is_Rational else 10**9


def latex(expr: Any, names: Mapping[Any, str] | None = None) -> str:
    """An expression in LaTeX, with the library's names of symbols and more."""
    symbol_names = {**symbols.LATEX, **dict(names or {})}
    symbol_names |= {symbols.plain(symbol): name for symbol, name in symbol_names.items()}
    return _Printer({"symbol_names": symbol_names, "fold_short_frac": False}).doprint(expr)


_CASES = re.compile(r"\\begin\{cases\}(.*?)\\end\{cases\}", re.DOTALL)


def terminal(math: str) -> str:
    """LaTeX mathematics as a terminal shows it."""
    math = _CASES.sub(lambda cases: cases[1].replace(r" \\ ", r",\;\; ").replace("&", r"\;"), math)
    return plain(f"${math.replace('&', '')}$")


# -- lines

_UNSEEN = re.compile(r"\\(mathrm|text|operatorname|left|right|big|Big|mathcal|widehat)|[{}^_\s]|\\[,;:!]")


def glyphs(math: str) -> int:
    """Roughly how many glyphs wide mathematics is: the longer part of a fraction counts."""
    seen = math
    for _ in range(6):
        seen = re.sub(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", lambda f: max(f[1], f[2], key=len), seen)
        seen = re.sub(r"(\^|_|\\sqrt|\\mathrm|\\text)\{([^{}]*)\}", r"\2", seen)
    seen = re.sub(r"\\(log|min|max|sinh|cosh)|[-+=]|\\[lg]e", "www", _UNSEEN.sub("", seen))
    return len(re.sub(r"\\[a-zA-Z]+|\\.", "x", seen))


def broken(math: str, width: int) -> list[str]:
    """Mathematics in lines of at most so many glyphs, cut before a + or - and behind a comma, outside of brackets."""
    lines = [""]
    for piece in cut(math, "+-", (r"\,",)):
        if lines[-1] and glyphs(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines
