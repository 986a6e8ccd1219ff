"""Attention as estimators of E[v | k = q]: kernel ridge regression (CME attention), softmax and linear attention.

All are sums of the values with weights that depend on keys and query alone. X3k bounds the error of each by the size of
the weights and by their distance from the query in the kernel's space (`power_function`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.kernels import Array, Function, Kernel, kernel_named
from boundcalc.lab.latent.solve import factor_gram

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Attended:
    """The result of CME attention.

    Attributes:
        mean: (..., queries, width of v).
        variance: k(q, q) - k(q, K) (k(K, K) + lam)^(-1) k(K, q): the posterior variance of a value's mean, in units of
            the prior's.
        form: "primal" (in the features) or "dual" (in the keys).
    """

    mean: Array
    variance: Array
    form: str


def attend(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike | None,
    *,
    lam: float,
    kernel: Kernel | str | Callable[[Any, Any], Any] = "linear",
    form: str = "auto",
) -> Attended:
    """CME attention, V^T (k(K,K) + lam I)^(-1) k(K,q), batch by batch: one Gram matrix is in memory at a time.

    Args:
        q: queries (..., n, d).
        k: keys (..., L, d).
        v: values (..., L, w), or None for the weights of the values themselves, (..., n, L).
        lam: the ridge; the posterior mean's is the noise's variance over the prior's (X2).
        kernel: a name in `kernels.KERNELS`, a kernel, or a function (X, Y) -> matrix, which is checked.
        form: "primal" works in the kernel's features, "dual" in the keys, "auto" in the fewer.
    """
    validate.positive("lam", lam, zero=True)
    (queries, keys), values = _pair(q, k), None if v is None else _rows("values", v)
    if values is not None and keys.shape[-2] != values.shape[-2]:
        raise InvalidSetting(f"there must be as many values as keys: {keys.shape} and {values.shape}")
    space = kernel_named(kernel)
    chosen = _form(validate.choice("form", form, ("auto", "primal", "dual")), space, keys)
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (queries, keys, values) if x is not None))
    views = [None if x is None else np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (queries, keys, values)]
    mean = np.empty((*batch, queries.shape[-2], keys.shape[-2] if values is None else values.shape[-1]))
    variance = np.empty(mean.shape[:-1])
    solve = _primal if chosen == "primal" else _dual
    for index in np.ndindex(batch):
        q_i, k_i, v_i = (None if x is None else x[index] for x in views)
        mean[index], variance[index] = solve(q_i, k_i, v_i, lam, space)
    return Attended(mean, variance, chosen)


def _form(form: str, kernel: Kernel, keys: Array) -> str:
    count = kernel.count(keys.shape[-1])
    if form == "auto":
        return "primal" if count is not None and count <= keys.shape[-2] else "dual"
    if form == "primal" and count is None:
        raise InvalidSetting(f"form must be 'dual' for the {kernel.name} kernel: it has no finite feature map")
    return form


def _primal(q: Any, k: Any, v: Array | None, lam: float, kernel: Kernel) -> tuple[Array, Array]:
    phi, psi = kernel.features(k), kernel.features(q)
    factor = factor_gram(lambda: phi.T @ phi, lam, what="the features' second moments Phi^T Phi")
    mean = psi @ factor.solve(phi.T if v is None else phi.T @ v)
    return mean, lam * np.square(factor.whiten(psi.T)).sum(0)


def _dual(q: Any, k: Any, v: Array | None, lam: float, kernel: Kernel) -> tuple[Array, Array]:
    what = f"the {kernel.name} kernel's matrix k(K, K)"
    factor = factor_gram(lambda: kernel.gram(k, k), lam, what=what, check=isinstance(kernel, Function))
    cross = kernel.gram(k, q)
    white = factor.whiten(cross)
    mean = factor.solve(cross).T if v is None else white.T @ factor.whiten(v)
    return mean, np.maximum(kernel.diagonal(q) - np.square(white).sum(0), 0.0)


def power_function(q: ArrayLike, k: ArrayLike, weights: Array, kernel: Kernel | str = "linear") -> Array:
    """P(q) = |phi(q) - sum_i weights_i phi(k_i)|, rounded up, (..., queries): the factor of |f*| in X3k."""
    queries, keys = _pair(q, k)
    space = kernel_named(kernel)
    if space.count(keys.shape[-1]) is not None:
        psi, seen = space.features(queries), space.features(keys)
        lengths = np.linalg.norm(psi, axis=-1) + (np.abs(weights) * np.linalg.norm(seen, axis=-1)[..., None, :]).sum(-1)
        return np.linalg.norm(psi - weights @ seen, axis=-1) + (sum(seen.shape[-2:]) + 8) * _EPS * lengths
    own, cross, gram = space.diagonal(queries), space.gram(queries, keys), space.gram(keys, keys)

    def square(own: Array, cross: Array, gram: Array, weights: Array) -> Array:
        return own - 2 * (weights * cross).sum(-1) + ((weights @ gram) * weights).sum(-1)

    size = square(np.abs(own), -np.abs(cross), np.abs(gram), np.abs(weights))
    share = max(space.rounding(x, y) for x, y in ((queries, queries), (queries, keys), (keys, keys)))
    rounding = 2 * (share + 2 * _EPS * keys.shape[-2]) * size  # the terms nearly cancel
    return np.sqrt(np.maximum(square(own, cross, gram, weights), 0.0) + rounding)


def softmax_weights(q: ArrayLike, k: ArrayLike, tau: float = 1.0) -> Array:
    """Weights exp(<q, k>/tau), normalised: (..., queries, keys)."""
    validate.positive("temperature tau", tau)
    queries, keys = _pair(q, k)
    scores = (queries / tau) @ np.swapaxes(keys, -1, -2)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def linear_weights(q: ArrayLike, k: ArrayLike) -> Array:
    """Weights <q, k> over the number of keys: (..., queries, keys)."""
    queries, keys = _pair(q, k)
    return queries @ np.swapaxes(keys, -1, -2) / keys.shape[-2]


def _pair(q: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    """Queries (..., n, d) and keys (..., L, d) as arrays; refused where they do not fit."""
    queries, keys = _rows("queries", q), _rows("keys", k)
    if queries.shape[-1] != keys.shape[-1]:
        raise InvalidSetting(f"queries of width {queries.shape[-1]} do not fit keys of width {keys.shape[-1]}")
    if not keys.shape[-2]:
        raise InvalidSetting(f"there must be at least one key, got shape {keys.shape}")
    return queries, keys


def _rows(name: str, x: ArrayLike) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim < 2:
        raise InvalidSetting(f"{name} must have at least two axes (rows, width), got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise InvalidSetting(f"{name} must be finite, but {int((~np.isfinite(rows)).sum())} entries are not")
    return rows
