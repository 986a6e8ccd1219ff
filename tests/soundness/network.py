"""Transformers of primitive layers in NumPy: real weights inside their budgets, and weights perturbed as covers do.

`Network` runs the layers of a setting. Perturbed weights stand for elements of a cover, so activations, keys, scores
and gates are projected to the radii that the calculus claims (which changes nothing for weights within budget).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import Context, Facts
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Norms,
    Pool,
    Residual,
    Setting,
    SoftCap,
)
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.network import claimed as facts
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights
from boundcalc.testing import drawing
from boundcalc.testing.drawing import Array, Dice, Parameters, drawn, farthest

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2, otypes=[float])(x),
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "tanh": np.tanh,
    "identity": lambda x: x,
}


def merged(setting: Setting) -> Setting | None:
    """The setting with its linear maps merged; None where none meet."""
    larger = merge_linear_maps(setting)
    return None if larger is None else larger.setting


def rows(x: Array) -> float:
    """The metric: the largest l2 norm of a row."""
    return float(np.linalg.norm(np.atleast_2d(x), axis=-1).max())


def ball(x: Array, radius: float) -> Array:
    """Every row projected."""
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1, radius / np.maximum(norms, 1e-300))


@dataclass
class Network:
    """Layers, their budgets, and what the calculus says about each layer where it stands."""

    layers: Sequence[Layer]
    norms: Norms
    seq_len: int
    radius: float = 1.0
    published: frozenset[str] = frozenset()
    known: list[tuple[Layer, Context, Facts]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.weights = Weights(FLOAT, self.norms)
        self._walk(self.layers, self.radius)

    def _walk(self, layers: Sequence[Layer], radius: float) -> float:
        """Facts of every layer, front to back; returns the radius at the end."""
        for layer in layers:
            if isinstance(layer, Residual):
                radius = sum(self._walk(branch, radius) for branch in layer.branches)
                continue
            at = Context(self.weights, radius, self.seq_len, self.seq_len, self.published)
            here = facts(layer, at)
            self.known.append((layer, at, here))
            radius = here.radius
        return radius

    # -- weights

    def draw(self, dice: Dice) -> Parameters:
        """Weights of every layer within their budgets, and what no bound speaks of."""
        p: Parameters = {}
        for layer, _, _ in self.known:
            p |= drawn(dice, layer, self.norms, self.seq_len)
            if isinstance(layer, Embedding) and layer.positions == "fixed":
                p["fixed", None, None] = layer.position_radius * dice.unit(self.seq_len, layer.d)
            if isinstance(layer, Attention) and ("b_Q", layer.block, 0) in p and not layer.key_bias:
                for group in range(layer.groups):  # which the scores forget
                    limit = self.weights.vector("b_K", layer.block, group)[0]
                    p["b_K", layer.block, group] = limit * dice.unit(layer.d_head or 0)
        return p

    # -- forward

    def run(self, p: Parameters, x: Array, *, check: list[float] | None = None) -> Array:
        """The output rows; `check` collects (largest row)/(claimed radius) before projections."""
        return self._through(self.layers, p, x, iter(self.known), check)

    def _through(
        self, layers: Sequence[Layer], p: Parameters, x: Array, known: Any, check: list[float] | None
    ) -> Array:
        for layer in layers:
            if isinstance(layer, Residual):
                parts = [self._through(branch, p, x, known, check) for branch in layer.branches]
                x = sum(parts[1:], start=parts[0])
                continue
            _, at, here = next(known)
            x = np.atleast_2d(self.apply(layer, p, x, at))
            if check is not None:
                check.append(rows(x) / here.radius)
            x = ball(x, here.radius)
        return x

    def apply(self, layer: Layer, p: Parameters, x: Array, at: Context, *, project: bool = True) -> Array:
        """One layer; without projections inside, it is the plain one."""
        if isinstance(layer, Linear):
            y = x @ p[layer.kind, layer.block, None]
            return y + p[layer.bias, layer.block, None] if layer.bias else y
        if isinstance(layer, Activation):
            return ACTIVATIONS[layer.name](x)
        if isinstance(layer, SoftCap):
            return layer.cap * np.tanh(x / layer.cap)
        if isinstance(layer, Ball):
            return ball(x, layer.radius)
        if isinstance(layer, LayerNorm):
            return self._normalise(layer, p, x)
        if isinstance(layer, GatedFeedForward):
            return self._gated(layer, p, x, at.radius if project else math.inf)
        if isinstance(layer, Embedding):
            return self._embed(layer, p, x)
        if isinstance(layer, Hidden):
            return self._hidden(layer, p, x, at.radius if project else math.inf)
        if isinstance(layer, Lookup):
            return self._look_up(layer, p, x[:, 0].astype(int))
        if isinstance(layer, Pool):
            return x.mean(axis=0, keepdims=True) if layer.how == "mean" else x[-1:]
        assert isinstance(layer, Attention)
        heads = [self._head(layer, head, p, x, at, project=project) for head in range(layer.heads)]
        return np.concatenate(heads, axis=1) if layer.combine == "concat" else np.sum(heads, axis=0)

    def _normalise(self, layer: LayerNorm, p: Parameters, x: Array) -> Array:
        """With a variance floor the class guarantees more variance than the floor; a cover may clamp there."""
        y = x - x.mean(axis=-1, keepdims=True) if layer.centred else x
        variance = np.maximum((y**2).mean(axis=-1, keepdims=True), layer.variance_floor)
        y = y / np.sqrt(variance + layer.eps)
        y = y * (p[f"{layer.kind}.gain", layer.block, None] + layer.around_one) if layer.gain else y
        return y + p[f"{layer.kind}.offset", layer.block, None] if layer.offset else y

    def _gated(self, layer: GatedFeedForward, p: Parameters, x: Array, radius: float) -> Array:
        c1, c3 = (self.weights.matrix(kind, layer.block, None, layer.d, layer.d_ff).whole.op for kind in ("W_1", "W_3"))
        kinds = ("b_1", "b_3", "b_2")
        b1, b3, b2 = (p[kind, layer.block, None] if layer.bias else np.zeros(1) for kind in kinds)
        r1, r3 = (self.weights.vector(kind, layer.block)[0] if layer.bias else 0.0 for kind in ("b_1", "b_3"))
        left, right = radius * c1 + r1, radius * c3 + r3
        gate = ball(x @ p["W_1", layer.block, None] + b1, left)
        value = ball(x @ p["W_3", layer.block, None] + b3, right)
        product = ball(ACTIVATIONS[layer.activation](gate) * value, left * right)
        return product @ p["W_2", layer.block, None] + b2

    def _hidden(self, layer: Hidden, p: Parameters, x: Array, radius: float) -> Array:
        reach = radius * self.weights.matrix(layer.first, layer.block, None, layer.d, layer.d_ff).whole.op
        units = x @ p[layer.first, layer.block, None]
        if layer.bias:
            units = units + p[layer.bias, layer.block, None]
            reach += self.weights.vector(layer.bias, layer.block)[0]
        return ACTIVATIONS[layer.activation](ball(units, reach)) @ p[layer.last, layer.block, None]

    def _look_up(self, layer: Lookup, p: Parameters, tokens: NDArray[np.int64]) -> Array:
        heads: list[Array] = []
        for head in range(layer.heads):
            columns = slice(head * layer.d_value, (head + 1) * layer.d_value)
            s = p["token_scores", None, None][tokens, head] + p["position_scores", None, None][:, head]
            v = p["token_values", None, None][tokens, columns] + p["position_values", None, None][:, columns]
            heads.append(row_weights("softmax", s[None], np.ones((1, len(s))), math.inf) @ v)
        return np.repeat(np.concatenate(heads, axis=1), len(tokens), axis=0)

    def _embed(self, layer: Embedding, p: Parameters, x: Array) -> Array:
        if layer.vocabulary:
            x = p["embedding", None, None][x[:, 0].astype(int)]
        for kind in ("positions", "fixed"):
            if (kind, None, None) in p:
                x = x + p[kind, None, None]
        if layer.segments:
            x = x + p["segments", None, None][np.arange(len(x)) % layer.segments]
        return x

    def scores(self, layer: Attention, head: int, p: Parameters, x: Array, radius: float) -> Array:
        """Scores over the temperature."""
        block, tau = layer.block, layer.normaliser.temperature
        shared = head // (layer.heads // layer.groups)
        if layer.qk == "split":
            assert layer.d_head is not None
            q, _ = self._side(layer, "Q", head, p, x, radius)
            k, length = self._side(layer, "K", shared, p, x, radius)
            s = rotated(q) @ ball(rotated(k), length).T + self._learned(layer, head, p, len(x))
            return s / (math.sqrt(layer.d_head) if tau is None else tau)
        tau = 1.0 if tau is None else tau
        if layer.qk == "fixed":
            return np.repeat((x @ p["q", block, head]).T, len(x), axis=0) / tau
        if ("W_QK", block, head) in p:
            w = p["W_QK", block, head]
            left = with_one(x) if w.shape[0] > layer.d else x
            right = with_one(x) if w.shape[1] > layer.d else x
            s = left @ w @ right.T
        else:
            q, k = x @ p["W_Q", block, head], x @ p["W_K", block, shared]
            if layer.qk_bias:
                q, k = q + p["b_Q", block, head], k + p["b_K", block, shared]
            s = q @ k.T
        return (s + self._learned(layer, head, p, len(x))) / tau

    def _side(
        self, layer: Attention, name: str, index: int, p: Parameters, x: Array, radius: float
    ) -> tuple[Array, float]:
        """Queries or keys of a head before rotations, and how long they may be."""
        block, width = layer.block, layer.d_head or 0
        copies = range(layer.heads if name == "Q" else layer.groups) if layer.qk_norm == "width" else [index]
        found, squares = [], 0.0
        for i in copies:
            u = x @ p[f"W_{name}", block, i]
            length = radius * self.weights.matrix(f"W_{name}", block, i, layer.d, width).whole.op
            if layer.qk_bias:
                u = u + p[f"b_{name}", block, i]
                length += self.weights.vector(f"b_{name}", block, i)[0]
            found.append(u)
            squares += length**2
        length = math.sqrt(squares)
        if layer.qk_eps is None:
            return found[0], length
        u, kind = np.concatenate(found, axis=1), f"norm_{name}.gain"
        y = p[kind, block, None] * u / np.sqrt((u**2).mean(axis=1, keepdims=True) + layer.qk_eps)
        if math.isfinite(length):
            reach = self.weights.gain(kind, block)[0] * length / math.sqrt(length**2 / u.shape[1] + layer.qk_eps)
            y, length = ball(y, reach), reach
        return np.split(y, len(found), axis=1)[index if len(found) > 1 else 0], length

    def _learned(self, layer: Attention, head: int, p: Parameters, count: int) -> Array | float:
        """Numbers by the distance of positions, the farthest in one bucket."""
        if layer.buckets is None:
            return 0.0
        apart = abs(np.arange(count)[:, None] - np.arange(count))
        return p["score_offsets", layer.block, None][np.minimum(apart, layer.buckets - 1), head]

    def _head(self, layer: Attention, head: int, p: Parameters, x: Array, at: Context, *, project: bool) -> Array:
        s = self.scores(layer, head, p, x, at.radius if project else math.inf)
        if layer.offsets == "fixed":  # as ALiBi has them
            s = s - 0.7 * abs(np.arange(len(s))[:, None] - np.arange(s.shape[1]))
        s = s if layer.cap is None else layer.cap * np.tanh(s / layer.cap)
        mask = np.tril(np.ones_like(s)) if layer.causal else np.ones_like(s)
        limit = score_limit(layer, at) if project and layer.normaliser.name == "linear" else math.inf
        a = row_weights(layer.normaliser.name, s, mask, limit)
        shared = head // (layer.heads // layer.groups)
        y = a @ x @ p["W_V", layer.block, shared]
        return y + a.sum(axis=1, keepdims=True) * p["b_V", layer.block, shared] if layer.v_bias else y


def row_weights(name: str, s: Array, mask: Array, limit: float) -> Array:
    """The normaliser, masked; "custom" is 0.8 softmax, of constants (1.5, 0.8) with room to spare."""
    if name == "linear":
        return mask * np.clip(s, -limit, limit) / s.shape[1]
    if name == "sigmoid":
        return mask / (1 + np.exp(-np.clip(s, -700, 700))) / s.shape[1]
    top = np.where(mask > 0, s, -np.inf).max(axis=1, keepdims=True)
    top = np.maximum(top, 0) if name == "softmax1" else top
    e = mask * np.exp(np.where(mask > 0, s, -np.inf) - top)
    total = e.sum(axis=1, keepdims=True) + (np.exp(-top) if name == "softmax1" else 0)
    return (0.8 if name == "custom" else 1.0) * e / total


def score_limit(layer: Attention, at: Context) -> float:
    """The largest score of weights within budget, over the temperature: the mass of the linear normaliser."""
    values = next(slot for slot in facts(layer, at).slots if slot.kind == "W_V")
    return float(max(target.radius for member in values.members for target in member.targets)) / at.radius


def with_one(x: Array) -> Array:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def rotated(x: Array) -> Array:
    """Rotary positions: pairs of coordinates turned by an angle that grows with the row."""
    y = x.copy()
    for j in range(x.shape[1] // 2):
        angle = np.arange(len(x)) * 10.0 ** (-j)
        cos, sin = np.cos(angle), np.sin(angle)
        y[:, 2 * j] = cos * x[:, 2 * j] - sin * x[:, 2 * j + 1]
        y[:, 2 * j + 1] = sin * x[:, 2 * j] + cos * x[:, 2 * j + 1]
    return y


# ------------------------------------------------------------------------------------------------ perturbations


def joined(network: Network, layer: Layer, p: Parameters) -> Parameters:
    """The same weights with each head's W_QK in place of its queries, keys and their biases (joint scores only)."""
    if not isinstance(layer, Attention) or layer.qk != "joint":
        return p
    whole = drawing.joined(layer, p, network.seq_len)
    return {key: w for key, w in whole.items() if key[:2] != ("b_K", layer.block)}


def perturbed(
    dice: Dice, p: Parameters, kind: str, block: int | None, targets: Sequence[Target], eps: float
) -> Parameters:
    """Every map of one piece replaced by another within eps of it."""
    target = farthest(targets)
    near = {key: dice.near(w, target, eps) for key, w in p.items() if key[:2] == (kind, block)}
    assert near, (kind, block)
    return {**p, **near}


def tokens_or_rows(dice: Dice, network: Network, width: int, vocabulary: int) -> Array:
    """An input: token numbers, or rows of the ball, often on its edge and often opposite or equal."""
    if vocabulary:
        return dice.rng.integers(vocabulary, size=(network.seq_len, 1)).astype(float)
    return dice.rows(network.seq_len, width, network.radius)
