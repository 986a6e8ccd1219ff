"""A formula: an expression with named parts, a list of what the names stand for, and ways to use it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import mpmath
import sympy

from boundcalc.base import symbols
from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.symbolic.functions import COLUMNS, POINTS, Lambda, expand_constants
from boundcalc.formulas.symbolic.system import Expr, number

_DIGITS = 40
"""Working precision of a single value; what is returned is a float."""
LEFT: Mapping[str, str] = {
    "gap": r"\mathrm{gap}",
    "covering_number": r"\log N(\mathcal F,\varepsilon)",
    "rademacher": r"\mathfrak R_m(\ell\circ\mathcal F)",
    "excess": r"\mathrm{excess}",
}
"""The left-hand sides of bounds of a network, by quantity."""


@dataclass(frozen=True)
class Definition:
    """A named part.

    Attributes:
        symbol: its name.
        expr: what it stands for, in terms of the inputs and of other named parts.
        meaning: a few words, their mathematics marked as in `boundcalc.base.prose`.
        latex: how papers print the name.
        stable: an equal expression that floating point can be trusted with, where `expr` is not one.
    """

    symbol: sympy.Symbol
    expr: Expr
    meaning: str
    latex: str
    stable: Expr | None = None


def _both_ways(operation: Callable[[Any, Any], Expr]) -> tuple[Callable[[Formula, Any], Expr], ...]:
    """An operation on formulas, as expressions in terms of the inputs: with a formula on the left, and on the right."""
    return (
        lambda self, other: operation(self.plain, sympy.sympify(other)),
        lambda self, other: operation(sympy.sympify(other), self.plain),
    )


@dataclass(frozen=True)
class Formula:
    """name = expr, where ...

    Attributes:
        name: what it computes, as in `boundcalc export`.
        expr: the right-hand side, in inputs and named parts.
        where: the named parts, each after those that use it.
        latex_name: the left-hand side.
        relation: "le" for a bound of the left-hand side, "eq" for a definition of it.
        conditions: what is assumed, in words, their mathematics marked, where no theorem says it.
        kind: "bound", or "proxy" where a constant is not specified.
    """

    name: str
    expr: Expr
    where: tuple[Definition, ...] = ()
    latex_name: str = ""
    relation: str = "le"
    conditions: tuple[str, ...] = ()
    kind: str = "bound"

    # -- the expression

    @cached_property
    def named(self) -> Expr:
        """Everything in terms of the inputs, the constant Lambda(k, N) kept by name."""
        return self._inlined(stable=False)

    @cached_property
    def expanded(self) -> Expr:
        """Everything in terms of the inputs."""
        return expand_constants(self.named)

    @cached_property
    def stable(self) -> Expr:
        """Everything in terms of the inputs, in a form that floating point can be trusted with."""
        return expand_constants(self._inlined(stable=True))

    def _inlined(self, *, stable: bool) -> Expr:
        expr = self.expr
        for part in self.where:
            expr = expr.xreplace({part.symbol: part.stable if stable and part.stable is not None else part.expr})
        return expr

    @cached_property
    def inputs(self) -> tuple[sympy.Symbol, ...]:
        """The symbols that need values, in the order of `boundcalc.base.symbols`."""
        parts = {part.symbol for part in self.where}
        free = {x for e in (self.expr, *(part.expr for part in self.where)) for x in e.free_symbols} - parts
        order = {entry.symbol: index for index, entry in enumerate(symbols.ENTRIES)}
        return tuple(sorted(free, key=lambda x: (order.get(x, len(order)), str(x))))  # type: ignore[arg-type]

    @property
    def uses_lambda(self) -> bool:
        """Whether the perceptron cover's constant occurs by name."""
        return any(part.has(Lambda) for part in (self.expr, *(d.expr for d in self.where)))

    @staticmethod
    def lambda_definition() -> tuple[Expr, Expr]:
        """(Lambda(k, N), what it stands for)."""
        constant: Any = Lambda(COLUMNS, POINTS)
        return constant, constant.explicit()

    def with_values(self, **values: Any) -> Formula:
        """The same formula with some inputs replaced by numbers (or other symbols)."""
        chosen = self._resolve(values, whole=True)
        where = tuple(
            replace(
                part,
                expr=part.expr.subs(chosen),
                stable=None if part.stable is None else part.stable.subs(chosen),
            )
            for part in self.where
        )
        return replace(self, expr=self.expr.subs(chosen), where=where)._without_numbers()

    def _without_numbers(self) -> Formula:
        """The same formula without named parts that are numbers, and without those that nothing reads then."""
        numbers = {part.symbol: part.expr for part in self.where if part.expr.is_number}
        if not numbers:
            return self
        expr, kept = self.expr.subs(numbers), list[Definition]()
        used = set(expr.free_symbols)
        for part in self.where:  # each stands after all that use it
            if part.symbol in used and part.symbol not in numbers:
                kept.append(replace(part, expr=part.expr.subs(numbers), stable=None))
                used |= kept[-1].expr.free_symbols
        return replace(self, expr=expr, where=tuple(kept))._without_numbers()

    def _resolve(self, values: Mapping[str, Any], *, whole: bool = False) -> dict[sympy.Symbol, Expr]:
        chosen: dict[sympy.Symbol, Expr] = {}
        for name, value in values.items():
            symbol = self._named_input(name)
            chosen[symbol] = number(value)
            entry = symbols.BY_NAME.get(symbol.name)
            if entry is not None and chosen[symbol].is_number:
                entry.check(chosen[symbol], whole=whole)
        return chosen

    def _named_input(self, name: str) -> sympy.Symbol:
        known = {symbol.name: symbol for symbol in self.inputs}
        symbol = known.get(symbols.ALIASES.get(name, name)) or known.get(name)
        if symbol is None:
            raise InvalidSetting(self._unknown(name, known))
        return symbol

    def _unknown(self, name: str, known: Iterable[str]) -> str:
        listed = f"{self.name} has {', '.join(known)}"
        symbol = symbols.BY_NAME.get(symbols.ALIASES.get(name, name))
        if symbol is not None:
            return f"{self.name} does not depend on {symbol.symbol.name}: {listed}"
        near = get_close_matches(name, [*known, *symbols.ALIASES], n=1)
        return f"no symbol {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}: {listed}"

    # -- in your own SymPy code: symbols are matched by name, and are plain positive ones

    @cached_property
    def plain(self) -> Expr:
        """Everything in terms of the inputs, as plain positive symbols."""
        return self.expanded.xreplace({symbol: symbols.plain(symbol) for symbol in self.inputs})

    def _sympy_(self) -> Expr:
        return self.plain

    def _plain_input(self, name: Any) -> sympy.Symbol:
        """The input called so, given by name or as a symbol; refuses what the formula does not have."""
        return symbols.plain(self._named_input(str(name)))

    def subs(self, *values: Any) -> Expr:
        """The expression with values for inputs, as `subs("m", 10)`, `subs(m, 10)` or `subs({m: 10})`."""
        pairs = values[0].items() if len(values) == 1 else [values]
        return self.plain.subs({self._plain_input(name): value for name, value in pairs})

    def diff(self, name: Any) -> Expr:
        """The derivative in an input."""
        return sympy.diff(self.plain, self._plain_input(name))

    @property
    def free_symbols(self) -> set[Any]:
        """The inputs, as plain symbols."""
        return set(self.plain.free_symbols)

    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(operator.mul)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv)
    __pow__, __rpow__ = _both_ways(operator.pow)

    def __neg__(self) -> Expr:
        return -self.plain

    # -- numbers

    def mp(self, **values: Any) -> Any:
        """The value as an mpmath number: any size, forty digits."""
        chosen = self._resolve(values)
        missing = [symbol.name for symbol in self.inputs if symbol not in chosen]
        if missing:
            example = ", ".join(f"{name}=1" for name in missing)
            raise InvalidSetting(f"{self.name} needs a value for {', '.join(missing)}: add {example}")
        with mpmath.workdps(_DIGITS):
            return self.at({symbol.name: _to_mp(value) for symbol, value in chosen.items()})

    def at(self, point: Mapping[str, Any]) -> Any:
        """The value at mpmath numbers, in the precision that is set."""
        resolved = {symbols.ALIASES.get(name, name): value for name, value in point.items()}
        return mpmath.mpmathify(self._mp_function(*(resolved[symbol.name] for symbol in self.inputs)))

    @cached_property
    def _mp_function(self) -> Callable[..., Any]:
        from boundcalc.formulas.symbolic.code import mpmath_function

        return mpmath_function(self)

    def value(self, **values: Any) -> float:
        """The value as a float (inf beyond the range of floats; `log10` has no such range)."""
        return float(self.mp(**values))

    def log10(self, **values: Any) -> float:
        """Base-10 logarithm of the value."""
        with mpmath.workdps(_DIGITS):
            exact = self.mp(**values)
            return float(mpmath.log10(exact)) if exact > 0 else -math.inf

    def lambdify(self, *names: str) -> Callable[..., Any]:
        """A NumPy function of the inputs named (all, in order, unless named), over arrays of any matching shape."""
        from boundcalc.formulas.symbolic.code import numpy_function

        chosen = [self._named_input(name) for name in names] if names else list(self.inputs)
        missing = [symbol.name for symbol in self.inputs if symbol not in chosen]
        if missing:
            raise InvalidSetting(f"{self.name} also depends on {', '.join(missing)}: name every input, or none")
        return numpy_function(self, chosen)

    # -- text

    def latex(self, *, expand: bool = False) -> str:
        """The formula as a display's content; `expand` writes every named part out."""
        from boundcalc.formulas.symbolic.printing import formula_latex

        return formula_latex(self, expand=expand)

    def text(self, *, expand: bool = False) -> str:
        """The formula in plain text."""
        from boundcalc.formulas.symbolic.printing import formula_text

        return formula_text(self, expand=expand)

    def code(self, language: str) -> str:
        """The closed form in another language: python, numpy, mathematica, javascript."""
        from boundcalc.formulas.symbolic.code import source

        return source(self, language)

    def leading(self, name: str, **assume: Any) -> Expr:
        """The dominant term as one input grows without end, with its constant."""
        from boundcalc.formulas.symbolic.asymptotics import leading

        return leading(self, self._named_input(name), self._resolve(assume) if assume else {})

    def exponents(self, **values: Any) -> dict[str, float]:
        """Local elasticities d log / d log x at a point, one per input."""
        from boundcalc.formulas.symbolic.asymptotics import exponents

        return exponents(self, values)

    def __str__(self) -> str:
        return self.text()

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def ordered(parts: Iterable[Definition]) -> tuple[Definition, ...]:
    """Named parts in an order in which each comes after all that use it."""
    left = list(parts)
    done: list[Definition] = []
    while left:
        for part in left:
            others = [other for other in left if other is not part]
            if not any(part.symbol in other.expr.free_symbols for other in others):
                done.append(part)
                left = others
                break
        else:
            raise ValueError("named parts refer to each other in a circle")
    return tuple(done)


def _to_mp(value: Expr) -> Any:
    if value.is_Rational:
        return mpmath.mpf(int(value.p)) / int(value.q)  # type: ignore[attr-defined]
    return mpmath.mpmathify(value.evalf(_DIGITS))
