"""The formulas of X3, X4 and X6 with the steps of their proofs. Importing this imports SymPy."""

from __future__ import annotations

from typing import Any

import sympy

from boundcalc.base import symbols as s
from boundcalc.statements import latent
from boundcalc.theorems.algebra import SYMPY, Expr
from boundcalc.theorems.derivation import Row, Step
from boundcalc.theorems.formula import Definition, Formula, ordered

_NAMES = ("ell", "A", "b", "F", "c_r", "a", "R", "W_2", "U_2", "theta", "q_1", "q_2", "q_0", "tau_0")
ELL, _MEAN, _RADIUS, _LARGEST, C_R, POWER, _RATIO, _SECOND, SPREAD, _TILT, HALF, RISE, CONST, _ROOT = (
    sympy.Symbol(name, positive=True) for name in _NAMES
)
_LOG = Definition(ELL, sympy.log(2 / s.delta), "log of 2 over the failure probability", r"\ell")
_FEW = 8
"""The quadratic of X4 has real roots from this many times l (1+R)^2/R pairs on; the derivation says why."""
_CME, _SOFTMAX = r"\|\hat f-f^*\|_{\mathcal H}", r"|\mathrm{attn}_L-\mu|"


def _formula(name: str, expr: Any, parts: list[Definition], left: str, relation: str = "le") -> Formula:
    return Formula(name, expr, ordered(expr, [*parts, _LOG]), left, relation)


def _parts(formula: Formula, *names: str) -> tuple[Definition, ...]:
    return tuple(part for part in formula.where if part.symbol.name in names)


# -- X3

_CASES = sympy.Piecewise((1, sympy.Eq(POWER, 1)), (POWER**POWER * (1 - POWER) ** (1 - POWER), True))
_POWERS = [
    Definition(C_R, _CASES, "factor of the regularisation error", "c_r"),
    Definition(POWER, s.smoothness - sympy.Rational(1, 2), "power of the regularisation error", "a"),
]
_BIAS = C_R * s.rho**POWER * s.g
_BERNSTEIN = Definition(
    _MEAN,
    latent.hilbert_bernstein(SYMPY, (s.kappa * s.M) ** 2, _RADIUS, ELL, s.L),
    "error of the mean over $L$ pairs",
    "A",
)
_ANY_RADIUS = Definition(
    _RADIUS,
    2 * s.kappa * s.M + s.kappa ** (2 * s.smoothness + 1) * s.g,
    "largest norm of a centred term, whatever the regularisation",
    "b",
)


def cme_published() -> Formula:
    """Smale and Zhou's form, with its constant."""
    expr = latent.cme_error_published(SYMPY, s.L, s.rho, s.smoothness, s.kappa, s.M, s.g, ELL)
    return _formula("error", expr, [], _CME)


def cme_error() -> Formula:
    """X3 at a regularisation."""
    _, radius = latent.cme_summands(SYMPY, s.rho, s.smoothness, s.kappa, s.M, s.g)
    largest = SYMPY.minimum(s.M / sympy.sqrt(s.rho), s.kappa ** (2 * s.smoothness - 1) * s.g)
    parts = [
        _BERNSTEIN,
        Definition(_RADIUS, radius.xreplace({largest: _LARGEST}), "largest norm of a centred term", "b"),
        Definition(_LARGEST, largest, "norm of the regularised target", "F"),
    ]
    expr = sympy.Min(_MEAN / s.rho, s.M / sympy.sqrt(s.rho) + _LARGEST) + _BIAS
    return _formula("error", expr, [*parts, *_POWERS], _CME)


def cme_best_error() -> Formula:
    """X3 at the regularisation that is best: (1 + 1/a) A^(a/(1+a)) (a c_r |g|)^(1/(1+a))."""
    expr = (1 + 1 / POWER) * _MEAN ** (POWER / (1 + POWER)) * (POWER * C_R * s.g) ** (1 / (1 + POWER))
    return _formula("best_error", expr, [_BERNSTEIN, _ANY_RADIUS, *_POWERS], _CME)


