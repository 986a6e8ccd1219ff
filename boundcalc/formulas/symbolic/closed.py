"""The closed form: A1 and A4 for log N(eps) <= C_F/eps^2, one-line chaining (G1) and the gap (G2), as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import sympy

from boundcalc.base import symbols
from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.symbolic.depth import PROBE, Progression, progression
from boundcalc.formulas.symbolic.form import Form
from boundcalc.formulas.symbolic.formula import LEFT, Definition, Formula, ordered
from boundcalc.formulas.symbolic.functions import Lambda, geometric_sum, stable_geometric_sum
from boundcalc.formulas.symbolic.pieces import THIRD, Allowed, Costed, allowed_by, costed, lowered
from boundcalc.formulas.symbolic.printing import latex
from boundcalc.formulas.symbolic.shorten import shortened, without_nested_radicals
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, number
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import COUNTING

_TWO_THIRDS = 2 * THIRD
SAMPLES = 1 + gap.CLOSED_GHOSTS
"""The gap's covers are counted on the sample and its ghosts together."""
ON_THE_SAMPLE = (
    "the sample is i.i.d. and the loss lies in $[0, 1]$",
    "the budgets are fixed before the sample is drawn",
)

R, _SUM, _SCALE, CAPACITY = (sympy.Symbol(name, positive=True) for name in ("r", "G", "k", "C_F"))
_READ_ONE, _READ_ALL = "one row of its output is read", "all $T$ rows of its output are read"


@dataclass(frozen=True)
class _Names:
    """Symbols for the sums and minima of one kind of block."""

    tag: str
    latex: str
    note: str

    @property
    def total(self) -> sympy.Symbol:
        return sympy.Symbol(f"S_{self.tag}", positive=True)

    @property
    def score(self) -> sympy.Symbol:
        return sympy.Symbol(f"Lambda_s{self.tag}", positive=True)


_LAST, _MIDDLE = _Names("1", "(1)", _READ_ONE), _Names("T", "(T)", _READ_ALL)
_BLOCK = _Names("b", "", "any block")
_FIRST = _Names("0", "(0)", "the first block")


