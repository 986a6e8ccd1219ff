"""X as statements: attention as inference of a latent variable. The values are the formulas of `calculus.latent`."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.statement import Statement
from boundcalc.statements import latent


def _ridge(ns: NumberSystem, noise_variance: Number, prior_variance: Number) -> Number:
    """X2: the ridge at which CME attention is the posterior mean."""
    return ns.number(noise_variance) / ns.number(prior_variance)


def _smooth(smoothness: float) -> Refusal | None:
    if 0.5 < smoothness <= 1.5:
        return None
    need = "1/2 < r <= 3/2 (above 3/2 ridge regression saturates: use r = 3/2)"
    return Refusal("X3", f"smoothness r = {smoothness:g}", need)


LATENT = (
    Statement("X0", compute=latent.hilbert_bernstein),
    Statement("X1", compute=latent.finite_mixture_distance),
    Statement("X2", compute=_ridge),
    Statement("X3", compute=latent.cme_error, applies=_smooth),
    Statement("X3k", compute=latent.cme_error_given_keys),
    Statement("X4", compute=latent.softmax_error),
    Statement("X5", compute=latent.learning_gap),
    Statement("X6", compute=latent.transfer_error),
)
