"""Whether pairs refute the premise of X3k: a conditional mean of small norm, with all values near it."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from boundcalc.lab.latent.kernels import Array, Kernel

_MOST_PAIRS = 1000
_STEPS = 200
_RIDGES = (1.0, 1e-2, 1e-4, 1e-6)


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