@dataclass(frozen=True)
class ClosedForm(Form):
    """Closed-form bounds.

    Attributes:
        lemmas: names of the covering lemmas used.
        exact: lowered block by block with the true radii, instead of in symbolic depth with those of the balls.
        order: symbols each of which is assumed to be at most the next, such as C <= K_F <= K.
        plain: use the budgets given rather than smaller ones that may follow from others (in symbolic depth always).
    """

    quantities: ClassVar[tuple[str, ...]] = ("gap", "covering_number", "rademacher", "sample_complexity", "capacity")
    lemmas: frozenset[str] = COUNTING
    exact: bool = False
    order: Order = ()
    plain: bool = False

    @property
    def allowed(self) -> Allowed:
        """Which lemmas may be used."""
        return allowed_by(self.lemmas)

    # -- formulas

    @cached_property
    def gap(self) -> Formula:
        """Upper bound of the generalization gap, with probability 1 - delta."""
        m, factor = self._m, gap.chain_factor(SYMPY, gap.CLOSED_GHOSTS, uniform=False)
        chain, scale = _chain(factor, m)
        expr = chain + gap.deviation(SYMPY, sympy.log(1 / self._delta), m)
        return self._formula("gap", expr, [scale, *self._capacity(SAMPLES)], LEFT["gap"])

    @cached_property
    def rademacher(self) -> Formula:
        """Upper bound of the empirical Rademacher complexity of the loss class."""
        chain, scale = _chain(number(2), self._m)
        return self._formula("rademacher", chain / 2, [scale, *self._capacity(1)], LEFT["rademacher"])

    @cached_property
    def covering_number(self) -> Formula:
        """Upper bound of log N(F, eps) on m samples, eps in the read-out."""
        parts = self.of_readout._capacity(1)
        return self._formula("covering_number", CAPACITY / symbols.eps**2, parts, LEFT["covering_number"])

    @cached_property
    def capacity(self) -> Formula:
        """C_F, on the samples and ghost samples of the gap: log N(e) <= C_F/e^2 on the loss."""
        main, *rest = self._capacity(SAMPLES)
        return self._formula("capacity", main.expr, rest, "C_F", relation="eq")

    @cached_property
    def on_sample(self) -> Formula:
        """C_F counted on the m samples alone."""
        main, *rest = self._capacity(1)
        return self._formula("capacity", main.expr, rest, "C_F", relation="eq")

    @cached_property
    def sample_complexity(self) -> Formula:
        """A sample size that brings the gap to `target`, given C_F at that size (C_F grows like log m).

        Half the target to the chain, half to the deviation; u = t/(2(1.0853+log(1/t))) solves u(1.0853+log(1/u)) <= t.
        """
        tau, offset = symbols.target, number(gap.CLOSED_OFFSET)
        half = tau / 2
        u = half / (2 * (offset + sympy.log(1 / half)))
        factor = gap.chain_factor(SYMPY, gap.CLOSED_GHOSTS, uniform=False) / 2
        chain = 2 * CAPACITY * (2 * factor * sympy.E / u) ** 2
        expr = sympy.Max(chain, 2 * sympy.log(1 / self._delta) / tau**2)
        return self._formula("sample_complexity", expr, self._capacity(SAMPLES), "m", relation="ge")

    # -- parts

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """What the formulas assume, in words."""
        found = [*ON_THE_SAMPLE]
        if self.order:
            listed = r"\le ".join(latex(symbol) for symbol in self.order)
            found.append(f"${listed}$")
        if not self.exact:
            found += self.pattern.conditions
            if self.pattern.least_depth > 1:
                found.append(f"depth at least {self.pattern.least_depth}")
        return tuple(found)

    @cached_property
    def pattern(self) -> Progression:
        """The blocks as a progression, on 17 m samples."""
        return self._pattern(SAMPLES)

    @cached_property
    def _patterns(self) -> dict[int, Progression]:
        return {}

    def _pattern(self, copies: int) -> Progression:
        if copies not in self._patterns:
            self._patterns[copies] = progression(self.setting, copies * self._m, self.allowed, self.order)
        return self._patterns[copies]

    def pieces(self, copies: int = SAMPLES) -> list[Costed]:
        """All pieces with their coefficients; needs the depth as a number."""
        return costed(
            lowered(self.setting, cap=not self.exact, plain=self.plain, order=self.order)[0].pieces,
            copies * self._m,
            self.allowed,
            self.order,
        )

    def _formula(self, name: str, expr: Expr, where: Iterable[Definition], latex: str, relation: str = "le") -> Formula:
        used = _reachable(expr, list(where))
        return Formula(name, expr, ordered(used), latex, relation, self.conditions)

    def _capacity(self, copies: int) -> list[Definition]:
        """C_F and its named parts, on `copies` times m samples."""
        if self.exact:
            return shortened(without_nested_radicals(_direct(self.pieces(copies))))
        found = _geometric(self._pattern(copies), number(self.setting.architecture.depth))
        return shortened(without_nested_radicals(found))


def _chain(factor: Expr, m: Expr) -> tuple[Expr, Definition]:
    """2 e_J + factor * links in one line, and its k; `chain_closed` is asked at the capacity whose k is the symbol."""
    per_root = factor / 2 * sympy.E * sympy.sqrt(2 / m)
    chain = gap.chain_closed(SYMPY, (_SCALE / per_root) ** 2, factor, m)
    return chain, Definition(_SCALE, per_root * sympy.sqrt(CAPACITY), "the scale at which chaining stops, halved", "k")


def _reachable(expr: Expr, parts: Sequence[Definition]) -> list[Definition]:
    used: list[Definition] = []
    wanted = set(expr.free_symbols)
    changed = True
    while changed:
        changed = False
        for part in parts:
            if part.symbol in wanted and part not in used:
                used.append(part)
                wanted |= part.expr.free_symbols
                changed = True
    return used


