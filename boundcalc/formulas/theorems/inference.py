"""Zhang, Liu, Cai, Wang, Wang 2022, the other parts: attention as inference, and transfer.

Not gaps of a class but errors of attention over L pairs, and of a downstream task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from boundcalc.base.sources import SMALE2007, ZHANG2022
from boundcalc.formulas.theorems.theorem import Forms, Theorem

if TYPE_CHECKING:
    from boundcalc.base.value import Value
    from boundcalc.formulas.symbolic.formula import Formula


# -- X3


def _cme_published() -> Formula:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import Formula
    from boundcalc.formulas.symbolic.inference import ELL, ELL_PART
    from boundcalc.formulas.symbolic.system import SYMPY
    from boundcalc.statements import latent

    expr = latent.cme_error_published(SYMPY, s.L, s.rho, s.smoothness, s.kappa, s.M, s.g, ELL)
    return Formula("error", expr, (ELL_PART,), r"\|\hat f-f^*\|_{\mathcal H}")


def _cme_forms() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic import inference

    return None, {
        "error": inference.cme_error,
        "best_error": inference.cme_best_error,
        "input_size": inference.cme_input_size,
    }


def _cme_values(
    L: float, kappa: float, M: float, g: float, smoothness: float, delta: float, rho: float | None = None
) -> Sequence[Value]:
    from boundcalc.formulas.theorems.attention_bounds import cme_bound

    law = {"source": g, "smoothness": smoothness, "kappa": kappa, "most": M, "delta": delta, "reg": rho}
    found = [cme_bound(int(L), **law)]  # type: ignore[arg-type]
    return [*found, cme_bound(int(L), published=True, **law)] if smoothness <= 1 else found  # type: ignore[arg-type]


X3 = Theorem(
    name="X3",
    title="CME attention against the conditional mean",
    source=SMALE2007,
    statement=r"With probability at least $1-\delta$ the error of kernel (CME) attention over $L$ pairs, in RKHS norm, falls "
    r"with $L$: sampling costs $A/\rho$, regularisation $c_r\rho^{r-1/2}|g|$, and the best $\rho$ balances them.",
    published_note=r"with its constant 6, as Smale and Zhou prove it for $1/2 < r\le 1$; Zhang et al. build on it",
    compares="error",
    differs={
        "kappa": r"capped: $\hat f$ and $f_\rho$ are never longer than $M/\sqrt\rho$, however large the kernel is"
    },
    also=(
        r"$\sqrt{\log(2/\delta)}$ in the main term where the paper has $\log(2/\delta)$, by Bernstein's inequality",
        "the regularisation term has the factor $c_r = a^a(1-a)^{1-a}$, $a = r-1/2$, which is at most 1",
        "$r$ up to $3/2$, where ridge regression saturates; the published form ends at $r = 1$",
    ),
    uses=("X0", "X3"),
    statement_name="X3",
    defaults={"L": 512, "kappa": 1.0, "M": 1.0, "g": 1.0, "smoothness": 1.0, "delta": 0.05},
    sharper=_cme_values,
    examples={
        "eval": "--bound X3 --L 512 --set smoothness=1.2",
        "solve": "--for L --target 0.5 --bound X3 --set smoothness=1.5",
    },
    published_form=_cme_published,
    forms=_cme_forms,
)


# -- X4


def _softmax_published() -> Formula:
    import sympy

    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import Formula
    from boundcalc.formulas.symbolic.inference import ELL, ELL_PART

    expr = s.c * s.M * sympy.exp(2 / s.temperature) * sympy.sqrt(ELL / s.L)
    return Formula("error", expr, (ELL_PART,), r"|\mathrm{attn}_L-\mu|", "le", kind="proxy")


def _softmax_forms() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic import inference

    return None, {
        "error": inference.softmax_error,
        "plain_error": inference.softmax_plain_error,
        "input_size": inference.softmax_input_size,
    }


def _softmax_values(L: float, M: float, temperature: float, delta: float) -> Sequence[Value]:
    from boundcalc.formulas.theorems.attention_bounds import softmax_bound

    return [softmax_bound(int(L), tau=temperature, most=M, delta=delta, plain=plain) for plain in (False, True)]


X4 = Theorem(
    name="X4",
    title="softmax attention against its limit",
    source=ZHANG2022,
    statement=r"With probability at least $1-\delta$ softmax attention over $L$ pairs is within about "
    r"$e^{1/\tau}\sqrt{\log(2/\delta)/L}$ of its limit, the Nadaraya-Watson mean.",
    published_note="the paper lets $L$ grow without a rate; this is the shape of the plain argument, numerator by "
    "Hoeffding and denominator by its least value",
    compares="error",
    differs={},
    also=(
        r"$e^{1/\tau}$ for small $\tau$, where the plain argument has $e^{2/\tau}$: numerator and denominator are bounded at "
        "once",
    ),
    uses=("X0", "X4"),
    statement_name="X4",
    defaults={"L": 512, "M": 1.0, "temperature": 1.0, "delta": 0.05},
    sharper=_softmax_values,
    published_form=_softmax_published,
    forms=_softmax_forms,
)


# -- X6


def _transfer_published() -> Formula:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import Formula

    return Formula("error", s.c * s.kappa_w**2 * s.e_pre, (), r"\mathbb E|wM^+\hat y-wh|^2", "le", kind="proxy")


def _transfer_forms() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic import inference

    return None, {"error": inference.transfer_error, "any_head_error": inference.any_head_error}


X6 = Theorem(
    name="X6",
    title="from the pretext task to the downstream task",
    source=ZHANG2022,
    statement=r"The head $w M^+$ carries a pretext error $e_{\mathrm{pre}}$ to the downstream task multiplied by "
    r"$\kappa_w^2$, $\kappa_w = |w M^+|$ the condition number of the pair of tasks.",
    published_note="the paper's own condition number of the pretext task is a worst case over downstream tasks, and "
    "its constant is $c$",
    compares="error",
    differs={},
    also=(r"the condition number is that of the pair of tasks, at most $|w|/\sigma_{\min}(M)$",),
    uses=("X6",),
    of="E|w M^+ yhat - w h|^2",
    statement_name="X6",
    published_form=_transfer_published,
    forms=_transfer_forms,
)

INFERENCE = (X3, X4, X6)
