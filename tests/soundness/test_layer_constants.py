"""Attacks on constants that attacks on whole layers (test_layer_facts) come less close to: random starts, hill
climbing.

An attack returns the ratios (observed change) / (claimed bound) it reached. A sound constant keeps
every ratio at most one; a tight one is approached within five per cent. The negative controls lower
the constant and expect the same attack to break it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.normaliser import normaliser_constants
from boundcalc.setting import Attention, Budget, Layer, Normaliser, Norms
from boundcalc.statements.weights import Weights
from tests.soundness.network import ACTIVATIONS, ball, rows

Array = NDArray[np.float64]
Run = Callable[[Array], Array]
SLACK = 1e-6  # finite differences


def violations(ratios: list[float], factor: float = 1.0) -> list[float]:
    """Ratios above one when the claimed constant is multiplied by `factor`."""
    return [r / factor for r in ratios if r / factor > 1 + SLACK]


def softmax(u: Array) -> Array:
    e = np.exp(u - u.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_plus_one(u: Array) -> Array:
    return softmax(np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1))[..., :-1]


def climb(rng: np.random.Generator, value: Callable[[Array], float], start: Array, steps: int) -> float:
    """Hill climbing with a shrinking step."""
    best, size = value(start), 0.5
    for _ in range(steps):
        trial = start + size * rng.standard_normal(start.shape)
        new = value(trial)
        if new > best:
            best, start, size = new, trial, min(size * 1.5, 1.0)
        else:
            size = max(size * 0.93, 1e-4)
    return best


def facts_of(layer: Layer, radius: float = 1.0, **op: float) -> Facts:
    """What is claimed of a layer, by spectral norms of 1 unless given."""
    norms = Norms(C=1.0, budgets={kind: Budget(op=norm) for kind, norm in op.items()})
    return layer.facts(Context(Weights(FLOAT, norms), radius, 1, 1))


# ---------------------------------------------------------------- L1, L2

NORMALISERS: dict[str, Run] = {
    "softmax": softmax,
    "softmax1": softmax_plus_one,
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)) / u.shape[-1],
}


def normaliser_ratios(name: str, seed: int) -> list[float]:
    """|norm(u) - norm(v)|_1 over its bound: small and large differences, climbed from random."""
    rng = np.random.default_rng(seed)
    norm = NORMALISERS[name]
    c, mu = normaliser_constants(Normaliser(name), 1.0, 1.0, Context(Weights(FLOAT, Norms(C=1.0)), 1.0, 1, 1))
    ratios: list[float] = []
    for case in range(60):
        t = int(rng.integers(1, 9))
        gap = float(rng.choice([1e-4, 0.3, 2.0, 8.0]))

        def value(z: Array, gap: float = gap) -> float:
            u, v = z[0], z[0] + gap * np.tanh(z[1])
            change = float(np.abs(norm(u) - norm(v)).sum())
            return change / min(c * gap, 2 * mu)

        start = rng.standard_normal((2, t)) * rng.choice([0.3, 2])
        ratios.append(climb(rng, value, start, 250 if case < 40 else 0))
    return ratios


@pytest.mark.parametrize("name", NORMALISERS)
def test_normalisers(name: str) -> None:
    ratios = normaliser_ratios(name, 1)
    assert violations(ratios) == []
    assert max(ratios) > 0.95
    assert violations(ratios, 0.9)


# ---------------------------------------------------------------- L3


@pytest.mark.parametrize("name", sorted(set(ACTIVATION_LIPSCHITZ) - {"relu", "tanh", "identity"}))
def test_activation_slopes_are_rounded_up(name: str) -> None:
    """Above the largest slope, by less than two units of the fifth digit.

    A fifth digit less would be false or nearly so.
    """
    x = np.linspace(-12, 12, 480_001)
    y = ACTIVATIONS[name](x)
    assert bool((np.abs(y) <= np.abs(x) + 1e-15).all())  # the radius factor is one
    steepest = float(np.abs(np.diff(y) / np.diff(x)).max())
    assert steepest <= ACTIVATION_LIPSCHITZ[name] < steepest + 2e-5


# ---------------------------------------------------------------- L7, S4


def slope_at(layer: Run, x: Array, dx: Array) -> float:
    """Directional derivative per unit of perturbation, central difference."""
    h = 1e-5 / max(rows(dx), 1e-300)  # a dead unit has no direction, and slope zero
    return rows(layer(x + h * dx) - layer(x - h * dx)) / (2e-5)


def worst_direction(layer: Run, x: Array, row: int) -> Array:
    """Unit rows along the derivative of one output row in its steepest direction."""
    h = 1e-5
    out = layer(x).shape[1]
    jacobian = np.zeros((out, *x.shape))
    for i, j in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i, j] = h
        jacobian[:, i, j] = (layer(x + step)[row] - layer(x - step)[row]) / (2 * h)
    pulls = [np.tensordot(u, jacobian, axes=1) for u in np.linalg.svd(jacobian.reshape(out, -1))[0].T]
    best = max(pulls, key=lambda pull: float(np.linalg.norm(pull, axis=1).sum()))
    return best / np.maximum(np.linalg.norm(best, axis=1, keepdims=True), 1e-300)


def rotary_slope(kap: float, angle: float) -> float:
    """One query and the keys +-e_2, turned by +angle and -angle before they are scored (RoPE)."""
    cos, sin = math.cos(angle), math.sin(angle)
    turns = np.array([[[cos, -sin], [sin, cos]], [[cos, sin], [-sin, cos]]])

    def layer(z: Array) -> Array:
        turned = np.einsum("tij,tj->ti", turns, z[:2])
        return softmax(kap * turned @ z[2])[None] @ z[:2]

    x = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0]])
    return slope_at(layer, x, worst_direction(layer, x, 0))


def test_the_constant_of_one_matrix_is_exceeded_by_rotary_positions() -> None:
    """Scores that depend on positions need the plain constant (L12), not that of L7."""
    for kap in (0.2, 1.0, 3.0):
        steepest = max(rotary_slope(kap, angle) for angle in np.linspace(-1.2, 1.2, 49))
        one_matrix = facts_of(Attention(2), W_QK=kap).lipschitz
        assert one_matrix * 1.01 < steepest <= facts_of(Attention(2, cap=1.0), W_QK=kap).lipschitz


def separate_score_ratios(seed: int, *, project: bool) -> list[float]:
    """Scores from separate query and key maps, errors in both."""
    rng = np.random.default_rng(seed)
    ratios: list[float] = []
    for case in range(2000):
        b, c_q, c_k = (float(z) for z in rng.uniform(0.3, 2, 3))
        d_head = int(rng.integers(1, 5))
        q = ball(9 * rng.standard_normal((1, d_head)), b * c_q)
        k = ball(9 * rng.standard_normal((1, d_head)), b * c_k)
        if case % 2:
            k = q * c_k / c_q
        eps_q, eps_k = (float(z) for z in rng.uniform(0, 2, 2))
        dq, dk = q / rows(q) * eps_q, k / rows(k) * eps_k
        sign = -1 if case % 4 == 3 else 1
        k1 = ball(k + sign * dk, b * c_k) if project else k + sign * dk
        change = abs(float(((q + sign * dq) @ k1.T - q @ k.T)[0, 0])) / math.sqrt(d_head)
        slots = facts_of(Attention(1, d_head=d_head, qk="split"), b, W_Q=c_q, W_K=c_k).slots
        per_eps = {slot.kind: slot.sensitivity / b for slot in slots}
        bound = per_eps["W_Q"] * eps_q + per_eps["W_K"] * eps_k
        ratios.append(change / bound)
    return ratios


def test_s4_separate_query_and_key_maps() -> None:
    ratios = separate_score_ratios(11, project=True)
    assert violations(ratios) == []
    assert max(ratios) > 0.95
    assert violations(ratios, 0.9)
    assert violations(separate_score_ratios(11, project=False))
