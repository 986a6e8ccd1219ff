"""How formulas are printed: LaTeX with the symbols papers use, and plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from boundcalc.base import symbols
from boundcalc.formulas.symbolic.functions import COLUMNS, POINTS, expand_constants
from boundcalc.formulas.symbolic.system import Expr

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

RELATIONS = {"le": (r"\le", "<="), "eq": ("=", "="), "ge": (r"\ge", ">=")}


_ZEROS = 5
"""Integers that end in more zeros are printed with a power of ten."""


def decimal(x: Any) -> str | None:
    """A fraction as a decimal, where that ends and reads better."""
    p, q = int(x.p), int(x.q)
    if q == 1 or (abs(p) < 100 and q < 100):
        return None
    rest = q
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return None
    text = str(sympy.Float(x, 20)).rstrip("0")
    return text if len(text) < 12 else None


def _merge_roots(expr: Any) -> tuple[Any, Any] | None:
    """A product of several square roots as (rest, radicand): sqrt(2) sqrt(x)/(2 sqrt(y)) is sqrt(x/(2y))."""
    halves: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    for factor in expr.args:
        base, power = factor.as_base_exp()
        if abs(power) == sympy.S.Half and base is not sympy.E:
            halves.append((base, 2 * power))
        else:
            rest.append(factor)
    if len(halves) < 2:
        return None
    radicand = sympy.Mul(*(base**sign for base, sign in halves))
    size: Any = radicand.as_coeff_Mul()[0]
    coefficient, others = sympy.Mul(*rest).as_coeff_Mul()
    absorbed: Any = coefficient**2 * size
    if coefficient > 0 and absorbed.is_Rational and absorbed.p * absorbed.q <= size.p * size.q:
        return others, radicand * coefficient**2
    return coefficient * others, radicand


class Cases:
    """The cases of an expression one after the other, each printed as `_case` says."""

    def _print_Piecewise(self, expr: Any) -> Any:
        (value, condition), *rest = expr.args
        shown = self._print(value)  # type: ignore[attr-defined]
        if not rest or condition is sympy.true:
            return shown
        return self._case(condition, shown, self._print(sympy.Piecewise(*rest)))  # type: ignore[attr-defined]


class _Formulas:
    """How formulas are printed: sums start with a positive term, roots that are multiplied are one root, as `_root` says."""

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = super()._as_ordered_terms(expr, order=order)  # type: ignore[misc]
        return sorted(terms, key=lambda term: bool(term.as_coeff_Mul()[0] < 0))

    def _print_Mul(self, expr: Any) -> Any:
        merged = _merge_roots(expr)
        return super()._print_Mul(expr) if merged is None else self._root(expr, *merged)  # type: ignore[attr-defined]


def _in_thousands(expr: Any) -> tuple[str, int]:
    """An integer's digits without the zeros at its end, and how many those are where they are many."""
    digits = str(int(expr))
    head = digits.rstrip("0")
    zeros = len(digits) - len(head)
    return (digits, 0) if zeros < _ZEROS else (head, zeros)