def cme_steps(formula: Formula) -> tuple[Step, ...]:
    """Sampling and regularisation, added; then the best regularisation, or the pairs that are enough."""
    plain = formula.name == "error"
    capped = sympy.Min(_MEAN / s.rho, s.M / sympy.sqrt(s.rho) + _LARGEST) if plain else _MEAN / s.rho
    steps = [
        Step(
            "a mean of vectors in Hilbert space",
            ("X0",),
            r"The terms $X_i=(v_i-f_\rho(k_i))\varphi(k_i)$, centred, have norm at most $b$ and mean square at most "
            r"$\kappa^2M^2$.",
            (Row(r"\Big|\tfrac1L\sum_iX_i-\mathbb EX\Big|", "le", _BERNSTEIN.expr),),
            _parts(formula, "b", "F", "ell"),
        ),
        Step(
            "from the mean to the estimate",
            ("X3",),
            r"$\hat f-f_\rho=(L_n+\rho)^{-1}Z$, $Z$ the mean of $X_i-\mathbb EX$, and the inverse has norm at most "
            r"$1/\rho$." + (r" Neither $\hat f$ nor $f_\rho$ is longer than its own bound." if plain else ""),
            (Row(r"\|\hat f-f_\rho\|_{\mathcal H}", "le", capped),),
            _parts(formula, "A"),
        ),
        Step(
            "regularisation",
            ("X3",),
            r"$f_\rho-f^*=\rho(L_K+\rho)^{-1}L_K^rg$, and in RKHS norm $\rho t^a/(t+\rho)$ is at most $c_r\rho^a$.",
            (Row(r"\|f_\rho-f^*\|_{\mathcal H}", "le", _BIAS),),
            _parts(formula, "c_r", "a"),
        ),
    ]
    if formula.name == "best_error":
        words = r"$A/\rho$ falls and $c_r\rho^a|g|$ rises; their sum is smallest at $\rho=(A/(ac_r|g|))^{1/(1+a)}$."
        row = Row(r"\min_\rho\big\lbrace A/\rho+c_r\rho^a\|g\|\big\rbrace", "eq", formula.expr)
        steps.append(Step("the best regularisation", ("X3",), words, (row,)))
    return tuple(steps)


# -- X4

_WEIGHTS = Definition(_RATIO, sympy.exp(2 / s.temperature), "largest weight over the smallest", "R")


def softmax_published() -> Formula:
    """The shape of the plain argument."""
    expr = s.c * s.M * sympy.exp(2 / s.temperature) * sympy.sqrt(ELL / s.L)
    return Formula("error", expr, (_LOG,), _SOFTMAX, kind="proxy")


def tail_root(const: Expr, half: Expr, rise: Expr) -> Expr:
    """The lesser root t of rise t^2 - 2 half t + const = 0."""
    return const / (half + sympy.sqrt(half**2 - rise * const))


def softmax_error() -> Formula:
    """X4 at the tilt that is best for large L, with 1/(1 - b/3) for Bennett's 2(e^b - 1 - b)/b^2, b = 2 theta R."""
    second, spread, _ = latent.softmax_moments(SYMPY, _RATIO)
    least = _FEW * ELL * (1 + _RATIO) ** 2 / _RATIO
    solution = sympy.Piecewise((2, sympy.Lt(s.L, least)), (tail_root(CONST, HALF, RISE), True))
    parts = [
        Definition(_ROOT, solution, "error for values of norm at most 1", "t_0"),
        Definition(CONST, (1 + 1 / (1 - 2 * _TILT * _RATIO / 3)) * ELL / s.L, "constant term of the quadratic", "q_0"),
        Definition(HALF, _TILT * (1 - _TILT * sympy.sqrt(_SECOND * SPREAD)) / 2, "half the linear term", "q_1"),
        Definition(RISE, _TILT**2 * _SECOND / 2, "quadratic term", "q_2"),
        Definition(_TILT, latent.default_tilt(SYMPY, s.L, SPREAD, ELL), "tilt of the Chernoff bound", r"\theta"),
        Definition(_SECOND, second, r"bound of $\mathbb E[w^2]/(\mathbb Ew)^2$", "W_2"),
        Definition(SPREAD, spread, r"bound of $\mathbb E[w^2|v-\mu|^2]/(\mathbb Ew)^2$", "U_2"),
        _WEIGHTS,
    ]
    return _formula("error", s.M * sympy.Min(2, _ROOT), parts, _SOFTMAX)


