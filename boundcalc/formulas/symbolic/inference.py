"""X3, X4 and what transfer carries over, as formulas: the functions of `statements.latent`, their parts named."""

from __future__ import annotations

from typing import Any

import sympy

from boundcalc.base import symbols as s
from boundcalc.formulas.symbolic.formula import Definition, Formula, ordered
from boundcalc.formulas.symbolic.system import SYMPY, Expr
from boundcalc.statements import latent

ELL = sympy.Symbol("ell", positive=True)
ELL_PART = Definition(ELL, sympy.log(2 / s.delta), "log of 2 over the failure probability", r"\ell")
SAMPLING, _RADIUS, LARGEST, C_R, POWER = (sympy.Symbol(name, positive=True) for name in ("A", "b", "F", "c_r", "a"))
RATIO, _SECOND, SPREAD, _TILT, HALF, RISE, CONST = (
    sympy.Symbol(name, positive=True) for name in ("R", "W_2", "U_2", "theta", "q_1", "q_2", "q_0")
)
_SOLUTION = sympy.Symbol("tau_0", positive=True)
_CME = r"\|\hat f-f^*\|_{\mathcal H}"
_SOFTMAX = r"|\mathrm{attn}_L-\mu|"
_FEW = 8
"""The quadratic of X4 has real roots from this many times l (1+R)^2/R pairs on; the derivation says why."""


# -- X3


def _power_parts() -> list[Definition]:
    constant = sympy.Piecewise((1, sympy.Eq(POWER, 1)), (POWER**POWER * (1 - POWER) ** (1 - POWER), True))
    return [
        Definition(C_R, constant, "factor of the regularisation error", "c_r"),
        Definition(POWER, s.smoothness - sympy.Rational(1, 2), "power of the regularisation error", "a"),
    ]


def mean_error() -> Expr:
    """A: Bernstein's bound of the mean of L centred terms."""
    return latent.hilbert_bernstein(SYMPY, (s.kappa * s.M) ** 2, _RADIUS, ELL, s.L)


def cme_error() -> Formula:
    """X3 at a regularisation."""
    _variance, radius = latent.cme_summands(SYMPY, s.rho, s.smoothness, s.kappa, s.M, s.g)
    largest = SYMPY.minimum(s.M / sympy.sqrt(s.rho), s.kappa ** (2 * s.smoothness - 1) * s.g)
    always = s.M / sympy.sqrt(s.rho) + LARGEST
    expr = sympy.Min(SAMPLING / s.rho, always) + C_R * s.rho**POWER * s.g
    parts = [
        Definition(SAMPLING, mean_error(), "error of the mean over $L$ pairs", "A"),
        Definition(_RADIUS, radius.xreplace({largest: LARGEST}), "largest norm of a centred term", "b"),
        Definition(LARGEST, largest, "norm of the regularised target", "F"),
        *_power_parts(),
        ELL_PART,
    ]
    return Formula("error", expr, ordered(parts), _CME)


def _no_regularisation() -> list[Definition]:
    """A and b without rho: F <= kappa^(2r-1)|g| and min(rho F, kappa M) <= kappa M."""
    radius = 2 * s.kappa * s.M + s.kappa ** (2 * s.smoothness + 1) * s.g
    return [
        Definition(SAMPLING, mean_error(), "error of the mean over $L$ pairs", "A"),
        Definition(_RADIUS, radius, "largest norm of a centred term, whatever the regularisation", "b"),
    ]


def cme_best_error() -> Formula:
    """X3 at the regularisation that is best: (1 + 1/a) A^(a/(1+a)) (a c_r |g|)^(1/(1+a))."""
    expr = (1 + 1 / POWER) * SAMPLING ** (POWER / (1 + POWER)) * (POWER * C_R * s.g) ** (1 / (1 + POWER))
    parts = [*_no_regularisation(), *_power_parts(), ELL_PART]
    return Formula("best_error", expr, ordered(parts), _CME)