# -- sums of weights


def _collected(terms: Iterable[Expr]) -> Expr:
    """A sum of terms factor * coefficient by its factors, which are logarithms and constants of lemmas."""
    by_factor: dict[Expr, Expr] = {}
    for term in terms:
        powers, logs = _split(term)
        by_factor[logs] = by_factor.get(logs, sympy.S.Zero) + powers
    return sympy.Add(*(logs * powers for logs, powers in by_factor.items()))


def _split(term: Expr) -> tuple[Expr, Expr]:
    """(powers of budgets, logarithms and the like) of a product."""
    powers, logs = sympy.S.One, sympy.S.One
    for factor in sympy.Mul.make_args(term):
        if factor.has(Lambda, sympy.log, sympy.Min) or any("Lambda" in str(x) for x in factor.free_symbols):
            logs = logs * factor
        else:
            powers = powers * factor
    return powers, logs


def _monomial(term: Expr) -> dict[Expr, Expr]:
    found: dict[Expr, Expr] = {}
    for factor in sympy.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if base.is_Symbol and power.is_Rational:
            found[base] = power
    return found


def _common_factor(terms: Sequence[Expr]) -> Expr:
    """The largest monomial of symbols that divides every term, with the number they share."""
    monomials = [_monomial(term) for term in terms]
    shared = set(monomials[0]).intersection(*monomials[1:])
    numbers = {
        sympy.Mul(*(f for f in sympy.Mul.make_args(term) if f.is_number and not f.has(sympy.log))) for term in terms
    }
    size = numbers.pop() if len(numbers) == 1 else sympy.S.One
    return size * sympy.Mul(*(base ** min(monomial[base] for monomial in monomials) for base in shared))


def _weights(
    pieces: Sequence[Costed], names: _Names, like: Sequence[Costed] | None = None
) -> tuple[list[Expr], list[Definition]]:
    """A1's weights of some pieces, with the gains of other ones if `like`; minima over lemmas get a symbol."""
    terms: list[Expr] = []
    minima: dict[Expr, sympy.Symbol] = {}
    for piece, model in zip(pieces, pieces if like is None else like, strict=True):
        coefficient = piece.coefficient
        for least in sorted(coefficient.atoms(sympy.Min), key=str):
            if not least.has(Lambda):
                continue
            if least not in minima:
                suffix = "" if not minima else f"_{len(minima) + 1}"
                minima[least] = sympy.Symbol(names.score.name + suffix, positive=True)
            coefficient = coefficient.xreplace({least: minima[least]})
        terms.append(_cube_root(sympy.factor_terms(coefficient) * sympy.factor_terms(model.gain) ** 2))
    parts = [
        Definition(
            symbol,
            least,
            f"the cheaper score cover: {names.note}",
            rf"\Lambda_{{s}}{names.latex}" + ("" if index == 0 else "'" * index),
        )
        for index, (least, symbol) in enumerate(minima.items())
    ]
    return terms, parts


def _cube_root(x: Expr) -> Expr:
    """x^(1/3) with every factor of x, all positive, raised by itself."""
    roots: list[Expr] = []
    for factor in sympy.Mul.make_args(x):
        base, power = factor.as_base_exp()
        roots.append(base ** (power * THIRD))
    return sympy.Mul(*roots)


