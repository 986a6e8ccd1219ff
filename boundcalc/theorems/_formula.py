"""A formula: an expression with named parts, which SymPy understands, and its values, code and LaTeX."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.theorems import symbols
from boundcalc.theorems._algebra import Expr, Named, number, written_out
from boundcalc.theorems._printing import SIGNS, WIDE, broken, glyphs, latex, terminal

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class Definition:
    """A named part.

    Attributes:
        symbol: its name in code.
        expr: what it stands for, in terms of the inputs and of other named parts.
        latex: how papers print the name.
        stable: an equal expression that floating point can be trusted with, where `expr` is not one.
    """

    symbol: sympy.Symbol
    expr: Expr
    latex: str
    stable: Expr | None = None

    @property
    def computed(self) -> Expr:
        """The expression that code evaluates."""
        return self.expr if self.stable is None else self.stable


def _both_ways(operation: Callable[[Any, Any], Expr]) -> tuple[Callable[[Formula, Any], Expr], ...]:
    """An operation on formulas, as plain expressions: with a formula on the left, and on the right."""
    return (
        lambda self, other: operation(self.plain, sympy.sympify(other)),
        lambda self, other: operation(sympy.sympify(other), self.plain),
    )


@dataclass(frozen=True)
class Formula:
    """left <= expr, where each named part is given. In SymPy code it is an expression in plain positive symbols.

    Attributes:
        name: the quantity it bounds, and the name of the function in code.
        expr: the right-hand side, in inputs and named parts.
        where: the named parts, each after those that use it.
        left: LaTeX of the left-hand side.
        relation: "le" for an upper bound of the left-hand side, "ge" for a lower one.
        kind: "bound", or "proxy" where a constant is not specified.
    """

    name: str
    expr: Expr
    where: tuple[Definition, ...] = ()
    left: str = ""
    relation: str = "le"
    kind: str = "bound"

    @cached_property
    def inputs(self) -> tuple[sympy.Symbol, ...]:
        """The symbols that need values, in the order of `boundcalc.symbols`."""
        parts = {part.symbol for part in self.where}
        free = {x for e in (self.expr, *(part.expr for part in self.where)) for x in e.free_symbols} - parts
        order = {entry.symbol: index for index, entry in enumerate(symbols.ENTRIES)}
        return tuple(sorted(free, key=lambda x: (order.get(x, len(order)), str(x))))  # type: ignore[arg-type]

    @cached_property
    def named(self) -> Expr:
        """The right-hand side in terms of the inputs, functions with a letter kept."""
        expr = self.expr
        for part in self.where:
            expr = expr.xreplace({part.symbol: part.expr})
        return expr

    def with_values(self, **values: Any) -> Formula:
        """The same formula with some inputs replaced by numbers; named parts that become numbers vanish."""
        chosen = dict[Any, Expr](self.resolve(values, whole=True))
        kept: list[Definition] = []
        for part in reversed(self.where):  # each is in terms of those behind it
            put = replace(part, expr=part.expr.subs(chosen), stable=part.computed.subs(chosen))
            if put.expr.is_number and not part.expr.is_number:
                chosen[part.symbol] = put.expr
            else:
                kept.insert(0, put)
        expr = self.expr.subs(chosen)
        return replace(self, expr=expr, where=ordered(expr, kept))

    # -- inputs by name

    def resolve(self, values: Mapping[Any, Any], *, whole: bool = False) -> dict[sympy.Symbol, Expr]:
        """The symbols that names stand for, with their values; refuses what the formula does not have."""
        chosen: dict[sympy.Symbol, Expr] = {}
        for name, value in values.items():
            symbol = self.input(name)
            chosen[symbol] = number(value)
            entry = symbols.BY_NAME.get(symbol.name)
            if entry is not None and chosen[symbol].is_number:
                entry.check(chosen[symbol], whole=whole)
        return chosen

    def input(self, name: Any) -> sympy.Symbol:
        """The input of a name, or called as a symbol."""
        by_name, name = {symbol.name: symbol for symbol in self.inputs}, str(name)
        symbol = by_name.get(symbols.ALIASES.get(name, name)) or by_name.get(name)
        if symbol is not None:
            return symbol
        listed = f"{self.name} has {', '.join(by_name)}"
        if (entry := symbols.BY_NAME.get(symbols.ALIASES.get(name, name))) is not None:
            raise InvalidSetting(f"{self.name} does not depend on {entry.symbol.name}: {listed}")
        near = get_close_matches(name, [*by_name, *symbols.ALIASES], n=1)
        raise InvalidSetting(f"no symbol {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}: {listed}")

    # -- in your own SymPy code

    @cached_property
    def plain(self) -> Expr:
        """The right-hand side in terms of the inputs, as the plain positive symbols of `boundcalc.symbols`."""
        return written_out(self.named).xreplace({symbol: symbols.plain(symbol) for symbol in self.inputs})

    def _sympy_(self) -> Expr:
        return self.plain

    def _latex(self, printer: Any) -> str:
        del printer
        return latex(self.named)

    def subs(self, *values: Any) -> Expr:
        """The expression with values for inputs, as `subs("m", 10)`, `subs(m, 10)` or `subs({m: 10})`."""
        pairs = values[0].items() if len(values) == 1 else [values]
        return self.plain.subs({symbols.plain(self.input(name)): value for name, value in pairs})

    def diff(self, name: Any) -> Expr:
        """The derivative in an input."""
        return sympy.diff(self.plain, symbols.plain(self.input(name)))

    def limit(self, name: Any, to: Any = sympy.oo, **values: Any) -> Expr:
        """The limit as an input grows without end, of what is left."""
        if to != sympy.oo:
            raise Unsupported(Refusal(f"limit({name}, {to})", "a finite point", "infinity", "Put it in by subs()."))
        from boundcalc.theorems._growth import limit

        return limit(self, self.input(name), self.resolve(values))

    def leading(self, name: Any, **values: Any) -> Expr:
        """The dominant term as one input grows without end, with its constant, in terms of the inputs."""
        from boundcalc.theorems._growth import leading

        return leading(self, self.input(name), self.resolve(values))

    @property
    def free_symbols(self) -> set[Any]:
        """The inputs, as plain symbols."""
        return {symbols.plain(symbol) for symbol in self.inputs}

    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(operator.mul)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv)
    __pow__, __rpow__ = _both_ways(operator.pow)

    def __neg__(self) -> Expr:
        return -self.plain

    # -- numbers

    def ball(self, **values: Any) -> arb:
        """An enclosure of the value, of any size."""
        chosen = self.resolve(values)
        missing = [symbol.name for symbol in self.inputs if symbol not in chosen]
        if missing:
            example = ", ".join(f"{name}=1" for name in missing)
            raise InvalidSetting(f"{self.name} needs a value for {', '.join(missing)}: add {example}")
        from boundcalc.theorems._code import enclose

        return enclose(self, chosen)

    def value(self, **values: Any) -> float:
        """The value as a float (inf beyond the range of floats; `log10` has no such range)."""
        return float(self.ball(**values).mid())

    def log10(self, **values: Any) -> float:
        """Base-10 logarithm of the value."""
        ball = self.ball(**values)
        return float(ball.log().mid()) / math.log(10) if ball > 0 else -math.inf

    def lambdify(self, *names: Any, **values: Any) -> Callable[..., Any]:
        """A NumPy function of the inputs named (all in order, unless named); inputs given by keyword are fixed."""
        from boundcalc.theorems._code import numpy_function

        fixed = self.resolve(values)
        chosen = [self.input(name) for name in names] or [symbol for symbol in self.inputs if symbol not in fixed]
        missing = [symbol.name for symbol in self.inputs if symbol not in chosen and symbol not in fixed]
        if missing:
            raise InvalidSetting(f"{self.name} also depends on {', '.join(missing)}: name or fix every input, or none")
        return numpy_function(self, chosen, fixed)

    def code(self, language: str) -> str:
        """A function in "python" or "javascript"."""
        from boundcalc.theorems._code import source

        return source(self, language)

    # -- text

    @property
    def names(self) -> dict[Any, str]:
        """LaTeX of the named parts."""
        return {part.symbol: part.latex for part in self.where}

    def rows(self, width: int = WIDE, names: Mapping[Any, str] | None = None) -> tuple[list[str], list[str]]:
        """Lines of a display, `&` before the relation: of the formula, and of its named parts."""
        letters = {**self.names, **(names or {})}
        parts = [row for part in self.where for row in rows_of(part.latex, "eq", part.expr, letters, width)]
        for function in _functions_in(self.expr, *(part.expr for part in self.where)):
            parts += _definition_rows(function, letters, width)
        return rows_of(self.left or self.name, self.relation, self.expr, letters, width), parts

    def latex(self, width: int = WIDE) -> str:
        """The formula as a display's content."""
        main, parts = self.rows(width)
        return "\\begin{aligned}\n" + " \\\\\n".join([*main, *parts]) + "\n\\end{aligned}"

    def text(self) -> str:
        """The formula as a terminal shows it, a named part a line."""
        main, parts = self.rows(10**6)
        return "\n".join([*map(terminal, main), *(f"  {terminal(row)}" for row in parts)])

    def __str__(self) -> str:
        return self.text()

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def rows_of(left: str, relation: str, expr: Any, names: Mapping[Any, str], width: int = WIDE) -> list[str]:
    """`left & sign expression`, broken before the terms of a sum where it is wider than a line."""
    first, *rest = broken(expr if isinstance(expr, str) else latex(expr, names), width - glyphs(left) - 2)
    return [f"{left} &{SIGNS[relation]} {first}", *(rf"&\qquad {{}}{line}" for line in rest)]