def cme_input_size() -> Formula:
    """How many pairs are enough for a target: half of it for either part."""
    half = sympy.Symbol("A_t", positive=True)
    expr = 2 * ELL * ((s.kappa * s.M) ** 2 + _RADIUS * half / 3) / half**2
    reg = sympy.Symbol("rho_t", positive=True)
    parts = [
        Definition(half, reg * s.target / 2, "what the error of the mean may be", "A_t"),
        Definition(reg, (s.target / (2 * C_R * s.g)) ** (1 / POWER), "regularisation of half the target", r"\rho_t"),
        _no_regularisation()[1],
        *_power_parts(),
        ELL_PART,
    ]
    return Formula("input_size", expr, ordered(parts), "L", "ge")


# -- X4


def tail_root(const: Expr, half: Expr, rise: Expr) -> Expr:
    """The lesser root t of rise t^2 - 2 half t + const = 0."""
    return const / (half + sympy.sqrt(half**2 - rise * const))


def softmax_error() -> Formula:
    """X4 at the tilt that is best for large L, with 1/(1 - b/3) for Bennett's 2(e^b - 1 - b)/b^2, b = 2 theta R."""
    second, spread, _top = latent.softmax_moments(SYMPY, RATIO)
    least = _FEW * ELL * (1 + RATIO) ** 2 / RATIO
    expr = s.M * sympy.Min(2, _SOLUTION)
    solution = sympy.Piecewise((2, sympy.Lt(s.L, least)), (tail_root(CONST, HALF, RISE), True))
    parts: list[Definition] = [
        Definition(_SOLUTION, solution, "error for values of norm at most 1", "t_0"),
        Definition(CONST, (1 + 1 / (1 - 2 * _TILT * RATIO / 3)) * ELL / s.L, "constant term of the quadratic", "q_0"),
        Definition(HALF, _TILT * (1 - _TILT * sympy.sqrt(_SECOND * SPREAD)) / 2, "half the linear term", "q_1"),
        Definition(RISE, _TILT**2 * _SECOND / 2, "quadratic term", "q_2"),
        Definition(_TILT, latent.default_tilt(SYMPY, s.L, SPREAD, ELL), "tilt of the Chernoff bound", r"\theta"),
        Definition(_SECOND, second, r"bound of $\mathbb E[w^2]/(\mathbb Ew)^2$", "W_2"),
        Definition(SPREAD, spread, r"bound of $\mathbb E[w^2|v-\mu|^2]/(\mathbb Ew)^2$", "U_2"),
        _ratio(),
        ELL_PART,
    ]
    return Formula("error", expr, ordered(parts), _SOFTMAX)


def _ratio() -> Definition:
    return Definition(RATIO, sympy.exp(2 / s.temperature), "largest weight over the least", "R")


def softmax_plain_error() -> Formula:
    """X4's plain form."""
    expr = latent.softmax_error_hoeffding(SYMPY, s.L, RATIO, s.M, ELL)
    return Formula("plain_error", expr, (_ratio(), ELL_PART), _SOFTMAX)


def softmax_input_size() -> Formula:
    """How many pairs are enough for a target, by the plain form."""
    expr = 8 * ELL * (RATIO * s.M / s.target) ** 2
    return Formula("input_size", expr, (_ratio(), ELL_PART), "L", "ge")


# -- transfer


def transfer_error() -> Formula:
    """What the head w M^+ carries to the downstream task."""
    expr: Any = sympy.expand(latent.transfer_error(SYMPY, s.kappa_w, s.e_pre))
    return Formula("error", expr, (), r"\mathbb E|wM^+\hat y-wh|^2")


def any_head_error() -> Formula:
    """The same of any head a."""
    expr = latent.transfer_error(SYMPY, s.head, s.e_pre, s.missed, s.spread)
    return Formula("any_head_error", expr, (), r"\mathbb E|a\hat y-wh|^2")
