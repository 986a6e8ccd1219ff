"""The closed form: an optimal split of the error (A1, A4), chaining in one line (G1) and the gap (G2), as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import sympy

from boundcalc.base import symbols
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import COUNTING
from boundcalc.theorems.algebra import SYMPY, Expr, LambdaT2, geometric_sum, number
from boundcalc.theorems.formula import Definition, Formula, ordered
from boundcalc.theorems.pieces import Allowed, Costed, Progression, allowed_by, pieces_of, progression

LEFT = {
    "gap": r"R(f)-\hat R_\gamma(f)",
    "covering_number": r"\log N(\mathcal F,\varepsilon)",
    "rademacher": r"\mathcal R_m(\ell\circ\mathcal F)",
    "excess": r"R(\hat f)-\inf_{f\in\mathcal F}L(f)",
}
"""The left-hand sides of bounds of a network, by quantity."""
SAMPLES = 1 + gap.CLOSED_GHOSTS
"""The gap's covers are counted on the sample and its ghosts together."""
_THIRD = sympy.Rational(1, 3)
R, G, SCALE, CAPACITY = (sympy.Symbol(name, positive=True) for name in ("r", "G", "k", "C_F"))


class Form:
    """Bounds of one network, any of whose sizes and budgets may be symbols."""

    quantities: ClassVar[tuple[str, ...]] = ()
    setting: Setting

    @property
    def formulas(self) -> dict[str, Any]:
        """What derives each formula, by quantity."""
        return {name: lambda name=name: getattr(self, name) for name in self.quantities}

    @property
    def of_readout(self) -> Any:
        """The same form of the read-out, whose error is counted as it is."""
        return replace(self, setting=self.setting.but(lipschitz=1.0))  # type: ignore[type-var]

    @property
    def m(self) -> Expr:
        """The number of examples."""
        return number(self.setting.sample.n_train)

    @property
    def log_inverse_delta(self) -> Expr:
        """log(1/delta)."""
        return sympy.log(1 / number(self.setting.sample.delta))


@dataclass(frozen=True)
class ClosedForm(Form):
    """Closed forms by covers that are named; in symbolic depth, or of an explicit list of layers.

    Attributes:
        setting: what is bounded. Minima of radii and norms are replaced by balls and by the budgets that are given.
        lemmas: names of the covering lemmas used.
    """

    quantities: ClassVar[tuple[str, ...]] = ("gap", "covering_number", "rademacher")
    setting: Setting
    lemmas: frozenset[str] = COUNTING

    @property
    def allowed(self) -> Allowed:
        """Which lemmas may be used."""
        return allowed_by(self.lemmas)

    @cached_property
    def gap(self) -> Formula:
        """Upper bound of the risk at margin training error, with probability 1 - delta."""
        factor = gap.chain_factor(SYMPY, gap.CLOSED_GHOSTS, uniform=False)
        chain, scale = chain_line(factor, self.m)
        expr = chain + gap.deviation(SYMPY, self.log_inverse_delta, self.m)
        return Formula("gap", expr, ordered(expr, [scale, *self.capacity(SAMPLES)]), LEFT["gap"])

    @cached_property
    def rademacher(self) -> Formula:
        """Upper bound of the empirical Rademacher complexity of the loss class."""
        chain, scale = chain_line(number(2), self.m)
        return Formula("rademacher", chain / 2, ordered(chain, [scale, *self.capacity(1)]), LEFT["rademacher"])

    @cached_property
    def covering_number(self) -> Formula:
        """Upper bound of log N(F, eps) on m samples, eps in the read-out."""
        if self.setting.architecture.layers is not None:  # of the layers themselves, in the output as it is read
            main, *parts = self.capacity(1)
            expr = main.expr / symbols.eps**2
        else:
            expr, parts = CAPACITY / symbols.eps**2, self.of_readout.capacity(1)
        return Formula("covering_number", expr, ordered(expr, parts), LEFT["covering_number"])

    def pattern(self, copies: int) -> Progression:
        """The blocks as a progression, on so many copies of the sample."""
        return progression(self.setting, copies * self.m, self.allowed)

    def pieces(self, copies: int) -> list[Costed]:
        """The pieces of an explicit list of layers."""
        return pieces_of(self.setting, copies * self.m, self.allowed)

    def capacity(self, copies: int) -> list[Definition]:
        """C_F with log N(e) <= C_F/e^2, and its named parts, on so many copies of the sample."""
        if self.setting.architecture.layers is not None:
            return _direct(self.pieces(copies))
        return _geometric(self.pattern(copies), number(self.setting.architecture.depth))


def chain_line(factor: Expr, m: Expr) -> tuple[Expr, Definition]:
    """2 e_J + factor * links in one line, and its k: `chain_closed` at the capacity whose k is the symbol."""
    per_root = factor / 2 * sympy.E * sympy.sqrt(2 / m)
    chain = gap.chain_closed(SYMPY, (SCALE / per_root) ** 2, factor, m)
    return chain, Definition(SCALE, per_root * sympy.sqrt(CAPACITY), "half the scale at which chaining stops", "k")


