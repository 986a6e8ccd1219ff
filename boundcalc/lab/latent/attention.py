"""Attention as estimators of E[v | k = q]: kernel ridge regression (CME attention), softmax and linear attention.

All are sums of the values with weights that depend on keys and query alone. X3k bounds the error of each by the size of
the weights and by their distance from the query in the kernel's space (`power_function`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dlange, dpocon, dpotrf, dpotrs, dtrtrs  # type: ignore[attr-defined]
from scipy.special import softmax

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.lab.latent.kernels import Array, Kernel, kernel_named

# -- positive definite systems

_MOST_CONDITION = 1e12
"""Beyond this condition number fewer than about four digits of a solution can be trusted."""


def _factor(gram: Array, lam: float, what: str) -> Array:
    """The upper Cholesky factor of gram + lam I, in place; refuse a condition number above 1e12."""
    norm = float(dlange("1", gram.T))
    if not math.isfinite(norm):
        raise Unsupported(Refusal("CME attention", f"{what} with entries that are not finite", "finite entries"))
    np.einsum("ii->i", gram)[:] += lam
    upper, info = dpotrf(gram.T, overwrite_a=1, clean=0)  # symmetric: its transpose is itself in Fortran's order
    reciprocal = 0.0 if info else float(dpocon(upper, norm + lam)[0])
    if reciprocal * _MOST_CONDITION < 1:
        condition = 1 / reciprocal if reciprocal > 0 else math.inf
        got = f"{what} + lam I with condition number about {condition:.3g} (lam = {lam:g})"
        fix = f"Raise lam (--ridge) to {norm / _MOST_CONDITION:.2g} or more."
        raise Unsupported(Refusal("CME attention", got, f"a condition number of at most {_MOST_CONDITION:.3g}", fix))
    return upper


# -- estimators

_EPS = float(np.finfo(float).eps)


class Attended(NamedTuple):
    """The result of CME attention.

    Attributes:
        weights: (queries, keys); `weights @ values` is the posterior mean of the values' means (X2).
        variance: k(q, q) - k(q, K) (k(K, K) + lam)^(-1) k(K, q): the posterior variance of a value's mean, in units of
            the prior's.
    """

    weights: Array
    variance: Array


def attend(q: ArrayLike, k: ArrayLike, *, lam: float, kernel: Kernel | str = "linear") -> Attended:
    """CME attention, (k(K,K) + lam I)^(-1) k(K,q), in the kernel's features or in the keys, whichever are fewer.

    Args:
        q: queries (n, d).
        k: keys (L, d).
        lam: the ridge; the posterior mean's is the noise's variance over the prior's (X2).
        kernel: a name in `kernels.KERNELS`, or a kernel.
    """
    validate.positive("lam", lam, zero=True)
    queries, keys = _pair(q, k)
    space = kernel_named(kernel)
    phi, psi = space.features(keys), space.features(queries)
    if phi is not None and psi is not None and phi.shape[1] <= len(keys):
        upper = _factor(phi.T @ phi, lam, "the features' second moments Phi^T Phi")
        weights = psi @ dpotrs(upper, phi.T)[0]
        return Attended(weights, lam * np.square(dtrtrs(upper, psi.T, trans=1)[0]).sum(0))
    upper = _factor(space.gram(keys, keys), lam, f"the {space.name} kernel's matrix k(K, K)")
    cross = space.gram(keys, queries)
    white = dtrtrs(upper, cross, trans=1)[0]  # U^(-T) b: squared norms of columns are b^T A^(-1) b
    left = np.maximum(space.diagonal(queries) - np.square(white).sum(0), 0.0)
    return Attended(dpotrs(upper, cross)[0].T, left)


def power_function(q: ArrayLike, k: ArrayLike, weights: Array, kernel: Kernel | str = "linear") -> Array:
    """P(q) = |phi(q) - sum_i weights_i phi(k_i)|, rounded up, (queries,): the factor of |f*| in X3k."""
    queries, keys = _pair(q, k)
    space = kernel_named(kernel)
    psi, seen = space.features(queries), space.features(keys)
    if psi is not None and seen is not None:
        lengths = np.linalg.norm(psi, axis=-1) + (np.abs(weights) * np.linalg.norm(seen, axis=-1)).sum(-1)
        return np.linalg.norm(psi - weights @ seen, axis=-1) + (sum(seen.shape) + 8) * _EPS * lengths
    own, cross, gram = space.diagonal(queries), space.gram(queries, keys), space.gram(keys, keys)

    def square(own: Array, cross: Array, gram: Array, weights: Array) -> Array:
        return own - 2 * (weights * cross).sum(-1) + ((weights @ gram) * weights).sum(-1)

    size = square(np.abs(own), -np.abs(cross), np.abs(gram), np.abs(weights))
    share = max(space.rounding(x, y) for x, y in ((queries, queries), (queries, keys), (keys, keys)))
    rounding = 2 * (share + 2 * _EPS * len(keys)) * size  # the terms nearly cancel
    return np.sqrt(np.maximum(square(own, cross, gram, weights), 0.0) + rounding)


def softmax_weights(q: ArrayLike, k: ArrayLike, tau: float = 1.0) -> Array:
    """Weights exp(<q, k>/tau), normalised: (queries, keys)."""
    validate.positive("temperature tau", tau)
    queries, keys = _pair(q, k)
    return softmax((queries / tau) @ keys.T, axis=-1)


def linear_weights(q: ArrayLike, k: ArrayLike) -> Array:
    """Weights <q, k> over the number of keys: (queries, keys)."""
    queries, keys = _pair(q, k)
    return queries @ keys.T / len(keys)


def _pair(q: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    """Queries (n, d) and keys (L, d) as arrays; refused where they do not fit."""
    queries, keys = _rows("queries", q), _rows("keys", k)
    if queries.shape[1] != keys.shape[1]:
        raise InvalidSetting(f"queries of width {queries.shape[1]} do not fit keys of width {keys.shape[1]}")
    if not len(keys):
        raise InvalidSetting(f"there must be at least one key, got shape {keys.shape}")
    return queries, keys


def _rows(name: str, x: ArrayLike) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidSetting(f"{name} must have two axes (rows, width), got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise InvalidSetting(f"{name} must be finite, but {int((~np.isfinite(rows)).sum())} entries are not")
    return rows
