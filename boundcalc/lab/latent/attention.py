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
from scipy.spatial.distance import cdist

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


_MOST_PAIRS = 1000
_STEPS = 200
_RIDGES = (1.0, 1e-2, 1e-4, 1e-6)


# -- whether pairs refute the premise of X3k


def least_norm(keys: Array, values: Array, kernel: Kernel, noise: float) -> float:
    """A lower bound of |f| over all f in the kernel's space with |v_i - f(k_i)| <= noise for every pair.

    For any c, sum <c_i, v_i> <= noise sum |c_i| + |f| sqrt(tr c' K c), so every candidate c gives a lower bound.
    Rounding is subtracted. The bound is infinite where no f exists: one key with two values that are too far apart. Of
    many pairs only the first are used, which is enough to refute.
    """
    unit = max(float(np.abs(values).max()), noise) or 1.0
    keys, values, noise = keys[:_MOST_PAIRS], values[:_MOST_PAIRS] / unit, noise / unit
    gram = kernel.gram(keys, keys)
    off = kernel.rounding(keys, keys) + 4 * float(np.finfo(float).eps) * len(keys)
    sizes = np.linalg.norm(values, axis=1)
    best = _divided(sizes * (1 - off) - noise * (1 + off), np.diag(gram) * (1 + off))
    apart = cdist(values, values)
    diagonal = np.diag(gram)
    between = diagonal[:, None] + diagonal - 2 * gram
    slack = off * (diagonal[:, None] + diagonal + 2 * np.abs(gram))
    slack[cdist(keys, keys, "chebyshev") == 0] = 0.0  # one key: no f tells them apart
    between[slack == 0] = 0.0
    room = apart - off * (sizes[:, None] + sizes) - 2 * noise * (1 + off)
    best = max(best, _divided(room, np.maximum(between, 0.0) + slack))
    for c in _candidates(gram, values, noise):
        lengths = np.linalg.norm(c, axis=1)
        room = float((c * values).sum()) - noise * float(lengths.sum()) - off * float(lengths @ (sizes + noise))
        magnitude = float((np.abs(c) * (np.abs(gram) @ np.abs(c))).sum())
        square = max(0.0, float((c * (gram @ c)).sum())) + off * magnitude
        best = max(best, _divided(np.array(room), np.array(square)))
    return unit * best


def _divided(room: Array, square: Array) -> float:
    """The largest room/sqrt(square); infinite where the square is 0 and the room is not."""
    ratios = np.where(room > 0, room / np.sqrt(np.where(square > 0, square, 1.0)), 0.0)
    return float(np.where((room > 0) & (square == 0), math.inf, ratios).max(initial=0.0))


def _candidates(gram: Array, values: Array, noise: float) -> list[Array]:
    """Candidates c: ridge solutions, and an ascent of <c, v> - noise sum |c_i| - tr c' K c/2 by proximal gradients."""
    ridges = np.array(_RIDGES) * (float(np.trace(gram)) / len(gram) or 1.0)
    solutions = [np.linalg.solve(gram + ridge * np.eye(len(gram)), values) for ridge in ridges]
    step = 1 / (float(np.abs(gram).sum(1).max()) or 1.0)
    c = np.zeros_like(values)
    for _ in range(_STEPS):
        moved = c + step * (values - gram @ c)
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        c = moved * np.maximum(lengths - step * noise, 0.0) / np.maximum(lengths, 1e-300)
    return [*solutions, c]


# -- estimators

_EPS = float(np.finfo(float).eps)


class Attended(NamedTuple):
    """The result of CME attention.

    Attributes:
        mean: (queries, width of v).
        variance: k(q, q) - k(q, K) (k(K, K) + lam)^(-1) k(K, q): the posterior variance of a value's mean, in units of
            the prior's.
    """

    mean: Array
    variance: Array


def attend(q: ArrayLike, k: ArrayLike, v: ArrayLike | None, *, lam: float, kernel: Kernel | str = "linear") -> Attended:
    """CME attention, V^T (k(K,K) + lam I)^(-1) k(K,q), in the kernel's features or in the keys, whichever are fewer.

    Args:
        q: queries (n, d).
        k: keys (L, d).
        v: values (L, w), or None for the weights of the values themselves, (n, L).
        lam: the ridge; the posterior mean's is the noise's variance over the prior's (X2).
        kernel: a name in `kernels.KERNELS`, or a kernel.
    """
    validate.positive("lam", lam, zero=True)
    (queries, keys), values = _pair(q, k), None if v is None else _rows("values", v)
    if values is not None and len(keys) != len(values):
        raise InvalidSetting(f"there must be as many values as keys: {keys.shape} and {values.shape}")
    space = kernel_named(kernel)
    count = space.count(keys.shape[1])
    if count is not None and count <= len(keys):
        phi, psi = space.features(keys), space.features(queries)
        upper = _factor(phi.T @ phi, lam, "the features' second moments Phi^T Phi")
        mean = psi @ dpotrs(upper, phi.T if values is None else phi.T @ values)[0]
        return Attended(mean, lam * np.square(dtrtrs(upper, psi.T, trans=1)[0]).sum(0))
    upper = _factor(space.gram(keys, keys), lam, f"the {space.name} kernel's matrix k(K, K)")
    cross = space.gram(keys, queries)
    white = dtrtrs(upper, cross, trans=1)[0]  # U^(-T) b: squared norms of columns are b^T A^(-1) b
    mean = dpotrs(upper, cross)[0].T if values is None else white.T @ dtrtrs(upper, values, trans=1)[0]
    return Attended(mean, np.maximum(space.diagonal(queries) - np.square(white).sum(0), 0.0))


def power_function(q: ArrayLike, k: ArrayLike, weights: Array, kernel: Kernel | str = "linear") -> Array:
    """P(q) = |phi(q) - sum_i weights_i phi(k_i)|, rounded up, (queries,): the factor of |f*| in X3k."""
    queries, keys = _pair(q, k)
    space = kernel_named(kernel)
    if space.count(keys.shape[1]) is not None:
        psi, seen = space.features(queries), space.features(keys)
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
    scores = (queries / tau) @ keys.T
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


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
