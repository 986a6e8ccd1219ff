"""Mixed pieces: the log covering number with the split of the error left as symbols, and what makes a split the best one.

A1's closed form is for costs A/eps^2. Where volumes (T4-T6, T8-T10) stand beside them there is none; what can be written
down is the sum of the costs, the constraint, and one equation per piece for its best share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.symbols import eps
from boundcalc.formulas.symbolic.formula import LEFT, Formula
from boundcalc.formulas.symbolic.functions import factor
from boundcalc.formulas.symbolic.pieces import lowered, points
from boundcalc.formulas.symbolic.printing import latex
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, number
from boundcalc.setting import Setting
from boundcalc.statements.covers import ALWAYS, LEMMAS, MatrixPerceptron, Perceptron
from boundcalc.statements.targets import Target

MULTIPLIER = sympy.Symbol("lambda", positive=True)
_VECTORS = {kind: name for name in ALWAYS for kind in LEMMAS[name].kinds}
_DEFAULT = {"*": MatrixPerceptron.name, "readout": Perceptron.name}
_Y = sympy.Symbol("y", positive=True)


@dataclass(frozen=True)
class _Share:
    """One piece: its symbol eps_j, its gain and its cost in terms of eps_j."""

    key: str
    lemma: str
    symbol: sympy.Symbol
    gain: Expr
    cost: Expr

    @property
    def condition(self) -> Expr:
        """Stationarity: d cost/d eps_j + lambda kappa_j = 0."""
        return sympy.Eq(sympy.diff(self.cost, self.symbol) + MULTIPLIER * self.gain, 0)


@dataclass(frozen=True)
class Allocation:
    """log N(eps) as a sum over pieces with shares that are symbols.

    Attributes:
        shares: the pieces.
    """

    shares: tuple[_Share, ...]

    @property
    def covering_number(self) -> Formula:
        """The sum of the costs; valid for every split that meets the constraint (A2)."""
        expr = sympy.Add(*(share.cost for share in self.shares))
        names = {share.symbol: _latex(share.symbol) for share in self.shares}
        total = latex(sympy.Add(*(share.gain * share.symbol for share in self.shares)), names)
        conditions = (rf"$\sum_j\kappa_j\varepsilon_j = {total}$ is at most $\varepsilon$",)
        return Formula("covering_number", expr, (), LEFT["covering_number"], conditions=conditions)

    @property
    def constraint(self) -> Expr:
        """sum_j kappa_j eps_j = eps."""
        return sympy.Eq(sympy.Add(*(share.gain * share.symbol for share in self.shares)), eps)

    @property
    def stationarity(self) -> tuple[Expr, ...]:
        """One equation per piece, with one multiplier lambda for all."""
        return tuple(share.condition for share in self.shares)

    def latex(self) -> str:
        """Sum, constraint and conditions as the content of a display."""
        names = {share.symbol: _latex(share.symbol) for share in self.shares} | {MULTIPLIER: r"\lambda"}
        lines = [rf"\log N(\mathcal F,\varepsilon) &\le {latex(self.covering_number.expr, names)}"]
        lines.append(f"{latex(self.constraint.lhs, names)} &= {latex(self.constraint.rhs, names)}")
        lines += [f"{latex(equation.lhs, names)} &= 0" for equation in self.stationarity]
        return "\\begin{aligned}\n" + ", \\\\\n".join(lines) + "\n\\end{aligned}"

    def text(self) -> str:
        """The same in plain text."""
        lines = [f"log N(eps) <= {self.covering_number.expr}", f"with {self.constraint.lhs} = {self.constraint.rhs}"]
        lines += [f"{share.key} ({share.lemma}): {share.condition.lhs} = 0" for share in self.shares]
        return "\n".join(lines)


def _latex(symbol: sympy.Symbol) -> str:
    index = str(symbol).partition("_")[2].replace("_", r"\_")
    return rf"\varepsilon_{{\text{{{index}}}}}"


def allocation(
    setting: Setting, lemmas: Mapping[str, str] | None = None, *, samples: Expr | None = None, order: Order = ()
) -> Allocation:
    """The sum over the pieces of a setting (its depth a number), each covered by the lemma chosen for its kind."""
    if not isinstance(setting.architecture.depth, int):
        raise InvalidSetting("the pieces are listed one by one: give the depth as a number")
    chosen = {**_DEFAULT, **(lemmas or {})}
    count = number(setting.sample.n_train) if samples is None else samples
    found: list[_Share] = []
    for piece in lowered(setting.but(lipschitz=1.0), cap=False, plain=True, order=order)[0].pieces:
        kind = piece.key.partition("[")[0].partition("#")[0]
        symbol = sympy.Symbol(f"eps_{piece.key}", positive=True)
        names: list[str] = []
        cost: Expr = sympy.S.Zero
        for member in piece.members:
            name, target = _pick(piece.key, chosen.get(kind, chosen["*"]), member.targets)
            names.append(name)
            cost = cost + member.multiplicity * _cost(name, target, symbol, count)
        found.append(_Share(piece.key, ", ".join(dict.fromkeys(names)), symbol, piece.gain, cost))
    return Allocation(tuple(found))


def _pick(key: str, wanted: str, targets: Sequence[Target]) -> tuple[str, Target]:
    name = _VECTORS.get(targets[0].kind, wanted)
    lemma = LEMMAS.get(name)
    if lemma is None:
        raise InvalidSetting(f"no covering lemma {name!r}; there are {', '.join(LEMMAS)}")
    for target in targets:
        if lemma.applies(target) is None:
            return name, target
    kinds = " or ".join(sorted(lemma.kinds))
    others = ", ".join(n for n, other in LEMMAS.items() if targets[0].kind in other.kinds)
    raise Unsupported(
        Refusal(f"{name} for the piece {key}", f"a {targets[0].kind}", f"a {kinds}", f"Lemmas that cover it: {others}.")
    )


def _cost(name: str, target: Target, symbol: sympy.Symbol, samples: Expr) -> Expr:
    lemma, n = LEMMAS[name], points(target, samples)
    y = lemma.reach(target) / symbol
    if isinstance(lemma, MatrixPerceptron):  # whose constant has a name
        return y**2 * factor(lemma, target, n)
    return sympy.sympify(lemma.closed(SYMPY, _Y, target, n)).subs(_Y, y)
