"""The search for a query: where the bits lie that go with the answer, a direction that exposes them, then Adam in the ball."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.pooling import PoolingClass, PoolingNetwork, positions, signs

_STEPS = 250
_HARDEST = 1000
"""Examples that are polished on: those with the smallest margins at the start."""
_LEAST_LEAD = 5.0
"""Nats by which attention must be able to lead, or a direction is given up."""
_ENOUGH = 1.002
"""A least margin that is worth stopping for, relative to gamma."""


def train(cls: PoolingClass, data: Data, *, steps: int = _STEPS) -> Array:
    """A query in the ball of the class with few margins at most gamma; the best of a few starts."""
    network = PoolingNetwork(cls.bits, cls.width, cls.read)
    x, y = signs(data, cls.bits)
    best: tuple[tuple[int, float], Array] | None = None
    for q in _starts(cls, x, y):
        ahead = y * network.outputs(q, x)[0]
        hardest = np.argsort(ahead, kind="stable")[:_HARDEST]
        _, found = _polished(network, cls, q, x[hardest], y[hardest], steps)
        rank = _rank(cls, y * network.outputs(found, x)[0])
        if best is None or rank < best[0]:
            best = rank, found
        if best[0][0] == 0 and -best[0][1] > _ENOUGH * cls.margin:
            break
    if best is None:
        return np.zeros(cls.width + 1)
    return best[1]


def _starts(cls: PoolingClass, x: Array, y: Array) -> Iterator[Array]:
    """Directions that expose the bits which go with the answer most, with the ones or the zeros among them ahead."""
    p = positions(cls.bits, cls.width)
    for support in _supports(x, y):
        direction = exposing(p, support)
        if direction is None or _lead(p, support, direction) * cls.within < _LEAST_LEAD:
            continue
        for ahead in _ahead(x[:, support], y):
            length = np.sqrt(max(0.0, cls.within**2 * (1 - 1e-6) - ahead**2))
            yield np.append(length * direction, ahead)


def _lead(p: Array, support: Array, direction: Array) -> float:
    """How far the support is ahead of all others."""
    along = p @ direction
    return float(along[support].min() - np.delete(along, support).max())


def _supports(x: Array, y: Array) -> list[Array]:
    """The bits before the largest steps down of |correlation|."""
    together = np.abs(y @ (x - x.mean(axis=0))) / len(y)
    order = np.argsort(-together, kind="stable")
    falling = together[order]
    most = min(8, len(falling) - 1)
    steps = falling[:most] - falling[1 : most + 1]
    return [order[: int(count) + 1] for count in np.argsort(-steps, kind="stable")[:2]]


def _ahead(x: Array, y: Array) -> list[float]:
    """What a bit itself may add to its score: zeros first, ones first, or none, whichever agrees with the answers best."""
    rules = {-3.0: x.min(axis=1), 3.0: x.max(axis=1), 0.0: np.sign(x.sum(axis=1))}
    return sorted(rules, key=lambda ahead: float((rules[ahead] != y).mean()))[:1]


def exposing(p: Array, support: Array, rounds: int = 60) -> Array | None:
    """The unit vector whose least product with the support exceeds its largest product with the others most.

    Hard margins as a least-norm problem: min |w| with <p_r - p_i, w> >= 1, solved with the pairs that bind.
    """
    others = np.setdiff1d(np.arange(len(p)), support)
    from scipy.optimize import nnls

    gaps = (p[support][:, None] - p[others][None]).reshape(-1, p.shape[1])
    system = np.vstack([gaps.T, np.ones(len(gaps))])
    target = np.zeros(p.shape[1] + 1)
    target[-1] = 1.0
    try:
        found, _ = nnls(system, target, maxiter=rounds * len(gaps))
    except RuntimeError:
        return None
    rest = system @ found - target
    if abs(rest[-1]) < 1e-9:
        return None  # no direction does
    w = -rest[:-1] / rest[-1]
    return w / np.linalg.norm(w)


def _rank(cls: PoolingClass, ahead: Array) -> tuple[int, float]:
    """Margins at most gamma, then how small the least is: smaller is better."""
    return int((ahead <= cls.margin * (1 + 1e-8)).sum()), -float(ahead.min())


def _polished(
    network: PoolingNetwork, cls: PoolingClass, q: Array, x: Array, y: Array, steps: int
) -> tuple[tuple[int, float], Array]:
    """Adam on the smallest margins, back into the ball after each step; the best point on the way."""
    sharp = 20 / cls.margin
    first, second = np.zeros_like(q), np.zeros_like(q)
    best: tuple[tuple[int, float], Array] | None = None
    for step in range(steps + 1):
        f, slopes = network.outputs(q, x)
        ahead = y * f
        rank = _rank(cls, ahead)
        if best is None or rank < best[0]:
            best = rank, q.copy()
        if step == steps or (rank[0] == 0 and -rank[1] > _ENOUGH * cls.margin):
            break
        short = sharp * (1.02 * cls.margin - ahead)
        worst = np.exp(short - short.max())
        weights = 1 / (1 + np.exp(-np.clip(short, -50, 50))) / len(y) + 0.3 * worst / worst.sum()
        gradient = -(weights * y) @ slopes
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        size = 0.15 * (1 - step / steps) + 1e-3
        q = q - size * first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-12)
        q *= min(1.0, cls.within * (1 - 1e-9) / float(np.linalg.norm(q)))
    return best if best is not None else ((len(y), 0.0), q)
