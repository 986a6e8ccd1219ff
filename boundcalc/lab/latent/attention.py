"""Attention as estimators of E[v | k = q]: by kernel ridge regression (CME), by weighted means (softmax), linear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.kernels import Array, Kernel, kernel_named
from boundcalc.lab.latent.solve import MOST_CONDITION, factor_gram
from boundcalc.setting import validate


@dataclass(frozen=True)
class Attended:
    """What attention gives.

    Attributes:
        mean: (..., queries, width of v).
        spread: phi(q)^T (Phi^T Phi + lam)^(-1) phi(q), the posterior variance of a value's mean in units of the noise
            variance; None unless asked for.
        form: "primal" (in the features) or "dual" (in the keys).
    """

    mean: Array
    spread: Array | None
    form: str


def cme_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    lam: float,
    kernel: Kernel | str | Callable[[Any, Any], Any] = "linear",
    form: str = "auto",
    max_condition: float = MOST_CONDITION,
) -> Array:
    """V^T (k(K,K) + lam I)^(-1) k(K,q): (..., queries, width of v). In the features where they are fewer than keys."""
    return attend(q, k, v, lam=lam, kernel=kernel, form=form, max_condition=max_condition).mean


def attend(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    lam: float,
    kernel: Kernel | str | Callable[[Any, Any], Any] = "linear",
    form: str = "auto",
    spread: bool = False,
    max_condition: float = MOST_CONDITION,
) -> Attended:
    """CME attention with all it can tell; batches are worked on one by one, so one Gram matrix is in memory."""
    validate.positive("lam", lam, zero=True)
    queries, keys, values = arrays(q, k, v)
    found = kernel_named(kernel)
    chosen = _form(validate.choice("form", form, ("auto", "primal", "dual")), found, keys)
    batch = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    mean = np.empty((*batch, queries.shape[-2], values.shape[-1]))
    sizes = np.empty((*batch, queries.shape[-2])) if spread else None
    one = _primal if chosen == "primal" else _dual
    views = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (queries, keys, values)]
    for index in np.ndindex(batch):
        asked, here, held = (view[index] for view in views)
        mean[index], size = one(asked, here, held, lam, found, spread, max_condition)
        if sizes is not None:
            sizes[index] = size
    return Attended(mean, sizes, chosen)


def _form(form: str, kernel: Kernel, keys: Array) -> str:
    count = kernel.count(keys.shape[-1])
    if form == "auto":
        return "primal" if count is not None and count <= keys.shape[-2] else "dual"
    if form == "primal" and count is None:
        raise InvalidSetting(f"form must be 'dual' for the {kernel.name} kernel: it has no finite feature map")
    return form


def _primal(
    q: Array, k: Array, v: Array, lam: float, kernel: Kernel, spread: bool, most: float
) -> tuple[Array, Array | None]:
    phi, asked = kernel.features(k), kernel.features(q)
    factor = factor_gram(lambda: phi.T @ phi, lam, most, what="the features' second moments Phi^T Phi")
    mean = asked @ factor.solve(phi.T @ v)
    return mean, np.square(factor.whiten(asked.T)).sum(0) if spread else None


def _dual(
    q: Array, k: Array, v: Array, lam: float, kernel: Kernel, spread: bool, most: float
) -> tuple[Array, Array | None]:
    factor = factor_gram(
        lambda: kernel.gram(k, k),
        lam,
        most,
        what=f"the {kernel.name} kernel's matrix k(K, K)",
        check=not kernel.trusted,
    )
    cross = kernel.gram(k, q)
    if not spread:
        return (cross.T @ factor.solve(v) if v.shape[1] <= cross.shape[1] else factor.solve(cross).T @ v), None
    white = factor.whiten(cross)
    if lam == 0:
        raise InvalidSetting("lam must be above 0 for posterior variances in units of the noise variance")
    return white.T @ factor.whiten(v), (kernel.diagonal(q) - np.square(white).sum(0)) / lam


def cme_weights(
    q: ArrayLike, k: ArrayLike, *, lam: float, kernel: Kernel | str = "linear", max_condition: float = MOST_CONDITION
) -> Array:
    """Alpha = (k(K,K) + lam I)^(-1) k(K,q): (..., queries, keys); they may be negative and need not sum to 1."""
    validate.positive("lam", lam, zero=True)
    queries, keys, _ = arrays(q, k, np.zeros((*np.shape(k)[:-1], 1)))
    found = kernel_named(kernel)
    batch = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
    out = np.empty((*batch, queries.shape[-2], keys.shape[-2]))
    primal = _form("auto", found, keys) == "primal"
    for index in np.ndindex(batch):
        asked = np.broadcast_to(queries, (*batch, *queries.shape[-2:]))[index]
        here = np.broadcast_to(keys, (*batch, *keys.shape[-2:]))[index]
        if primal:
            phi = found.features(here)
            factor = factor_gram(
                lambda phi=phi: phi.T @ phi, lam, max_condition, what="the features' second moments Phi^T Phi"
            )
            out[index] = factor.solve(found.features(asked).T).T @ phi.T
        else:
            what = f"the {found.name} kernel's matrix k(K, K)"
            factor = factor_gram(
                lambda here=here: found.gram(here, here), lam, max_condition, what=what, check=not found.trusted
            )
            out[index] = factor.solve(found.gram(here, asked)).T
    return out


def power_function(q: ArrayLike, k: ArrayLike, alpha: Array, kernel: Kernel | str = "linear") -> Array:
    """P(q) = |phi(q) - sum_i alpha_i phi(k_i)|: what X3k multiplies |f*| by."""
    queries, keys, _ = arrays(q, k, np.zeros((*np.shape(k)[:-1], 1)))
    found = kernel_named(kernel)
    if found.count(keys.shape[-1]) is not None:
        return np.linalg.norm(found.features(queries) - alpha @ found.features(keys), axis=-1)
    cross = np.einsum("...ql,...ql->...q", alpha, np.swapaxes(found.gram(keys, queries), -1, -2))
    own = np.einsum("...ql,...lm,...qm->...q", alpha, found.gram(keys, keys), alpha, optimize=True)
    return np.sqrt(np.maximum(found.diagonal(queries) - 2 * cross + own, 0.0))


def softmax_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, *, tau: float = 1.0) -> Array:
    """Sum of v weighted by exp(<q, k>/tau), normalised: (..., queries, width of v)."""
    validate.positive("temperature tau", tau)
    queries, keys, values = arrays(q, k, v)
    scores = (queries / tau) @ np.swapaxes(keys, -1, -2)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    return (scores @ values) / scores.sum(axis=-1, keepdims=True)


def linear_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    features: Callable[[Any], Any] | None = None,
    normalise: bool = False,
) -> Array:
    """phi(q)^T sum_t phi(k_t) v_t, divided by the number of keys or (normalise) by phi(q)^T sum_t phi(k_t).

    Costs O(keys), with no matrix of queries by keys.
    """
    queries, keys, values = arrays(q, k, v)
    if features is not None:
        queries, keys = np.asarray(features(queries), dtype=float), np.asarray(features(keys), dtype=float)
    top = queries @ (np.swapaxes(keys, -1, -2) @ values)
    if not normalise:
        return top / keys.shape[-2]
    bottom = (queries @ keys.sum(axis=-2)[..., None])[..., 0]
    if not (bottom > 0).all():
        raise InvalidSetting(
            f"features must be positive where attention is normalised: a row's mass is {bottom.min():.3g}; "
            "use features such as lambda x: numpy.exp(x)"
        )
    return top / bottom[..., None]


def arrays(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array]:
    """Queries (..., n, d), keys (..., L, d) and values (..., L, w) as float64, or the reason they do not fit."""
    queries, keys, values = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    for name, x in (("queries", queries), ("keys", keys), ("values", values)):
        if x.ndim < 2:
            raise InvalidSetting(f"{name} must have at least two axes (rows, width), got shape {x.shape}")
        if not np.isfinite(x).all():
            raise InvalidSetting(f"{name} must be finite, but {int((~np.isfinite(x)).sum())} entries are not")
    if queries.shape[-1] != keys.shape[-1]:
        raise InvalidSetting(f"queries of width {queries.shape[-1]} do not fit keys of width {keys.shape[-1]}")
    if keys.shape[-2] != values.shape[-2] or not keys.shape[-2]:
        raise InvalidSetting(f"there must be as many values as keys, and at least one: {keys.shape} and {values.shape}")
    return queries, keys, values
