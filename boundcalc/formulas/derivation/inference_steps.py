"""Derivations of the bounds on attention as inference, and of transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy

from boundcalc.base import symbols as s
from boundcalc.formulas.derivation.step import Relation, Step, Words, last_step
from boundcalc.formulas.symbolic import inference as form
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.system import Expr

_SAMPLING = Words(r"\|\hat f-f_\rho\|_{\mathcal H}")
_BIAS = Words(r"\|f_\rho-f^*\|_{\mathcal H}")


def _named(formula: Formula, *names: str) -> tuple[Definition, ...]:
    return tuple(part for part in formula.where if part.symbol.name in names)


# -- X3


def _cme_steps(formula: Formula) -> Step:
    """Sampling and regularisation, added; then the best regularisation, or the pairs that are enough."""
    plain = formula.name == "error"
    bias = form.C_R * s.rho**form.POWER * s.g
    always = s.M / sympy.sqrt(s.rho) + form.LARGEST
    steps = [
        Step(
            "a mean of vectors in Hilbert space",
            ("X0",),
            r"the terms $(v-f_\rho(k))\varphi(k)$, centred, have norm at most $b$ and mean square at most $\kappa^2M^2$",
            Relation(Words(r"\Big|\tfrac1L\sum_iX_i-\mathbb EX\Big|"), "le", form.mean_error()),
            (*_named(formula, "b", "F"), form.ELL_PART),
        ),
        Step(
            "from the mean to the estimate",
            ("X3",),
            r"$\hat f-f_\rho = (L_n+\rho)^{-1}Z$, $Z$ the mean of $X_i-\mathbb E X$, and the inverse has norm at most $1/\rho$"
            + (r"; neither $\hat f$ nor $f_\rho$ is longer than its own bound" if plain else ""),
            Relation(_SAMPLING, "le", sympy.Min(form.SAMPLING / s.rho, always) if plain else form.SAMPLING / s.rho),
            _named(formula, "A"),
        ),
        Step(
            "regularisation",
            ("X3",),
            r"$f_\rho-f^* = \rho(L_K+\rho)^{-1}L_K^r g$, and in RKHS norm $\rho t^a/(t+\rho)$ is at most $c_r\rho^a$",
            Relation(_BIAS, "le", bias),
            _named(formula, "c_r", "a"),
        ),
    ]
    if formula.name == "best_error":
        steps.append(_best_regularisation(formula.expr))
    if formula.name == "input_size":
        steps.append(
            Step(
                "half of the target for either part",
                ("X3",),
                r"$\rho_t$ makes the regularisation half the target; Bernstein's bound is at most $A_t$ as soon as "
                r"$L\ge 2\ell(\kappa^2M^2+bA_t/3)/A_t^2$, because $x+\sqrt{x^2+y}\le A_t$ if and only if "
                r"$y\le A_t^2-2xA_t$",
                Relation(Words("L"), "ge", formula.expr),
                _named(formula, "A_t", "rho_t"),
            )
        )
    return last_step(formula, steps)


def _best_regularisation(value: Expr) -> Step:
    return Step(
        "the best regularisation",
        ("X3",),
        r"$A/\rho$ falls and $c_r\rho^a|g|$ rises; the derivative of their sum vanishes at "
        r"$\rho = (A/(ac_r|g|))^{1/(1+a)}$",
        Relation(Words(r"\min_\rho\big\{A/\rho+c_r\rho^a\|g\|\big\}"), "eq", value),
    )


# -- X4


def _softmax_steps(formula: Formula) -> Step:
    """The moments of the weights, the quadratic, and its root; or the plain argument."""
    if formula.name != "error":
        return _plain_steps(formula)
    moments = Step(
        "moments of the weights",
        ("X4",),
        r"weights lie between $W/R$ and $RW$ up to scale, $W = \mathbb Ew$: Kantorovich's inequality, and mass moved to the "
        "largest weight",
        Relation(
            Words(r"\frac{\mathbb Ew^2}{W^2}\le W_2,\quad\frac{\mathbb Ew^2|v-\mu|^2}{W^2}"),
            "le",
            form.SPREAD,
        ),
        _named(formula, "W_2", "U_2", "R"),
    )
    t = sympy.Symbol("t", positive=True)
    quadratic = Step(
        "numerator and denominator at once",
        ("X0", "X4"),
        r"$\cosh(x|S|)\exp(-xt\sum w)$ is multiplied by at most exp of this per pair, $\psi = 2(e^b-1-b)/b^2\le 1/(1-b/3)$ "
        r"at $b = 2\theta R < 3$; the failure probability is $\delta$ where it is at most $-\ell/L$",
        Relation(
            Words(r"-\theta t+\tfrac{\theta^2}2\big(\psi U_2+2t\sqrt{W_2U_2}+t^2W_2\big)+\tfrac\ell L"),
            "le",
            form.RISE * t**2 - 2 * form.HALF * t + form.CONST,
        ),
        (*_named(formula, "q_0", "q_1", "q_2", "theta"), form.ELL_PART),
    )
    root = Step(
        "its lesser root",
        ("X4",),
        r"with $x = \theta\sqrt{W_2U_2}$, $L\ge 8\ell(1+R)^2/R$ says $x\le 1/4$; then $b\le 3/2$ and "
        r"$q_1^2-q_0q_2 = \theta^2((1-x)^2-x^2(1+1/(1-b/3)))/4\ge 0$. For fewer pairs the bound $2M$ of any two means serves",
        Relation(Words("t"), "eq", form.tail_root(form.CONST, form.HALF, form.RISE)),
        _named(formula, "tau_0"),
    )
    return last_step(formula, [moments, quadratic, root])


def _plain_steps(formula: Formula) -> Step:
    steps = [
        Step(
            "the numerator",
            ("X0",),
            r"the terms $w(v-\mu)$ are centred and at most $2Me^{1/\tau}$ long",
            Relation(
                Words(r"\Big|\tfrac1L\sum_iw_i(v_i-\mu)\Big|"),
                "le",
                2 * s.M * sympy.sqrt(form.RATIO) * sympy.sqrt(2 * form.ELL / s.L),
            ),
            (*_named(formula, "R"), form.ELL_PART),
        ),
        Step(
            "the denominator",
            ("X4",),
            r"every weight is at least $e^{-1/\tau}$",
            Relation(Words(r"\tfrac1L\sum_iw_i"), "ge", 1 / sympy.sqrt(form.RATIO)),
        ),
    ]
    if formula.name == "input_size":
        steps.append(
            Step(
                "solving for the input size",
                ("X4",),
                "their ratio is at most the target from here on",
                Relation(Words("L"), "ge", formula.expr),
            )
        )
    return last_step(formula, steps)


# -- X6


def _transfer_steps(formula: Formula) -> Step:
    """Minkowski's inequality."""
    left = Words(r"\mathbb E|a\hat y-wh|^2")
    right = (s.head * sympy.sqrt(s.e_pre) + s.missed * s.spread) ** 2
    steps = [
        Step(
            "any head",
            ("X6",),
            r"$a\hat y-wh = a(\hat y-Mh)+(aM-w)h$, and Minkowski's inequality for root mean squares",
            Relation(left, "le", right),
        )
    ]
    if formula.name == "error":
        steps.append(
            Step(
                "the head $w M^+$",
                ("X6",),
                r"for $w$ in the row space $w M^+ M = w$, so the second term vanishes, and $|a| = \kappa_w$",
                Relation(left, "le", formula.expr),
            )
        )
    return last_step(formula, steps)


STEPS: Mapping[str, Callable[[Formula], Step]] = {"X3": _cme_steps, "X4": _softmax_steps, "X6": _transfer_steps}