def _geometric(pattern: Progression, depth: Expr) -> list[Definition]:
    """A4: the sum over blocks is a geometric one."""
    ratio = R if pattern.ratio.free_symbols else pattern.ratio
    q = ratio**_TWO_THIRDS
    last, parts = _weights(pattern.last, _LAST)
    middle, more = _weights(pattern.middle, _MIDDLE, like=pattern.last if pattern.smooth else None)
    parts += more
    back, more = _weights(pattern.back, _LAST)
    parts += more
    blocks = depth - 1 if not pattern.first else depth - 2
    lower, upper = (1, blocks) if pattern.smooth else (0, blocks - 1)
    ends, more = _weights([*pattern.front, *pattern.first], _FIRST)
    parts += more
    if ends:  # they are as at PROBE blocks; every further block multiplies them
        shrink = _cube_root(pattern.ratio**2) ** (PROBE - 2)
        ends = [term / shrink for term in ends]
    factor = _common_factor([*last, *middle, *back, *ends])
    inner = _collected(term / factor for term in back)
    inner = inner + _LAST.total + _MIDDLE.total * _SUM
    if ends:
        inner = inner + _FIRST.total * ratio ** (_TWO_THIRDS * (depth - 2))
        parts.append(_definition(_FIRST, ends, factor, "what comes before the second block"))
    one = _definition(_LAST, last, factor, f"a block of which {_READ_ONE}")
    all_rows = _definition(_MIDDLE, middle, factor, f"a block of which {_READ_ALL}")
    if one.expr == all_rows.expr:  # nothing counts rows
        inner = inner.xreplace({_LAST.total: _BLOCK.total, _MIDDLE.total: _BLOCK.total})
        parts.append(_definition(_BLOCK, last, factor, "a block"))
    else:
        parts += [one, all_rows]
    parts.append(_sum_definition(q, lower, upper))
    if ratio is R:
        parts.append(Definition(R, pattern.ratio, "what one block multiplies earlier errors by", "r"))
    main = Definition(CAPACITY, factor**3 * inner**3, r"$\log N(e)\le C_F/e^2$ at every scale $e$", "C_F")
    return [main, *parts]


def _definition(names: _Names, terms: Sequence[Expr], factor: Expr, note: str) -> Definition:
    expr = _collected(term / factor for term in terms)
    return Definition(names.total, expr, f"A1's weights of {note}", f"S{names.latex}")


def _sum_definition(q: Expr, lower: int, upper: Expr) -> Definition:
    value = geometric_sum(q, upper, lower=lower)
    value = value.xreplace({sympy.Eq(q, 1): sympy.Eq(R, 1)}) if q.has(R) else value
    note = rf"sum of $r^{{2i/3}}$ over $i = {lower},\ldots,{latex(upper)}$"
    return Definition(_SUM, value, note, "G", stable_geometric_sum(q, upper, lower=lower))


def _direct(pieces: Sequence[Costed]) -> list[Definition]:
    """A1 piece by piece, block by block."""
    blocks = sorted({piece.block for piece in pieces if piece.block is not None})
    parts: list[Definition] = []
    totals: list[Expr] = []
    outside, more = _weights(
        [piece for piece in pieces if piece.block is None], _Names("w", "[w]", "the layers outside the blocks")
    )
    parts += more
    inside: list[tuple[_Names, list[Expr]]] = []
    for block in blocks:
        names = _Names(f"b{block}", f"[{block}]", f"block {block}")
        terms, more = _weights([piece for piece in pieces if piece.block == block], names)
        parts += more
        inside.append((names, terms))
    factor = _common_factor([*outside, *(term for _, terms in inside for term in terms)])
    totals.append(_collected(term / factor for term in outside))
    for names, terms in inside:
        parts.append(_definition(names, terms, factor, names.note))
        totals.append(names.total)
    main = Definition(
        CAPACITY, factor**3 * sympy.Add(*totals) ** 3, r"$\log N(e)\le C_F/e^2$ at every scale $e$", "C_F"
    )
    return [main, *parts]


def closed_form(
    setting: Setting,
    *,
    lemmas: frozenset[str] = COUNTING,
    exact: bool = False,
    order: Order = (),
    plain: bool = False,
) -> ClosedForm:
    """The closed forms of a setting, in symbolic depth unless `exact` asks for the true radii of every block."""
    if exact and not isinstance(setting.architecture.depth, int):
        raise InvalidSetting("exact radii need the depth as a number: give depth, or leave out exact")
    return ClosedForm(setting, lemmas, exact, order, plain)
