"""Theorems about attention as inference, and transfer: Smale and Zhou 2007, Zhang et al. 2022 (X3, X4, X6).

Not gaps of a class but errors of attention over L pairs, and of a downstream task. The formulas are the functions of
`boundcalc.statements.latent`, their parts named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from boundcalc.base.theory import source
from boundcalc.theorems.theorem import Theorem, shape

if TYPE_CHECKING:
    from boundcalc.theorems.derivation import Step
    from boundcalc.theorems.formula import Formula


def _deferred(name: str) -> Callable[..., Any]:
    """A function of `inference_formulas`, which imports SymPy, when it is called."""

    def call(*args: Any) -> Any:
        from boundcalc.theorems import inference_formulas

        return getattr(inference_formulas, name)(*args)

    return call


def _forms(**names: str) -> Callable[[], tuple[None, Mapping[str, Callable[[], Formula]]]]:
    return lambda: (None, {quantity: _deferred(name) for quantity, name in names.items()})


def _steps(name: str) -> Callable[[Any, str, Formula], tuple[Step, ...]]:
    return lambda form, quantity, formula: _deferred(name)(formula)


_PAIRS = r"Then, with probability at least $1-\delta$ over the pairs,"
_CME = (
    r"A query sees $L$ pairs $(k_i,v_i)$. Let $k(\cdot,\cdot)$ be a kernel with features $\varphi$ and space $\mathcal "
    r"H$, $L_K$ its "
    r"integral operator under the law of the keys, and $\hat f=\arg\min_f\sum_i|v_i-f(k_i)|^2+L\rho\|f\|_{\mathcal "
    r"H}^2$, which is "
    r"what CME attention evaluates at the query."
)
X3 = Theorem(
    name="X3",
    title="CME attention against the conditional mean",
    source=source("smale2007"),
    statement=r"With probability at least $1-\delta$ the error of kernel (CME) attention over $L$ pairs, in RKHS norm, "
    r"falls "
    r"with $L$: sampling costs $A/\rho$, regularisation $c_r\rho^{r-1/2}|g|$, and the best $\rho$ balances them.",
    published_note=r"with its constant 6, as Smale and Zhou prove it for $1/2 < r\le 1$; Zhang et al. build on it",
    compares="error",
    published_form=_deferred("cme_published"),
    forms=_forms(error="cme_error", best_error="cme_best_error"),
    definition=lambda values: _CME,
    claims={
        "error": (_PAIRS, ""),
        "best_error": (_PAIRS.replace("Then,", r"Then, for the best $\rho$,"), ""),
    },
    steps=_steps("cme_steps"),
    differs={
        "kappa": r"capped: $\hat f$ and $f_\rho$ are never longer than $M/\sqrt\rho$, however large the kernel is"
    },
    also=(
        r"$\sqrt{\log(2/\delta)}$ in the main term where the paper has $\log(2/\delta)$, by Bernstein's inequality",
        "the regularisation term has the factor $c_r = a^a(1-a)^{1-a}$, $a = r-1/2$, which is at most 1",
        "$r$ up to $3/2$, where ridge regression saturates; the published form ends at $r = 1$",
    ),
    statement_name="X3",
    defaults={"L": 512, "kappa": 1.0, "M": 1.0, "g": 1.0, "smoothness": 1.0, "delta": 0.05},
    evaluates=("best_error", "error"),
)
_SOFTMAX = (
    r"Softmax attention over $L$ pairs is $\mathrm{attn}_L=\sum_iw_iv_i/\sum_iw_i$, and $\mu=\mathbb E[wv]/\mathbb "
    r"E[w]$ its limit, the "
    "Nadaraya-Watson mean."
)
X4 = Theorem(
    name="X4",
    title="softmax attention against its limit",
    source=source("zhang2022"),
    statement=r"With probability at least $1-\delta$ softmax attention over $L$ pairs is within about "
    r"$e^{1/\tau}\sqrt{\log(2/\delta)/L}$ of its limit, the Nadaraya-Watson mean.",
    published_note="the paper lets $L$ grow without a rate; this is the shape of the plain argument, numerator by "
    "Hoeffding and denominator by its least value",
    compares="error",
    published_form=_deferred("softmax_published"),
    forms=_forms(error="softmax_error", plain_error="softmax_plain_error"),
    definition=lambda values: _SOFTMAX,
    claims={
        "error": (_PAIRS, ""),
        "plain_error": (_PAIRS, ""),
    },
    steps=_steps("softmax_steps"),
    also=(
        r"$e^{1/\tau}$ for small $\tau$, where the plain argument has $e^{2/\tau}$: numerator and denominator are "
        r"bounded at "
        "once",
    ),
    statement_name="X4",
    defaults={"L": 512, "M": 1.0, "temperature": 1.0, "delta": 0.05},
    evaluates=("error", "plain_error"),
)
_TRANSFERRED = r"\mathbb E|wM^+\hat y-wh|^2"
_TRANSFER = r"Let $\hat y$ be the prediction of the pretext task $Mh$, and $M^+$ the pseudo-inverse of $M$."
X6 = Theorem(
    name="X6",
    title="from the pretext task to the downstream task",
    source=source("zhang2022"),
    statement=r"The head $w M^+$ carries a pretext error $e_{\mathrm{pre}}$ to the downstream task multiplied by "
    r"$\kappa_w^2$, $\kappa_w = |w M^+|$ the condition number of the pair of tasks.",
    published_note="the paper's own condition number of the pretext task is a worst case over downstream tasks, and "
    "its constant is $c$",
    compares="error",
    published_form=shape("error", lambda s, sympy: s.c * s.kappa_w**2 * s.e_pre, _TRANSFERRED),
    forms=_forms(error="transfer_error", any_head_error="any_head_error"),
    definition=lambda values: _TRANSFER,
    claims={
        "error": (r"Then, with $\kappa_w=|wM^+|$,", ""),
        "any_head_error": ("Then, for any head $a$,", ""),
    },
    steps=_steps("transfer_steps"),
    also=(r"the condition number is that of the pair of tasks, at most $|w|/\sigma_{\min}(M)$",),
    of="E|w M^+ yhat - w h|^2",
    statement_name="X6",
)
INFERENCE = (X3, X4, X6)