def softmax_plain_error() -> Formula:
    """X4's plain form."""
    expr = latent.softmax_error_hoeffding(SYMPY, s.L, _RATIO, s.M, ELL)
    return _formula("plain_error", expr, [_WEIGHTS], _SOFTMAX)


def softmax_steps(formula: Formula) -> tuple[Step, ...]:
    """The moments of the weights, the quadratic, and its root; or the plain argument."""
    if formula.name != "error":
        numerator = 2 * s.M * sympy.sqrt(_RATIO) * sympy.sqrt(2 * ELL / s.L)
        return (
            Step(
                "the numerator",
                ("X0",),
                r"The terms $w_i(v_i-\mu)$ are centred and at most $2M\sqrt R$ long.",
                (Row(r"\Big|\tfrac1L\sum_iw_i(v_i-\mu)\Big|", "le", numerator),),
                _parts(formula, "R", "ell"),
            ),
            Step(
                "the denominator",
                ("X4",),
                r"Every weight is at least $e^{-1/\tau}$, and the error is the quotient.",
                (Row(r"\tfrac1L\sum_iw_i", "ge", 1 / sympy.sqrt(_RATIO)),),
            ),
        )
    return (
        Step(
            "moments of the weights",
            ("X4",),
            r"Weights lie between $W/R$ and $RW$ up to scale, $W=\mathbb Ew$: Kantorovich's inequality, and mass moved "
            r"to the "
            "largest weight.",
            (Row(r"\mathbb Ew^2/W^2", "le", _SECOND), Row(r"\mathbb Ew^2|v-\mu|^2/W^2", "le", SPREAD)),
            _parts(formula, "W_2", "U_2", "R"),
        ),
        Step(
            "numerator and denominator at once",
            ("X0", "X4"),
            r"$\cosh(x|S|)\exp(-xt\sum_iw_i)$ is multiplied by at most exp of this per pair, "
            r"$\psi=2(e^b-1-b)/b^2\le1/(1-b/3)$ at $b=2\theta R<3$; the failure probability is $\delta$ where it is at "
            r"most $-\ell/L$.",
            (
                Row(
                    r"-\theta t+\tfrac{\theta^2}2\big(\psi U_2+2t\sqrt{W_2U_2}+t^2W_2\big)+\tfrac\ell L",
                    "le",
                    r"q_2 t^2-2q_1t+q_0",
                ),
            ),
            _parts(formula, "q_0", "q_1", "q_2", "theta", "ell"),
        ),
        Step(
            "its lesser root",
            ("X4",),
            r"With $x=\theta\sqrt{W_2U_2}$, $L\ge8\ell(1+R)^2/R$ says $x\le1/4$; then $b\le3/2$ and "
            r"$q_1^2-q_0q_2=\theta^2((1-x)^2-x^2(1+1/(1-b/3)))/4\ge0$. For fewer pairs the bound $2M$ of any two means "
            r"serves.",
            (),
            _parts(formula, "tau_0"),
        ),
    )


# -- X6


def transfer_error() -> Formula:
    """What the head w M^+ carries to the downstream task."""
    expr: Any = sympy.expand(latent.transfer_error(SYMPY, s.kappa_w, s.e_pre))
    return Formula("error", expr, (), r"\mathbb E|wM^+\hat y-wh|^2")


def any_head_error() -> Formula:
    """The same of any head a."""
    expr = latent.transfer_error(SYMPY, s.head, s.e_pre, s.missed, s.spread)
    return Formula("any_head_error", expr, (), r"\mathbb E|a\hat y-wh|^2")


def transfer_steps(formula: Formula) -> tuple[Step, ...]:
    """Minkowski's inequality."""
    words = r"$a\hat y-wh=a(\hat y-Mh)+(aM-w)h$, and Minkowski's inequality for root mean squares."
    steps = (Step("any head", ("X6",), words, (Row(r"\mathbb E|a\hat y-wh|^2", "le", any_head_error().expr),)),)
    if formula.name == "any_head_error":
        return steps
    row_space = "For $w$ in the row space $wM^+M=w$, so the second term vanishes at $a=wM^+$."
    return (*steps, Step("the head $w M^+$", ("X6",), row_space))
