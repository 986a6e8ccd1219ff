"""Transformers of primitive layers in NumPy: real weights inside their budgets, and weights perturbed as covers do.

`Network` runs the layers of a setting. Perturbed weights stand for elements of a cover, so activations, keys, scores
and gates are projected to the radii that the calculus claims (which changes nothing for weights within budget).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    Experts,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Norms,
    Pool,
    Residual,
    SoftCap,
)
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import Context, Facts
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights

Array = NDArray[np.float64]
Key = tuple[str, int | None, int | None]
"""Kind, block, head."""
Parameters = dict[Key, Array]

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


def rows(x: Array) -> float:
    """The metric: the largest l2 norm of a row."""
    return float(np.linalg.norm(np.atleast_2d(x), axis=-1).max())


def ball(x: Array, radius: float) -> Array:
    """Every row projected."""
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1, radius / np.maximum(norms, 1e-300))


# ------------------------------------------------------------------------------------------------ weights


def size_of(name: str, w: Array) -> float:
    """One of the norms of a budget."""
    return {
        "op": lambda: float(np.linalg.norm(w, 2)),
        "fro": lambda: float(np.linalg.norm(w)),
        "two_one": lambda: float(np.linalg.norm(w, axis=0).sum()),
        "two_one_t": lambda: float(np.linalg.norm(w, axis=1).sum()),
        "one_one": lambda: float(np.abs(w).sum()),
    }[name]()


def within(w: Array, budget: Budget) -> Array:
    """A matrix scaled into its budget, touching it."""
    ratio = math.inf
    for name in ("op", "fro", "two_one", "two_one_t", "one_one"):
        limit, size = getattr(budget, name), size_of(name, w)
        if limit is not None and size > 0:
            ratio = min(ratio, limit / size)
    if budget.schatten is not None and w.any():
        p, total = budget.schatten
        ratio = min(ratio, (total / float((np.linalg.svd(w, compute_uv=False) ** p).sum())) ** (1 / p))
    return w * ratio if math.isfinite(ratio) else w


@dataclass(frozen=True)
class Dice:
    """Random weights, inputs and errors; `aligned`, they all lie along the first two axes, where effects add up."""

    rng: np.random.Generator
    aligned: bool = False

    def unit(self, *shape: int) -> Array:
        """Unit rows."""
        if self.aligned:
            v = np.zeros(shape)
            axis = self.rng.integers(min(2, shape[-1])) if self.rng.random() < 0.3 else 0
            v[..., axis] = self.rng.choice([-1.0, 1.0], shape[:-1])
            return v
        v = self.rng.standard_normal(shape)
        return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300)

    def matrix(self, d: int, k: int, budget: Budget, rank: int | None = None) -> Array:
        """Dense, of rank one, orthogonal, of one column, sparse or diagonal; touching its budget."""
        rng, r = self.rng, min(d, k, *(x for x in (rank, budget.rank) if x is not None))
        kind = 5 if self.aligned else rng.integers(6)
        w = rng.standard_normal((d, k))
        if kind == 0:
            w = np.outer(rng.standard_normal(d), rng.standard_normal(k))
        elif kind == 1:
            u, _, v = np.linalg.svd(w, full_matrices=False)
            w = u @ v
        elif kind == 2:
            w = np.zeros((d, k))
            w[:, rng.integers(k)] = rng.standard_normal(d)
        elif kind == 3:
            w = w * (rng.random((d, k)) < 0.5)
        elif kind == 5:
            w = np.eye(d, k) * (np.arange(k) < rng.integers(1, k + 1)) * rng.choice([-1.0, 1.0])
            if rng.random() < 0.3:
                w[d - 1, 0] = 1.0  # an offset, where the last row is one
        if r < min(d, k):
            u, s, v = np.linalg.svd(w, full_matrices=False)
            w = (u[:, :r] * s[:r]) @ v[:r]
        return within(w, budget)

    def error(self, d: int, k: int) -> Array:
        """A matrix of spectral norm one."""
        if not self.aligned and self.rng.random() < 0.4:
            u, _, v = np.linalg.svd(self.rng.standard_normal((d, k)), full_matrices=False)
            return u @ v
        return np.outer(self.unit(d), self.unit(k))


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
        """Weights of every layer, within their budgets."""
        p: Parameters = {}
        for layer, _, _ in self.known:
            self._draw(layer, dice, p)
        return p

    def _draw(self, layer: Layer, dice: Dice, p: Parameters) -> None:
        find = self.norms.find
        if isinstance(layer, Linear):
            key = (layer.kind, layer.block, None)
            p[key] = dice.matrix(layer.d_in, layer.d_out, find(*key))
            if layer.bias:
                self._vector(dice, p, (layer.bias, layer.block, None), layer.d_out)
        elif isinstance(layer, LayerNorm):
            kind = (f"{layer.kind}.gain", layer.block, None)
            if layer.gain:
                top = find(*kind).sup
                p[kind] = (top or 0.0) * dice.rng.choice([-1.0, 1.0, 0.3], layer.d)
            if layer.offset:
                self._vector(dice, p, (f"{layer.kind}.offset", layer.block, None), layer.d)
        elif isinstance(layer, GatedFeedForward):
            for kind, shape in (
                ("W_1", (layer.d, layer.d_ff)),
                ("W_3", (layer.d, layer.d_ff)),
                ("W_2", (layer.d_ff, layer.d)),
            ):
                p[kind, layer.block, None] = dice.matrix(*shape, find(kind, layer.block))
            for kind, size in (("b_1", layer.d_ff), ("b_3", layer.d_ff), ("b_2", layer.d)) if layer.bias else ():
                self._vector(dice, p, (kind, layer.block, None), size)
        elif isinstance(layer, Experts):
            p["W_gate", layer.block, None] = dice.matrix(layer.d, layer.experts, find("W_gate", layer.block))
            for each in range(layer.experts):
                for kind, shape in (
                    ("W_1", (layer.d, layer.d_ff)),
                    ("W_3", (layer.d, layer.d_ff)),
                    ("W_2", (layer.d_ff, layer.d)),
                ):
                    p[kind, layer.block, each] = dice.matrix(*shape, find(kind, layer.block))
        elif isinstance(layer, Embedding):
            for kind, size in (
                ("embedding", layer.vocabulary),
                ("positions", self.seq_len if layer.positions == "learned" else 0),
                ("segments", layer.segments),
            ):
                if size:
                    self._table(dice, p, kind, size, layer.d)
            if layer.positions == "fixed":
                p["fixed", None, None] = layer.position_radius * dice.unit(self.seq_len, layer.d)
        elif isinstance(layer, Attention):
            for head in range(layer.heads):
                self._draw_head(layer, head, dice, p)
            for weight in layer.beside_heads():
                top = find(weight.kind, layer.block).sup or 0.0
                p[weight.kind, layer.block, None] = top * dice.rng.choice([-1.0, 1.0, 0.3], weight.shape)

    def _vector(self, dice: Dice, p: Parameters, key: Key, size: int) -> None:
        limit = self.weights.vector(*key)[0]
        p[key] = limit * dice.unit(size)

    def _table(self, dice: Dice, p: Parameters, kind: str, size: int, d: int) -> None:
        budget = self.norms.find(kind)
        table = within(dice.unit(size, d) * dice.rng.uniform(0, 1, (size, 1)) ** 3, replace(budget, row=None))
        if budget.row is not None:
            table = ball(table * dice.rng.choice([1.0, 1e6]) if budget.two_one is None else table, budget.row)
        p[kind, None, None] = table

    def _draw_head(self, layer: Attention, head: int, dice: Dice, p: Parameters) -> None:
        find, block, d = self.norms.find, layer.block, layer.d
        shared = head // (layer.heads // layer.groups)
        split = layer.qk == "split"
        if ("W_V", block, shared) not in p:
            p["W_V", block, shared] = dice.matrix(d, layer.out, find("W_V", block, shared))
            if layer.v_bias:
                self._vector(dice, p, ("b_V", block, shared), layer.out)
        if layer.qk == "fixed":
            p["q", block, head] = dice.matrix(d, 1, find("q", block, head))
            return
        if split or layer.scores not in layer.scores.read(self.norms, head):
            assert layer.d_head is not None
            keys = shared if split else head
            for kind, index in (("Q", head), ("K", keys)):
                if (f"W_{kind}", block, index) not in p:
                    key = (f"W_{kind}", block, index)
                    p[key] = dice.matrix(d, layer.d_head, find(*key))
                    if layer.qk_bias:
                        self._vector(dice, p, (f"b_{kind}", block, index), layer.d_head)
            return
        augmented = 1 if layer.qk_bias else 0
        columns = d + int(layer.key_bias)
        p["W_QK", block, head] = dice.matrix(d + augmented, columns, find("W_QK", block, head), layer.d_head)

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
        if isinstance(layer, Experts):
            gate = row_weights(
                "softmax", x @ p["W_gate", layer.block, None], np.ones((len(x), layer.experts)), math.inf
            )
            one, radius = (
                GatedFeedForward(layer.d, layer.d_ff, layer.activation, layer.block),
                at.radius if project else math.inf,
            )
            parts = []
            for each in range(layer.experts):
                own: Parameters = {
                    (kind, layer.block, None): p[kind, layer.block, each] for kind in ("W_1", "W_2", "W_3")
                }
                parts.append(self._gated(one, own, x, radius))
            return sum((gate[:, i, None] * part for i, part in enumerate(parts)), start=np.zeros_like(x))
        if isinstance(layer, Embedding):
            return self._embed(layer, p, x)
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
            q, k = x @ p["W_Q", block, head], x @ p["W_K", block, head]
            if layer.qk_bias:
                q, k = q + p["b_Q", block, head], k + p["b_K", block, head]
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
        s = s if layer.cap is None else layer.cap * np.tanh(s / layer.cap)
        if layer.offsets == "fixed":  # as ALiBi has them
            s = s - 0.7 * abs(np.arange(len(s))[:, None] - np.arange(s.shape[1]))
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


def nudge(dice: Dice, w: Array, target: Target, eps: float) -> Array:
    """Another element of a cover: a map within eps of w on every point of the target."""
    reach = eps / float(target.radius)
    if target.kind in ("vector", "table"):
        return w + eps * dice.unit(*w.shape)
    if target.kind == "gain":
        return w + reach * dice.rng.choice([-1.0, 1.0], w.shape)
    return w + reach * dice.error(*w.shape)


def joined(network: Network, layer: Attention, p: Parameters) -> Parameters:
    """The same weights with each head's W_QK in place of its queries, keys and their biases (joint scores only)."""
    if layer.qk != "joint" or ("W_QK", layer.block, 0) in p:
        return p
    q = dict(p)
    for head in range(layer.heads):
        at = (layer.block, head)
        left, right = q.pop(("W_Q", *at)), q.pop(("W_K", *at))
        if layer.qk_bias:
            left = np.concatenate([left, q.pop(("b_Q", *at))[None]])
            offset = q.pop(("b_K", *at))[None]
            right = np.concatenate([right, offset]) if layer.key_bias else right
        q["W_QK", *at] = left @ right.T
    return q


def perturbed(
    dice: Dice, p: Parameters, kind: str, block: int | None, targets: Sequence[Target], eps: float
) -> Parameters:
    """Every map of one piece replaced by another within eps of it."""
    target = max(targets, key=lambda t: float(t.radius))
    near = {key: nudge(dice, w, target, eps) for key, w in p.items() if key[:2] == (kind, block)}
    assert near, (kind, block)
    return {**p, **near}


def tokens_or_rows(dice: Dice, network: Network, width: int, vocabulary: int) -> Array:
    """An input: token numbers, or rows of the ball, often on its edge and often opposite or equal."""
    t, rng = network.seq_len, dice.rng
    if vocabulary:
        return rng.integers(vocabulary, size=(t, 1)).astype(float)
    x = dice.unit(t, width)
    kind = rng.integers(5)
    if kind == 1:
        x = x[:1] * rng.choice([-1.0, 1.0], (t, 1))
    elif kind == 2:
        x = x * rng.random((t, 1))
    elif kind == 3:
        x = np.repeat(x[:1], t, axis=0)
    return network.radius * x
