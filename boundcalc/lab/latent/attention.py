"""Attention as estimators of E[v | k = q]: kernel ridge regression (CME attention), softmax and linear attention.

All are sums of the values with weights that depend on keys and query alone. X3k bounds the error of each by the size of
the weights and by their distance from the query in the kernel's space (`power_function`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh, get_lapack_funcs
from scipy.spatial.distance import cdist

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.lab.latent.kernels import Array, Kernel, kernel_named

# -- positive definite systems

_MOST_CONDITION = 1e12
"""Beyond this condition number fewer than about four digits of a solution can be trusted."""
_POTRF, _POTRS, _TRTRS, _LANGE, _POCON = get_lapack_funcs(("potrf", "potrs", "trtrs", "lange", "pocon"), dtype="d")


@dataclass(frozen=True)
class _Factor:
    """The Cholesky factor of a matrix, upper triangular."""

    upper: Array

    def solve(self, b: Array) -> Array:
        """The matrix's inverse times b."""
        return _POTRS(self.upper, b)[0]

    def whiten(self, b: Array) -> Array:
        """U^(-T) b: the columns' squared norms are b^T A^(-1) b."""
        return _TRTRS(self.upper, b, trans=1)[0]


def _factor_gram(make: Callable[[], Array], lam: float, what: str) -> _Factor:
    """The factor of gram + lam I, in place; refuse a condition number above 1e12.

    To explain a failure `make` is called again.
    """
    gram = make()
    norm = float(_LANGE("1", gram.T))
    if not math.isfinite(norm):
        raise _refused(f"{what} with entries that are not finite", "finite entries")
    a = gram.T if gram.flags.c_contiguous and gram.flags.writeable else np.array(gram.T, order="F")
    diagonal = np.einsum("ii->i", a)
    diagonal += lam
    upper, info = _POTRF(a, overwrite_a=1, clean=0)  # gram is symmetric: its transpose is itself in Fortran's order
    reciprocal = 0.0 if info else float(_POCON(upper, norm + lam)[0])
    if lam == 0 and reciprocal < 10 * np.finfo(float).eps:
        least = max(0.0, float(eigvalsh(make())[0]))
        raise _refused(f"{what} with least eigenvalue {least:.3g} and lam = 0", "lam above 0 (--ridge)")
    if reciprocal * _MOST_CONDITION < 1:
        condition = 1 / reciprocal if reciprocal > 0 else math.inf
        got = f"{what} + lam I with condition number about {condition:.3g} (lam = {lam:g})"
        fix = f"Raise lam (--ridge) to {norm / _MOST_CONDITION:.2g} or more."
        raise _refused(got, f"a condition number of at most {_MOST_CONDITION:.3g}", fix)
    return _Factor(upper)


def _refused(got: str, needs: str, fix: str = "") -> Unsupported:
    return Unsupported(Refusal("CME attention", got, needs, fix))


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


@dataclass(frozen=True)
class _Attended:
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
    kernel: Kernel | str = "linear",
    form: str = "auto",
) -> _Attended:
    """CME attention, V^T (k(K,K) + lam I)^(-1) k(K,q), batch by batch: one Gram matrix is in memory at a time.

    Args:
        q: queries (..., n, d).
        k: keys (..., L, d).
        v: values (..., L, w), or None for the weights of the values themselves, (..., n, L).
        lam: the ridge; the posterior mean's is the noise's variance over the prior's (X2).
        kernel: a name in `kernels.KERNELS`, or a kernel.
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
    return _Attended(mean, variance, chosen)


def _form(form: str, kernel: Kernel, keys: Array) -> str:
    count = kernel.count(keys.shape[-1])
    if form == "auto":
        return "primal" if count is not None and count <= keys.shape[-2] else "dual"
    if form == "primal" and count is None:
        raise InvalidSetting(f"form must be 'dual' for the {kernel.name} kernel: it has no finite feature map")
    return form


def _primal(q: Any, k: Any, v: Array | None, lam: float, kernel: Kernel) -> tuple[Array, Array]:
    phi, psi = kernel.features(k), kernel.features(q)
    factor = _factor_gram(lambda: phi.T @ phi, lam, "the features' second moments Phi^T Phi")
    mean = psi @ factor.solve(phi.T if v is None else phi.T @ v)
    return mean, lam * np.square(factor.whiten(psi.T)).sum(0)


def _dual(q: Any, k: Any, v: Array | None, lam: float, kernel: Kernel) -> tuple[Array, Array]:
    factor = _factor_gram(lambda: kernel.gram(k, k), lam, f"the {kernel.name} kernel's matrix k(K, K)")
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
