"""Attacks on constants that the laws of layers (tests/laws/test_layers.py) come less close to, and networks that attain
claims.

An attack returns the ratios (observed change) / (claimed bound) it reached. A sound constant keeps every ratio at most
one; a tight one is approached within five per cent, so that a lower constant would be broken by the same attack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import ACTIVATIONS
from boundcalc.layers.facts import Context
from boundcalc.layers.forward import Fixed
from boundcalc.layers.heads import _normaliser_constants
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ
from boundcalc.setting import Attention, Budget, Layer, Lookup, Normaliser, Norms
from boundcalc.statements.weights import Weights
from boundcalc.testing._drawing import Array, Parameters, apart
from boundcalc.testing._layers import LayerExample, _most, claimed
from tests.soundness.network import rows

Run = Callable[[Array], Array]
SLACK = 1e-6  # finite differences


def softmax_plus_one(u: Array) -> Array:
    return softmax(np.append(u, 0.0))[:-1]


# ---------------------------------------------------------------- L1, L2

NORMALISERS: dict[str, Run] = {
    "softmax": softmax,
    "softmax1": softmax_plus_one,
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)) / u.shape[-1],
}


def normaliser_ratios(name: str, seed: int) -> list[float]:
    """|norm(u) - norm(v)|_1 over its bound: small and large differences, climbed from random."""
    rng, norm = np.random.default_rng(seed), NORMALISERS[name]
    c, mu = _normaliser_constants(Normaliser(name), 1.0, 1.0, Context(Weights(FLOAT, Norms(C=1.0)), 1.0, 1, 1))
    ratios: list[float] = []
    for _ in range(40):
        gap, start = float(rng.choice([1e-4, 0.3, 2.0, 8.0])), rng.standard_normal((2, rng.integers(1, 6)))

        def value(z: Array, gap: float = gap) -> float:
            u, v = np.split(z, 2)
            return -float(np.abs(norm(u) - norm(u + gap * np.tanh(v))).sum()) / min(c * gap, 2 * mu)

        ratios.append(-float(minimize(value, start.ravel(), method="Nelder-Mead", options={"maxiter": 400}).fun))
    return ratios


@pytest.mark.parametrize("name", NORMALISERS)
def test_normalisers(name: str) -> None:
    assert 0.95 < max(normaliser_ratios(name, 1)) <= 1 + SLACK


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


def placed(layer: Layer, norms: Norms, x: Array, radius: float = 1.0) -> LayerExample:
    """A layer on these rows, of which two that are not the same share a learned number."""
    return LayerExample(layer, norms, radius, len(x), Fixed(bucket=lambda count: 1 - np.eye(count, dtype=int)))


def stretch(at: LayerExample, p: Parameters, x: Array, row: int) -> float:
    """Its slope in the steepest direction of a row, over the factor that is claimed."""

    def run(z: Array) -> Array:
        return at.output(p, z)

    return slope_at(run, x, worst_direction(run, x, row)) / float(at.claims(claimed).lipschitz)


@pytest.mark.parametrize("normaliser", ["softmax", "softmax1"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_factor_of_a_softmax_head_is_tight(causal: bool, normaliser: str) -> None:
    """Rows +-b e_2 in equal numbers and a last query b e_1, for kap = b^2 C_W and W = (kap/b^2) diag(-1, 1).

    The query scores 0 on the pairs and -kap on itself, and its own row has little weight.
    """
    b, layer = 1.5, Attention(2, causal=causal, normaliser=Normaliser(normaliser))
    x = np.concatenate([np.tile(np.array([[0.0, b], [0.0, -b]]), (60, 1)), [[b, 0.0]]])
    for kap in (0.3, 1.0, 3.0):
        norms = Norms(budgets={"W_QK": Budget(op=kap / b**2), "W_V": Budget(op=1.0)})
        p: Parameters = {("W_QK", None, 0): kap / b**2 * np.diag([-1.0, 1.0]), ("W_V", None, 0): np.eye(2)}
        assert TIGHT < stretch(placed(layer, norms, x, b), p, x, len(x) - 1) <= MOST


def query_norms(size: float) -> Norms:
    return Norms(budgets={"q": Budget(op=size), "W_V": Budget(op=1.0)})


def test_the_factor_of_a_query_is_that_of_l7_without_its_part() -> None:
    """Two rows apart along v with weights one half each, q beside v."""
    for size in (0.5, 2.0, 6.0):
        p: Parameters = {("q", None, 0): np.array([[0.0], [size]]), ("W_V", None, 0): np.eye(2)}
        at = placed(Attention(2, qk="fixed"), query_norms(size), OPPOSITE)
        assert TIGHT < stretch(at, p, OPPOSITE, 0) <= MOST


class Move(NamedTuple):
    """A network of one layer, and another map in place of one of its own."""

    layer: Layer
    norms: Norms
    x: Any
    p: Parameters
    kind: str
    other: Array

    def share(self) -> float:
        """The change of the output over what is claimed of it."""
        at = placed(self.layer, self.norms, self.x)
        slot = next(slot for slot in at.claims(claimed).slots if slot.kind == self.kind)
        (key,) = (key for key in self.p if key[0] == self.kind)
        eps = apart(self.p[key], self.other, slot.members[0].targets[0])
        change = at.output({**self.p, key: self.other}, self.x) - at.output(self.p, self.x)
        return rows(np.atleast_2d(change)) / _most(slot, eps)


def score(gap: float) -> Move:
    """Two opposite rows whose weights e^-gap : 1 become 1 : e^-gap."""
    norms, first = Norms(budgets={"W_QK": Budget(op=4.0), "W_V": Budget(op=1.0)}), np.diag([gap / 2, 0.0])
    return Move(Attention(2), norms, OPPOSITE, {("W_QK", None, 0): -first, ("W_V", None, 0): np.eye(2)}, "W_QK", first)


def query(gap: float) -> Move:
    """q turned round so that both scores move by gap/2: 2 tanh(gap/2 / 2) b C_V."""
    q = np.array([[gap / 2], [0.0]])
    p: Parameters = {("q", None, 0): -q, ("W_V", None, 0): np.eye(2)}
    return Move(Attention(2, qk="fixed"), query_norms(gap / 2), OPPOSITE, p, "q", q)


def table(gap: float) -> Move:
    """Two tokens of opposite values, both of whose scores move by gap/2: 2 tanh(gap/2 / 2) R (S5)."""
    budgets = {"token_values": Budget(heads=1.0), "position_values": Budget(heads=0.0)}
    budgets |= {"token_scores": Budget(sup=gap / 4), "position_scores": Budget(sup=0.0)}
    scores = gap / 4 * PAIR
    p: Parameters = {(f"position_{what}", None, None): 0 * PAIR for what in ("scores", "values")}
    p |= {("token_values", None, None): PAIR, ("token_scores", None, None): -scores}
    return Move(Lookup(2, 1, 1), Norms(budgets=budgets), np.array([0, 1]), p, "token_scores", scores)


def part(kind: str, mode: Any) -> Move:
    """From a map (a gain) that is 0, with the normaliser of queries and keys at its steepest."""
    steep = None if mode == "none" else 0.04 if kind.startswith("W") else 1e-9
    norms = Norms(C=1.0, budgets={"norm_Q.gain": Budget(sup=1.5), "norm_K.gain": Budget(sup=0.7)})
    queries = {"qk": "split", "qk_norm": mode, "qk_eps": steep, "combine": "concat", "d_head": 1}
    p: Parameters = {(name, None, 0): np.eye(1) for name in ("W_V", "W_Q", "W_K")}
    p |= {("norm_Q.gain", None, None): np.array([1.5]), ("norm_K.gain", None, None): np.array([0.7])}
    key = next(key for key in p if key[0] == kind)
    p[key] = 0 * p[key]
    return Move(Attention(1, normaliser=Normaliser("softmax", 1.0), **queries), norms, PAIR, p, kind, p[key] + 1e-4)


def offsets() -> Move:
    p: Parameters = {("W_V", None, 0): np.eye(1), ("W_QK", None, 0): np.zeros((1, 1))}
    p |= {("score_offsets", None, None): 0 * PAIR}
    layer = Attention(1, normaliser=Normaliser("softmax", 2.0), offsets="learned", buckets=2)
    return Move(layer, Norms(C=1.0), PAIR, p, "score_offsets", 1e-4 * PAIR)


GAPS = (0.01, 1.0, 3.0, 8.0)
MOVES: dict[str, tuple[Move, float]] = {
    **{f"scores by {gap}": (score(gap), least) for gap, least in ((1e-3, TIGHT), (0.1, 0), (6.0, 0), (7.9, TIGHT))},
    **{f"a query by {gap}": (query(gap), 1 - SLACK) for gap in GAPS},
    **{f"scores in a table by {gap}": (table(gap), 1 - SLACK) for gap in GAPS},
    **{f"{kind} of {mode}": (part(kind, mode), TIGHT) for mode in ("none", "head", "width") for kind in ("W_Q", "W_K")},
    **{f"{side} of {mode}": (part(f"norm_{side}.gain", mode), TIGHT) for mode in ("head", "width") for side in "QK"},
    "learned offsets": (offsets(), TIGHT),
}


@pytest.mark.parametrize("what", MOVES)
def test_costs_are_tight(what: str) -> None:
    """By how much a map must move the output at least, of what is claimed; errors that saturate do so exactly."""
    move, least = MOVES[what]
    assert least <= move.share() <= MOST