class _Latex(_Formulas, LatexPrinter):
    def _print_Rational(self, expr: Any) -> str:
        return decimal(expr) or super()._print_Rational(expr)

    def _print_Integer(self, expr: Any) -> str:
        head, zeros = _in_thousands(expr)
        if not zeros:
            return head
        return f"10^{{{zeros}}}" if head == "1" else rf"{head} \cdot 10^{{{zeros}}}"

    def _root(self, expr: Any, rest: Any, radicand: Any) -> str:
        root = rf"\sqrt{{{self._print(radicand)}}}"
        return root if rest == 1 else f"{self._print(rest)} {root}"

    def _print_Pow(self, expr: Any) -> str:
        power = expr.exp
        if expr.base.is_Integer and not power.is_Rational and "^" in self._print(expr.base):
            return rf"\left({self._print(expr.base)}\right)^{{{self._print(power)}}}"
        if power.is_Rational and power.q not in (1, 2) and power > 0:
            base = self.parenthesize(expr.base, PRECEDENCE["Pow"])
            if expr.base.is_Function:
                return self._print(expr.base, exp=f"{power.p}/{power.q}")
            return f"{base}^{{{power.p}/{power.q}}}"
        top, bottom = sympy.fraction(sympy.together(power))
        if bottom.is_Integer and bottom > 1 and not power.is_Rational:
            inner = f"({self._print(top)})" if top.is_Add else self._print(top)
            return f"{self.parenthesize(expr.base, PRECEDENCE['Pow'])}^{{{inner}/{bottom}}}"
        return super()._print_Pow(expr)

    def _print_Exp1(self, expr: Any, exp: Any = None) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return "e" if exp is None else f"e^{{{exp}}}"

    def _print_log(self, expr: Any, exp: Any = None) -> str:
        power, arg = "" if exp is None else f"^{{{exp}}}", expr.args[0]
        if arg.is_Pow and arg.exp == -1 and arg.base.is_Symbol:
            return rf"\log{power}(1/{self._print(arg.base)})"
        return rf"\log{power}\left({self._print(arg)}\right)"

    def _print_Piecewise(self, expr: Any) -> str:
        rows: list[str] = []
        for value, condition in expr.args:
            case = r"\text{otherwise}" if condition is sympy.true else rf"\text{{if }} {self._print(condition)}"
            rows.append(rf"{self._print(value)}, & {case}")
        return r"\begin{cases}" + r" \\[2pt] ".join(rows) + r"\end{cases}"

    def _print_Max(self, expr: Any, exp: Any = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        listed = r",\, ".join(self._print(arg) for arg in sorted(expr.args, key=lambda a: a.count_ops()))
        return rf"\{type(expr).__name__.lower()}{power}\Big\{{{listed}\Big\}}"

    _print_Min = _print_Max  # noqa: N815 - as sympy calls it


class _Text(Cases, _Formulas, StrPrinter):
    def _print_Integer(self, expr: Any) -> str:
        head, zeros = _in_thousands(expr)
        if not zeros:
            return head
        return f"{head[:-1]}10**{zeros}" if head in ("1", "-1") else f"{head}e{zeros}"

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        shown = super()._print_Pow(expr, rational)
        base = self._print(expr.base)
        if expr.base.is_Integer and "**" in base and shown.startswith(base):
            return f"({base}){shown[len(base) :]}"
        return shown

    def _print_Rational(self, expr: Any) -> str:
        return decimal(expr) or super()._print_Rational(expr)

    def _root(self, expr: Any, rest: Any, radicand: Any) -> str:
        root = f"sqrt({self._print(radicand)})"
        if rest.could_extract_minus_sign():
            return f"-{self._print_Mul(-expr)}"
        if rest == 1:
            return root
        top, bottom = rest.as_numer_denom()
        head = "" if top == 1 else f"{self.parenthesize(top, PRECEDENCE['Mul'], strict=True)}*"
        tail = "" if bottom == 1 else f"/{self.parenthesize(bottom, PRECEDENCE['Pow'])}"
        return f"{head}{root}{tail}"

    def _case(self, condition: Any, value: str, other: str) -> str:
        return f"({value} if {_condition(condition)} else {other})"

    def _print_Max(self, expr: Any) -> str:
        listed = ", ".join(self._print(arg) for arg in sorted(expr.args, key=lambda a: a.count_ops()))
        return f"{type(expr).__name__.lower()}({listed})"

    _print_Min = _print_Max  # noqa: N815 - as sympy calls it

    def _print_Exp1(self, expr: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return "e"


def latex(expr: Any, names: Mapping[Any, str] | None = None) -> str:
    """An expression in LaTeX, with the library's names of symbols and more."""
    settings: dict[str, Any] = {
        "symbol_names": {**symbols.LATEX, **dict(names or {})},
        "ln_notation": False,
        "fold_short_frac": False,
        "mul_symbol": r" ",
    }
    return _Latex(settings).doprint(expr)


def text(expr: Any) -> str:
    """An expression in plain text."""
    return _Text().doprint(expr)


def _condition(condition: Any) -> str:
    """A comparison in plain text."""
    sign = "=" if isinstance(condition, sympy.Eq) else condition.rel_op
    return f"{text(condition.lhs)} {sign} {text(condition.rhs)}"


def _names_of(formula: Formula) -> dict[Any, str]:
    """LaTeX of the named parts of a formula."""
    return {part.symbol: part.latex for part in formula.where}


def left_hand_side(formula: Formula) -> str:
    """LaTeX of what a formula bounds."""
    return formula.latex_name or rf"\text{{{formula.name.replace('_', ' ')}}}"


def equation(formula: Formula) -> str:
    """LaTeX of the formula itself, without its named parts."""
    sign = RELATIONS[formula.relation][0]
    return f"{left_hand_side(formula)} {sign} {latex(formula.expr, _names_of(formula))}"


def short_lambda(formula: Formula) -> tuple[Expr, Expr, Expr]:
    """The perceptron cover's constant, its definition with a letter w inside, and w."""
    constant, explicit = formula.lambda_definition()
    wide = 2 * POINTS * COLUMNS + 1
    return constant, explicit.subs(wide, sympy.Symbol("w", positive=True)), wide


def lambda_latex(formula: Formula) -> tuple[str, str]:
    """LaTeX of the definition of the perceptron cover's constant: (left, right), with a letter for its logarithm."""
    constant, short, _wide = short_lambda(formula)
    return latex(constant), latex(short) + r",\quad w = 2qN+1"


def formula_latex(formula: Formula, *, expand: bool = False) -> str:
    """A formula with its named parts, as the content of a display (`aligned`)."""
    if expand:
        sign = RELATIONS[formula.relation][0]
        return f"{left_hand_side(formula)} {sign} {latex(expand_constants(formula.expanded))}"
    names, sign = _names_of(formula), RELATIONS[formula.relation][0]
    rows = [f"{left_hand_side(formula)} &{sign} {latex(formula.expr, names)}"]
    rows += [f"{part.latex} &= {latex(part.expr, names)}" for part in formula.where]
    if formula.uses_lambda:
        left, right = lambda_latex(formula)
        rows.append(f"{left} &= {right}")
    if len(rows) == 1:
        return rows[0].replace("&", "", 1)
    return "\\begin{aligned}\n" + ", \\\\\n".join(rows) + "\n\\end{aligned}"


def formula_text(formula: Formula, *, expand: bool = False) -> str:
    """A formula with its named parts, one per line."""
    sign = RELATIONS[formula.relation][1]
    if expand:
        return f"{formula.name} {sign} {text(formula.expanded)}"
    lines = [f"{formula.name} {sign} {text(formula.expr)}"]
    lines += [f"  {part.symbol} = {case_text(part.expr)}" for part in formula.where]
    if formula.uses_lambda:
        constant, short, _wide = short_lambda(formula)
        lines.append(f"  {text(constant)} = {text(short)}, w = 2*q*N + 1")
    return "\n".join(lines)


def case_text(expr: Expr) -> str:
    """An expression in plain text, its cases side by side."""
    if not isinstance(expr, sympy.Piecewise):
        return text(expr)
    return ", ".join(
        f"{text(value)} {'otherwise' if condition is sympy.true else f'if {_condition(condition)}'}"
        for value, condition in expr.args  # type: ignore[misc]
    )
