"""Attacks on constants that the laws of layers (tests/laws/test_layers.py) come less close to, and networks that attain
claims.

An attack returns the ratios (observed change) / (claimed bound) it reached. A sound constant keeps
every ratio at most one; a tight one is approached within five per cent. The negative controls lower
the constant and expect the same attack to break it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import ACTIVATIONS
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Fixed
from boundcalc.layers.heads import _normaliser_constants
from boundcalc.setting import Attention, Budget, Layer, Lookup, Normaliser, Norms
from boundcalc.statements.weights import Weights
from boundcalc.testing._layers import LayerExample, claimed
from tests.soundness.network import rows

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
    c, mu = _normaliser_constants(Normaliser(name), 1.0, 1.0, Context(Weights(FLOAT, Norms(C=1.0)), 1.0, 1, 1))
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


# ---------------------------------------------------------------- claims that single networks attain

OPPOSITE = np.array([[1.0, 0.0], [-1.0, 0.0]])
PAIR = np.array([[1.0], [-1.0]])
"""Two opposite rows: a score error of +-e turns equal weights into masses that differ by tanh e."""
TIGHT, MOST = 0.95, 1 + SLACK


def placed(layer: Layer, norms: Norms, x: Array, radius: float = 1.0) -> tuple[Callable[..., Array], Facts]:
    """A layer as a function of weights and rows, and what is claimed of it."""
    fixed = Fixed(bucket=lambda count: 1 - np.eye(count, dtype=int))
    at = LayerExample(layer, norms, radius, len(x), fixed)
    return lambda p, z=x: np.atleast_2d(at.output(p, z)), at.claims(claimed)


def extremal_stretch(kap: float, *, causal: bool, normaliser: str) -> float:
    """Rows +-b e_2 in equal numbers and a last query b e_1: its slope over the factor claimed for kap = b^2 C_W.

    W = (kap/b^2) diag(-1, 1): the query scores 0 on the pairs and -kap on itself, and its own row has little weight.
    """
    b = 1.5
    x = np.concatenate([np.tile(np.array([[0.0, b], [0.0, -b]]), (60, 1)), [[b, 0.0]]])
    norms = Norms(budgets={"W_QK": Budget(op=kap / b**2), "W_V": Budget(op=1.0)})
    f, here = placed(Attention(2, causal=causal, normaliser=Normaliser(normaliser)), norms, x, b)
    p = {("W_QK", None, 0): kap / b**2 * np.diag([-1.0, 1.0]), ("W_V", None, 0): np.eye(2)}
    direction = worst_direction(lambda z: f(p, z), x, len(x) - 1)
    return slope_at(lambda z: f(p, z), x, direction) / float(here.lipschitz)


@pytest.mark.parametrize("normaliser", ["softmax", "softmax1"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_factor_of_a_softmax_head_is_tight(causal: bool, normaliser: str) -> None:
    for kap in (0.3, 1.0, 3.0):
        assert TIGHT < extremal_stretch(kap, causal=causal, normaliser=normaliser) <= MOST


def extremal_score(gap: float) -> tuple[float, float]:
    """Two opposite rows whose weights e^-gap : 1 become 1 : e^-gap: change over claim, and over the cap."""
    f, here = placed(Attention(2), Norms(budgets={"W_QK": Budget(op=4.0), "W_V": Budget(op=1.0)}), OPPOSITE)
    p = {("W_QK", None, 0): np.diag([-gap / 2, 0.0]), ("W_V", None, 0): np.eye(2)}
    change = rows(f({**p, ("W_QK", None, 0): np.diag([gap / 2, 0.0])}) - f(p))
    return change / (float(here.slots[0].sensitivity) * gap), change / float(here.slots[0].cap or 0.0)


def test_the_cost_of_a_score_error_is_tight() -> None:
    for gap in (1e-3, 0.1, 1.0, 6.0):
        assert max(extremal_score(gap)) <= MOST
    assert extremal_score(1e-3)[0] > TIGHT
    assert extremal_score(7.9)[1] > TIGHT


def own_query(q: Array) -> tuple[Callable[..., Array], Facts, dict[Any, Array]]:
    norms = Norms(budgets={"q": Budget(op=float(np.linalg.norm(q)) or 1.0), "W_V": Budget(op=1.0)})
    f, here = placed(Attention(2, qk="fixed"), norms, OPPOSITE)
    return f, here, {("q", None, 0): q, ("W_V", None, 0): np.eye(2)}


@pytest.mark.parametrize("gap", [0.01, 1.0, 3.0, 8.0])
def test_the_bent_cost_of_a_query_is_exact(gap: float) -> None:
    """q turned round so that both scores move by gap/2: 2 tanh(gap/2 / 2) b C_V."""
    f, here, p = own_query(np.array([[-gap / 2], [0.0]]))
    slot, change = here.slots[0], rows(f({**p, ("q", None, 0): -p["q", None, 0]}) - f(p))
    assert slot.saturates
    assert change == pytest.approx(
        float(slot.cap or 0.0) * math.tanh(float(slot.sensitivity) * gap / float(slot.cap or 0.0))
    )


def test_the_factor_of_a_query_is_that_of_l7_without_its_part() -> None:
    """Two rows apart along v with weights one half each, q beside v."""
    for size in (0.5, 2.0, 6.0):
        f, here, p = own_query(np.array([[0.0], [size]]))
        direction = worst_direction(lambda z, f=f, p=p: f(p, z), OPPOSITE, 0)
        assert TIGHT < slope_at(lambda z, f=f, p=p: f(p, z), OPPOSITE, direction) / float(here.lipschitz) <= MOST


@pytest.mark.parametrize("gap", [0.01, 1.0, 3.0, 8.0])
def test_the_bent_cost_of_scores_in_a_table_is_exact(gap: float) -> None:
    """Two tokens of opposite values, both of whose scores move by gap/2: 2 tanh(gap/2 / 2) R (S5)."""
    values = {f"{what}_values": Budget(heads=size) for what, size in (("token", 1.0), ("position", 0.0))}
    norms = Norms(budgets={**values, "token_scores": Budget(sup=gap / 4), "position_scores": Budget(sup=0.0)})
    f, here = placed(Lookup(2, 1, 1), norms, np.array([0, 1]))
    scores = np.array([[-gap / 4], [gap / 4]])
    p = {("position_scores", None, None): np.zeros((2, 1)), ("position_values", None, None): np.zeros((2, 1))}
    p |= {("token_values", None, None): PAIR, ("token_scores", None, None): scores}
    slot, change = here.slots[0], rows(f({**p, ("token_scores", None, None): -scores}) - f(p))
    cap = float(slot.cap or 0.0)
    assert slot.saturates
    assert change == pytest.approx(cap * math.tanh(float(slot.sensitivity) * gap / 2 / cap))


def changed(layer: Layer, norms: Norms, p: dict[Any, Array], kind: str, error: Array) -> float:
    """The change that an error of one map makes, over what is claimed of it: covered to |error| times its radius."""
    f, here = placed(layer, norms, PAIR)
    slot = next(slot for slot in here.slots if slot.kind == kind)
    (key,) = (key for key in p if key[0] == kind)
    eps = float(np.linalg.norm(error)) * float(slot.members[0].targets[0].radius)
    return rows(f({**p, key: p[key] + error}) - f(p)) / (float(slot.sensitivity) * eps)


@pytest.mark.parametrize("mode", ["none", "head", "width"])
@pytest.mark.parametrize("kind", ["W_Q", "W_K", "norm_Q.gain", "norm_K.gain"])
def test_the_cost_of_queries_and_keys_is_tight(kind: str, mode: Any) -> None:
    """From a map (a gain) that is 0, with the normaliser at its steepest."""
    if mode == "none" and kind.startswith("norm"):
        return
    steep = 0.04 if kind.startswith("W") else 1e-9
    norms = Norms(C=1.0, budgets={"norm_Q.gain": Budget(sup=1.5), "norm_K.gain": Budget(sup=0.7)})
    plain = Normaliser("softmax", 1.0)
    layer = Attention(
        1,
        d_head=1,
        qk="split",
        combine="concat",
        normaliser=plain,
        qk_norm=mode,
        qk_eps=None if mode == "none" else steep,
    )
    p: dict[Any, Array] = {(name, None, 0): np.eye(1) for name in ("W_V", "W_Q", "W_K")}
    p |= {("norm_Q.gain", None, None): np.array([1.5]), ("norm_K.gain", None, None): np.array([0.7])}
    key = next(key for key in p if key[0] == kind)
    p[key] = 0 * p[key]
    assert TIGHT < changed(layer, norms, p, kind, np.full(p[key].shape, 1e-4)) <= MOST


def test_the_cost_of_learned_offsets_is_tight() -> None:
    """By its largest entry."""
    layer = Attention(1, normaliser=Normaliser("softmax", 2.0), offsets="learned", buckets=2)
    p = {("W_V", None, 0): np.eye(1), ("W_QK", None, 0): 0 * np.eye(1), ("score_offsets", None, None): np.zeros((2, 1))}
    ratio = math.sqrt(2) * changed(layer, Norms(C=1.0), p, "score_offsets", 1e-4 * PAIR)
    assert TIGHT < ratio <= MOST