# -- sums of weights


def _term(piece: Costed, like: Costed, names: dict[Expr, sympy.Symbol], name: str) -> Expr:
    """(A gain^2)^(1/3), a minimum over lemmas by its name."""
    coefficient = piece.coefficient
    for least in sorted(coefficient.atoms(sympy.Min), key=str):
        if least.has(LambdaT2):
            letter = sympy.Symbol(f"Lambda_s{name}" + f"_{len(names) + 1}" * bool(names), positive=True)
            coefficient = coefficient.xreplace({least: names.setdefault(least, letter)})
    product = sympy.factor_terms(coefficient) * sympy.factor_terms(like.gain) ** 2
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(product))
    return sympy.Mul(*(base ** (power * _THIRD) for base, power in powers))


def _weights(
    pieces: Sequence[Costed], name: str, shown: str, like: Sequence[Costed] = ()
) -> tuple[list[Expr], list[Definition]]:
    """A1's weights of some pieces, with the gains of other ones if `like`."""
    names: dict[Expr, sympy.Symbol] = {}
    terms = [_term(piece, model, names, name) for piece, model in zip(pieces, like or pieces, strict=True)]
    meaning = "the cheaper of two covers of the scores"
    return terms, [Definition(symbol, least, meaning, rf"\Lambda_{{s}}{shown}") for least, symbol in names.items()]


def _collected(terms: Iterable[Expr]) -> Expr:
    """A sum of terms by their logarithms and constants of lemmas."""
    by_factor: dict[Expr, Expr] = {}
    for term in terms:
        powers, logs = sympy.S.One, sympy.S.One
        for factor in sympy.Mul.make_args(term):
            if factor.has(LambdaT2, sympy.log, sympy.Min) or any("Lambda" in str(x) for x in factor.free_symbols):
                logs = logs * factor
            else:
                powers = powers * factor
        by_factor[logs] = by_factor.get(logs, sympy.S.Zero) + powers
    return sympy.Add(*(logs * powers for logs, powers in by_factor.items()))


def _common_factor(terms: Sequence[Expr]) -> Expr:
    """The largest monomial of symbols that divides every term, with the number they share."""

    def monomial(term: Expr) -> dict[Expr, Expr]:
        powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
        return {base: power for base, power in powers if base.is_Symbol and power.is_Rational}

    monomials = [monomial(term) for term in terms]
    shared = set(monomials[0]).intersection(*monomials[1:])
    numbers = {sympy.Mul(*(f for f in sympy.Mul.make_args(t) if f.is_number and not f.has(sympy.log))) for t in terms}
    size = numbers.pop() if len(numbers) == 1 else sympy.S.One
    return size * sympy.Mul(*(base ** min(monomial[base] for monomial in monomials) for base in shared))


def _main(factor: Expr, inner: Expr) -> Definition:
    return Definition(CAPACITY, factor**3 * inner**3, r"capacity: $\log N(e)\le C_F/e^2$ at every scale $e$", "C_F")


def _geometric(pattern: Progression, depth: Expr) -> list[Definition]:
    """A4: the sum over blocks is a geometric one."""
    last, parts = _weights(pattern.last, "1", "(1)")
    middle, more = _weights(pattern.middle, "T", "(T)", like=pattern.last)
    back, _ = _weights(pattern.back, "w", "")
    factor = _common_factor([*last, *middle, *back])
    one, all_rows = (_collected(term / factor for term in terms) for terms in (last, middle))
    first, rest = sympy.Symbol("S_1", positive=True), sympy.Symbol("S_T", positive=True)
    if one == all_rows:  # nothing counts rows
        first = rest = sympy.Symbol("S", positive=True)
        sums = [Definition(first, one, "what a block adds", "S")]
    else:
        sums = [
            Definition(first, one, "what the last block adds, of which one row is read", "S(1)"),
            Definition(rest, all_rows, "what an earlier block adds, of which all $T$ rows are read", "S(T)"),
        ]
    inner = _collected(term / factor for term in back) + first + rest * G
    ratio = R if pattern.ratio.free_symbols else pattern.ratio
    printed, stable = geometric_sum(ratio ** (2 * _THIRD), depth - 1, ratio)
    total = Definition(G, printed, r"sum of $r^{2i/3}$ over $i = 1,\ldots,D-1$", "G", stable)
    tail = [] if ratio is not R else [Definition(R, pattern.ratio, "what one block multiplies earlier errors by", "r")]
    return [_main(factor, inner), *sums, total, *tail, *parts, *more]


def _direct(pieces: Sequence[Costed]) -> list[Definition]:
    """A1 piece by piece."""
    terms, parts = _weights(pieces, "", "")
    factor = _common_factor(terms)
    return [_main(factor, _collected(term / factor for term in terms)), *parts]
