"""`closed_form`: derives a bound of your own network as a formula, by the walk through it in SymPy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
from flint import arb

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.intervals import certainly_le
from boundcalc.base.validate import choice
from boundcalc.layers.base import Layer
from boundcalc.layers.facts import Context, Facts, Member, Target
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import ALWAYS, COUNTING, LEMMAS, CoverLemma
from boundcalc.statements.network import Network, Piece, claimed, loss_lipschitz
from boundcalc.theorems._algebra import Expr, number
from boundcalc.theorems._code import ball
from boundcalc.theorems._data import FORMULAS, LEFT
from boundcalc.theorems._formula import Definition, Formula, ordered
from boundcalc.theorems.symbols import symbol

_THIRD = sympy.Rational(1, 3)
_SHORT = 12
"""Expressions of more operations than this get a letter of their own."""


def closed_form(setting: Setting, quantity: str = "gap", lemmas: Collection[str] = COUNTING) -> Formula:
    """The formula of a bound, derived for a setting any of whose numbers but the depth may be SymPy symbols.

    Covers by the cheapest lemma, an optimal split of the error (A1), chaining in one line (G1) and the gap (G2): what
    the policy `closed` computes. Where symbols leave a minimum of radii or norms open, one of them stands for it, so
    that the formula is never below that policy's value.

    Args:
        setting: what is bounded; its symbols are positive (`boundcalc.symbols` has some).
        quantity: "gap", "covering_number" (on m samples, at scale epsilon of the output) or "rademacher".
        lemmas: names of the covering lemmas that may be used besides those of offsets, gains and tables.

    Returns:
        the formula, with its named parts; `value`, `log10`, `latex` and SymPy's own functions work on it.

    Raises:
        Unsupported: where a piece has no such cover, or sizes are compared that are symbols.
    """
    choice("quantity", quantity, FORMULAS["closed"])
    setting.refuse_missing()
    if setting.norms.measured or setting.sample.measured:
        raise InvalidSetting("a formula is of norms and margins fixed before the sample; give them as not measured")
    of_output = quantity == "covering_number"
    copies = 1 + gap.CLOSED_GHOSTS if quantity == "gap" else 1
    derivation = _Derivation(frozenset(LEMMAS[name].name for name in lemmas) | ALWAYS)
    m = number(setting.sample.n_train)
    try:
        lipschitz = 1 if of_output else loss_lipschitz(derivation.ns, setting)
        capacity = derivation.capacity(setting.but(lipschitz=1.0), copies * m)
    except TypeError as error:
        if "truth value" not in str(error) and "interpreted as an integer" not in str(error):
            raise
        fix = "Give sizes as numbers; C, T, m, gamma and delta may stay symbols."
        raise Unsupported(
            Refusal("the formula", "sizes that it cannot compare as symbols", "sizes it can", fix)
        ) from None
    main = derivation.named("C_F", lipschitz**2 * capacity)
    if of_output:
        return derivation.formula(quantity, main / symbol("epsilon") ** 2)
    factor = gap.chain_factor(derivation.ns, gap.CLOSED_GHOSTS if quantity == "gap" else 1)
    per_root = factor / 2 * sympy.E * sympy.sqrt(2 / m)
    scale = derivation.named("k", per_root * sympy.sqrt(main))
    chain = gap.chain_closed(derivation.ns, (scale / per_root) ** 2, factor, m)
    if quantity == "rademacher":
        return derivation.formula(quantity, chain / 2)
    inverse = sympy.log(1 / number(setting.sample.delta))
    return derivation.formula(quantity, chain + gap.deviation(derivation.ns, inverse, m))


# -- SymPy as a number system of the calculus


def _at_least_one(x: Expr) -> bool:
    """Whether x >= 1 whatever its symbols are (False: not known)."""
    if x.is_number:
        return bool(x >= 1)
    if x.is_Symbol:
        return bool(x.is_integer or symbol(x.name).is_integer)
    if isinstance(x, sympy.Pow):
        return bool(x.exp.is_nonnegative) and _at_least_one(x.base)
    if isinstance(x, sympy.Mul):
        return all(map(_at_least_one, x.args))
    return isinstance(x, sympy.Add) and any(map(_at_least_one, x.args)) and all(arg.is_nonnegative for arg in x.args)


@dataclass
class _SympySystem:
    """Expressions in positive symbols.

    A minimum that the symbols leave open becomes a number among its arguments, else the last symbol among them, the
    budget that was set. Radii, norms and gains enter a bound increasingly, so the result is an upper bound.

    Attributes:
        values: enclosures of the letters that stand for numbers.
    """

    values: dict[Expr, arb] = field(default_factory=dict[Expr, arb])

    name = "sympy"
    pi = sympy.pi
    number = staticmethod(number)
    log, exp, sqrt, ceil = (staticmethod(f) for f in (sympy.log, sympy.exp, sympy.sqrt, sympy.ceiling))
    lgamma, maximum = staticmethod(sympy.loggamma), staticmethod(sympy.Max)

    @staticmethod
    def log1p(x: Any) -> Expr:
        return sympy.log(1 + sympy.sympify(x))

    @staticmethod
    def expm1(x: Any) -> Expr:
        return sympy.exp(x) - 1

    @staticmethod
    def lgamma_sum(x: Any, count: int) -> Expr:
        return sympy.Add(*(sympy.loggamma(x + i) for i in range(count)))

    def is_known(self, x: Expr) -> bool:
        """Whether an expression stands for a number."""
        return x.free_symbols <= self.values.keys()

    def known_le(self, a: Expr, b: Expr) -> bool:
        """Whether a <= b whatever the symbols are, all of them positive (False: not known)."""
        if a != b and self.is_known(a) and self.is_known(b):
            return certainly_le(ball(a, self.values), ball(b, self.values))
        return a == b or _at_least_one(b / a)

    def minimum(self, *xs: Any) -> Expr:
        left: list[Expr] = []
        for x in map(sympy.sympify, xs):
            if not any(self.known_le(other, x) for other in left):
                left = [*(other for other in left if not self.known_le(x, other)), x]
        simple = [x for x in left if x.is_Symbol] + [x for x in left if self.is_known(x)]
        return left[0] if len(left) == 1 else simple[-1] if simple else sympy.Min(*left)


# -- the derivation

Option = tuple[CoverLemma, Target, Expr, Expr]
"""A lemma on a target, with its points and its reach."""


@dataclass
class _Derivation:
    """One formula on its way: the lemmas it may use, and the parts that have a letter, by name."""

    lemmas: frozenset[str]
    ns: _SympySystem = field(default_factory=_SympySystem)
    parts: dict[str, Definition] = field(default_factory=dict[str, Definition])

    def named(self, name: str, expr: Expr, latex: str = "") -> sympy.Symbol:
        """The letter of a part."""
        part = sympy.Dummy(name, positive=True)  # no symbol of the setting, whatever that is called
        self.parts[name] = Definition(part, expr, latex or name)
        return part

    def short(self, expr: Any, letter: str, latex: str, most: int = _SHORT) -> Expr:
        """The expression, or where it is long the letter that stands for it, always the same one."""
        if not isinstance(expr, sympy.Basic) or expr.count_ops() <= most:
            return expr
        like = [part.symbol for part in self.parts.values() if part.expr == expr]
        count = 1 + sum(name.startswith(f"{letter}_") for name in self.parts)
        part = like[0] if like else self.named(f"{letter}_{count}", expr, f"{latex}_{{{count}}}")
        if self.ns.is_known(expr):
            self.ns.values[part] = ball(expr, self.ns.values)
        return part

    def measure(self, layer: Layer, at: Context) -> Facts:
        """What a layer says of itself; long radii and Lipschitz factors by letters."""
        facts = claimed(layer, replace(at, radius=self.short(at.radius, "b", "b")))
        radius, lipschitz = self.short(facts.radius, "b", "b"), self.short(facts.lipschitz, "lambda", r"\lambda")
        return replace(facts, radius=radius, lipschitz=lipschitz)

    def capacity(self, setting: Setting, samples: Expr) -> Expr:
        """A1: C_F with log N(e) <= C_F/e^2, from A_j/eps_j^2 for every piece j under sum_j kappa_j eps_j = e."""
        pieces = Network(setting, self.ns, measure=self.measure).pieces
        terms = [_cube_root(self.cost(piece, samples) * self.gain(piece) ** 2) for piece in pieces]
        shared = _common_factor(terms)
        return shared**3 * _collected(term / shared for term in terms) ** 3

    def gain(self, piece: Piece) -> Expr:
        """Kappa_j, its sums by letters."""
        factors = sympy.Mul.make_args(sympy.factor_terms(piece.gain))
        powers = (factor.as_base_exp() for factor in factors)
        return sympy.Mul(*((self.short(x, "r", "r", most=1) if x.is_Add else x) ** power for x, power in powers))

    def cost(self, piece: Piece, samples: Expr) -> Expr:
        """A_j: the cheapest cover of every member at eps = 1."""
        least = (_whole(m.multiplicity) * self.cheapest(piece.key, m, samples) for m in piece.members)
        return sympy.factor_terms(sympy.Add(*least))

    def cheapest(self, key: str, member: Member, samples: Expr) -> Expr:
        """The least cost of a member; a reach that all its covers share stands before the minimum."""
        options: list[Option] = []
        for target in member.targets:
            for lemma in (LEMMAS[name] for name in LEMMAS if name in self.lemmas):
                if lemma.quadratic and not lemma.published and lemma.applies(target) is None:
                    shown, cap = sympy.sympify(target.points.per_sample * samples), target.points.cap
                    points = shown if cap is None else self.ns.minimum(shown, cap)
                    options.append((lemma, target, points, lemma.reach(target)))
        if not options:
            what = f"the piece {key} (a {member.targets[0].kind})"
            raise Unsupported(Refusal("the formula", what, f"a cover by one of {', '.join(sorted(self.lemmas))}"))
        least = [a for i, a in enumerate(options) if not any(self.dominates(b, a) for b in options[:i])]
        costs = [
            (reach**2, self.short(sympy.sympify(lemma.closed(self.ns, sympy.S.One, target, n)), "Lambda", r"\Lambda"))
            for lemma, target, n, reach in least
        ]
        shared = costs[0][0]
        if all(square == shared for square, _ in costs):
            smallest = [cost for _, cost in costs]
            return shared * self.short(sympy.Min(*smallest), "A", "A", most=3)
        return self.short(sympy.Min(*(square * cost for square, cost in costs)), "A", "A", most=3)

    def dominates(self, a: Option, b: Option) -> bool:
        """Whether cover a is known never to cost more than cover b: both count points, a counts no more."""
        (first, target, points, reach), (second, other, others, farther) = a, b
        if not {first.name, second.name} <= COUNTING or first.name not in ("T1", second.name):
            return False  # the log(2N + 1) of T1 is at most any other
        choices, more = (1 if lemma.name == "T1" else of.k for lemma, of in ((first, target), (second, other)))
        counted, more = sympy.sympify(points * choices), others * more
        return self.ns.known_le(reach, farther) and self.ns.known_le(counted, sympy.sympify(more))

    def formula(self, quantity: str, expr: Expr) -> Formula:
        """The finished formula, its symbols those of the library."""
        letters: dict[Any, Any] = {part.symbol: sympy.Symbol(name, positive=True) for name, part in self.parts.items()}
        inputs = set[Any]().union(expr.free_symbols, *(part.expr.free_symbols for part in self.parts.values()))
        for free in inputs - letters.keys():
            letters[free] = symbol(free.name)
            if list(letters.values()).count(letters[free]) > 1:
                raise InvalidSetting(f"the formula has another {letters[free]}: call the symbol {free} otherwise")
        parts = [Definition(letters[p.symbol], p.expr.xreplace(letters), p.latex) for p in self.parts.values()]
        expr = expr.xreplace(letters)
        return Formula(quantity, expr, ordered(expr, parts), LEFT[quantity])


def _whole(size: Any) -> Expr:
    """A quotient of sizes without its floor: heads are shared out evenly."""
    return sympy.sympify(size).replace(sympy.floor, lambda quotient: quotient)


def _cube_root(product: Expr) -> Expr:
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(product))
    return sympy.Mul(*(base ** (power * _THIRD) for base, power in powers))


def _monomial(term: Expr) -> dict[Expr, Expr]:
    """Powers of the symbols in a product."""
    powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
    return {base: power for base, power in powers if base.is_Symbol and power.is_Rational}


def _common_factor(terms: list[Expr]) -> Expr:
    """The largest monomial of symbols that divides every term."""
    first, *others = map(_monomial, terms)
    shared = set(first).intersection(*others)
    return sympy.Mul(*(base ** min(monomial[base] for monomial in (first, *others)) for base in shared))


def _collected(terms: Iterable[Expr]) -> Expr:
    """A sum of terms, those of equal logarithms and costs together."""
    by_cost: dict[Expr, Expr] = {}
    for term in terms:
        powers = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
        costs = (x**power for x, power in powers if x.has(sympy.log) or str(x).startswith(("_Lambda_", "_A_")))
        cost = sympy.Mul(*costs)
        by_cost[cost] = by_cost.get(cost, sympy.S.Zero) + term / cost
    return sympy.Add(*(cost * rest for cost, rest in by_cost.items()))
