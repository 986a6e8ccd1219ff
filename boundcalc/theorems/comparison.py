"""K1, the gap by Gaussian comparison, as a formula of one budget C: block by block, for a depth that is a number."""

from __future__ import annotations

from typing import Any

import sympy

from boundcalc.base import symbols as s
from boundcalc.statements import gap as chaining
from boundcalc.statements.comparison import closed as k
from boundcalc.theorems.algebra import SYMPY, Expr, Named, number
from boundcalc.theorems.closed import LEFT
from boundcalc.theorems.derivation import Row, Step
from boundcalc.theorems.formula import Definition, Formula, ordered

_A, _B, _X, _Y, _THETA, _BETA = (sympy.Symbol(name, positive=True) for name in ("a", "b", "x", "y", "theta", "beta"))
_BETA_PART = Definition(_BETA, k.mean_of_signs(SYMPY), "mean size of a normal number", r"\beta")
_COST, _E1, _E2 = (sympy.Symbol(name, positive=True) for name in ("a_m", "e_1", "e_2"))


class Hoelder(Named):
    """The smallest a/sqrt(p) + b/sqrt(1-p)."""

    nargs = 2
    letter = r"\mathrm{h}"

    def explicit(self) -> Expr:
        """(a^(2/3) + b^(2/3))^(3/2)."""
        a, b = self.args
        return (a ** sympy.Rational(2, 3) + b ** sympy.Rational(2, 3)) ** sympy.Rational(3, 2)

    @classmethod
    def definition(cls) -> tuple[Expr, Expr, str]:
        return cls(_A, _B), cls(_A, _B).explicit(), ""


class Kappa(Named):
    """How far softmax weights within a factor e^(2r) carry changes of scores."""

    nargs = 1
    letter = r"\kappa"

    def explicit(self) -> Expr:
        """The definition with theta put in."""
        (x,) = self.args
        theta = 2 * sympy.sinh(x) / (sympy.cosh(x) + sympy.sqrt(sympy.cosh(x) ** 2 + 8 * sympy.sinh(x) ** 2))
        return self.definition()[1].subs({_THETA: theta, _X: x}, simultaneous=True)

    @classmethod
    def definition(cls) -> tuple[Expr, Expr, str]:
        value = sympy.sqrt(1 - _THETA**2) * (sympy.cosh(_X) + _THETA * sympy.sinh(_X)) / 2
        return cls(_X), value, r"\theta = \frac{2\sinh x}{\cosh x+\sqrt{\cosh^2x+8\sinh^2x}}"


class Psi(Named):
    """Complexity of centred scores in the hull of products of two neurons."""

    nargs = 1
    letter = r"\Psi"

    def explicit(self) -> Expr:
        """The definition with beta put in."""
        return self.definition()[1].subs({_Y: self.args[0], _BETA: _BETA_PART.expr}, simultaneous=True)

    @classmethod
    def definition(cls) -> tuple[Expr, Expr, str]:
        plain: Expr = sympy.Rational(1, 2) + sympy.sqrt(2)
        mixed = (plain + Hoelder(sympy.Rational(1, 2), sympy.S.One)) / 2
        return cls(_Y), sympy.Min(plain * _Y + _BETA / 2, mixed * _Y + _BETA / 4), ""


def _later(block: int) -> list[Definition]:
    """G_l from G_(l-1) and the hull S_l of scores, which oscillate by at most S_l = 2 r_l; and its parts."""
    letters = {letter: sympy.Symbol(f"{letter}_{block}", positive=True) for letter in "GMrS"}
    before, (value, moved, half, hull) = sympy.Symbol(f"G_{block - 1}", positive=True), letters.values()
    whole = Hoelder(sympy.cosh(half) * (before + _BETA / 2), moved)
    least = sympy.Min(whole, before + _BETA / 2 + Hoelder(sympy.sinh(half) * (before + _BETA / 4), moved))
    parts = (
        (value, least, f"complexity of block {block}"),
        (moved, Kappa(half) * hull * Psi(before), f"what scores of block {block} add"),
        (half, hull / 2, f"half the oscillation of scores of block {block}"),
        (hull, s.C * (s.heads * s.C**2) ** (2 * block - 2), f"hull of scores of block {block}"),
    )
    return [
        Definition(symbol, expr, meaning, f"{letter}_{{{block}}}")
        for letter, (symbol, expr, meaning) in zip(letters, parts, strict=True)
    ]


def gap(depth: int) -> Formula:
    """K1 at so many blocks, H heads and norms of at most C where no projection acts."""
    last = sympy.Symbol(f"G_{depth}", positive=True)
    second = Hoelder(sympy.exp(s.C) - 1 - s.C, s.C * (sympy.exp(s.C) - 1))
    first = sympy.sqrt(1 + sympy.Min(_E1, s.C + _E2) ** 2)
    parts = [
        Definition(
            _COST,
            number(k.LOWEST_QUARTER) * (1 - number(k.LEFT) / s.m),
            "what ghosts cost",
            "a_m",
        ),
        *(part for block in range(depth, 1, -1) for part in _later(block)),
        Definition(sympy.Symbol("G_1", positive=True), first, "complexity of block 1", "G_1"),
        _BETA_PART,
        Definition(_E1, Hoelder(sympy.sinh(s.C), 2 * s.C * Kappa(s.C)), "first form of block 1", "e_1"),
        Definition(_E2, second, "second form of block 1", "e_2"),
    ]
    scale = s.C * (s.heads * s.C**2) ** depth / s.gamma
    expr = 2 * scale * (last + _BETA / 2) / (_COST * sympy.sqrt(s.m)) + chaining.deviation(
        SYMPY, sympy.log(1 / s.delta), s.m
    )
    return Formula("gap", expr, ordered(expr, parts), LEFT["gap"])


def steps(formula: Formula) -> tuple[Step, ...]:
    """The proof: the loss, and K1 with its norms put in."""
    norms: tuple[tuple[str, Any], ...] = (
        (r"F=C_{\mathrm{op}}", s.C),
        (r"C_V=V=K", s.heads * s.C),
        (r"C_1=C_r", s.C),
        (r"L_\ell", 1 / s.gamma),
    )
    ramp = (
        r"The ramp loss is $1/\gamma$-Lipschitz in $f(X)$, and between the indicators of $yf(X)\le0$ "
        r"and $yf(X)\le\gamma$."
    )
    return (
        Step("the loss", ("G0",), ramp),
        Step(
            "norms of a block",
            ("A5",),
            r"Frobenius norms are at most $(2,1)$ norms, those of $W_V$ are summed over heads, and inputs have length "
            r"at most "
            r"$\rho=1$. Rows of block $l$ are at most $(HC^2)^{l-1}$ long, so no projection acts.",
            tuple(Row(left, "eq", right) for left, right in norms),
        ),
        Step("Gaussian comparison", ("K1",), "With these norms it is the formula.", (), formula.where),
    )