def _functions_in(*exprs: Expr) -> list[type[Named]]:
    """The functions with a letter that expressions use, and those that these use."""
    functions: dict[type[Named], None] = {}
    todo = list(exprs)
    while todo:
        for function in sorted({type(e) for e in todo.pop().atoms(Named)}, key=lambda f: f.letter):
            if function not in functions:
                functions[function] = None
                todo.append(function.value)
    return list(functions)


def _definition_rows(function: type[Named], names: Mapping[Any, str], width: int = WIDE) -> list[str]:
    """What a function with a letter stands for, and its letters but for those that have a row of their own."""
    rows = rows_of(latex(function(*function.variables)), "eq", function.value, names, width)
    letters = [f"{latex(x, names)} = {latex(e, names)}" for x, e in function.where.items() if x not in names]
    if not letters:
        return rows
    where = r",\quad ".join(letters)
    if glyphs(rows[-1] + where) > width:
        return [*rows[:-1], f"{rows[-1]},", rf"&\qquad {where}"]
    return [*rows[:-1], rf"{rows[-1]},\quad {where}"]


def ordered(expr: Expr, parts: Iterable[Definition]) -> tuple[Definition, ...]:
    """The named parts that an expression uses, in an order in which each comes after all that use it."""
    by_symbol = {part.symbol: part for part in parts}
    order = list(by_symbol)
    done: dict[Any, Definition] = {}

    def emit(used: set[Any]) -> None:
        for symbol in sorted(used & by_symbol.keys(), key=order.index, reverse=True):
            if symbol not in done:
                emit(by_symbol[symbol].expr.free_symbols)
                done[symbol] = by_symbol[symbol]

    emit(expr.free_symbols)
    return tuple(reversed(done.values()))
