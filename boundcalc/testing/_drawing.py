"""Weights within their budgets, rows and errors, drawn for any layer by what it says of itself.

Extreme ones find mistakes soonest: of rank one, orthogonal, of one column, all along the first axes, where effects add
up; and every draw touches its budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boundcalc.layers.base import weights_of
from boundcalc.layers.facts import Target
from boundcalc.setting import Budget, Layer, Norms, Weight
from boundcalc.setting.norms import SIZES

Array = NDArray[np.float64]
Key = tuple[str, int | None, int | None]
"""Kind, block, and which of several: a head, a group of them."""
Parameters = dict[Key, Array]

_NORMS: dict[str, Callable[[Array], float]] = {
    "op": lambda w: float(np.linalg.norm(w, 2)),
    "fro": lambda w: float(np.linalg.norm(w)),
    "two_one": lambda w: float(np.linalg.norm(w, axis=0).sum()),
    "two_one_t": lambda w: float(np.linalg.norm(w, axis=1).sum()),
    "one_one": lambda w: float(np.abs(w).sum()),
    "nuclear": lambda w: float(np.linalg.svd(w, compute_uv=False).sum()),
    "sup": lambda w: float(np.abs(w).max(initial=0)),
    "row": lambda w: float(np.linalg.norm(w, axis=1).max(initial=0)),
    "heads": lambda w: float(
        np.linalg.norm(np.abs(w).max(axis=0))
    ),  # at most, whatever heads the columns are parted into
}


def norm_of(name: str, w: Array) -> float:
    """One of the norms of a budget; of a vector it is the length, unless it is about entries."""
    if w.ndim == 1:
        return _NORMS["sup" if name == "sup" else "fro"](w)
    return _NORMS[name](w)


def used(w: Array, budget: Budget) -> float:
    """The largest part of a limit that an array uses."""
    parts = [0.0]
    for name in SIZES:
        limit, size = getattr(budget, name), 0.0
        if limit is not None and (size := norm_of(name, w)) > 0:
            parts.append(size / limit if limit else math.inf)
    return max(parts)


def within(w: Array, budget: Budget) -> Array:
    """An array scaled into its budget, touching it; as it is, where nothing limits it."""
    part = used(w, budget)
    return w / part if part > 0 else w


def projected(x: Array, radius: float) -> Array:
    """Every row projected onto the ball."""
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1, radius / np.maximum(lengths, 1e-300))


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

    def rows(self, count: int, width: int, radius: float = 1.0) -> Array:
        """Rows of a ball, often on its edge and often opposite or equal."""
        x, kind = self.unit(count, width), self.rng.integers(5)
        if kind == 1:
            x = x[:1] * self.rng.choice([-1.0, 1.0], (count, 1))
        elif kind == 2:
            x = x * self.rng.random((count, 1))
        elif kind == 3:
            x = np.repeat(x[:1], count, axis=0)
        return radius * x

    def matrix(self, d: int, k: int, budget: Budget, rank: int | None = None) -> Array:
        """Dense, of rank one, orthogonal, of one column, sparse or diagonal."""
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

    def array(self, weight: Weight, budget: Budget) -> Array:
        """One of the arrays of a weight, by what it is to a bound."""
        shape, rng = weight.shape, self.rng
        match weight.role:
            case "matrix" | "factor":
                (d, k), inner = shape, (factor.shape[1] for factor in weight.factors if factor.role == "factor")
                return self.matrix(d, k, budget, min(inner, default=None))
            case "vector" | "factor vector":
                return within(self.unit(*shape), budget)
            case "gain" | "scores":
                return within(rng.choice([-1.0, 1.0, 0.3], shape), budget)
            case "table" | "rows":
                table = within(self.unit(*shape) * rng.uniform(0, 1, (shape[0], 1)) ** 3, replace(budget, row=None))
                if budget.row is not None:
                    table = projected(table * rng.choice([1.0, 1e6]) if budget.two_one is None else table, budget.row)
                return table / max(1.0, used(table, budget))
            case "values":  # rows of which no part is longer, for any number of heads: the largest entries count
                alike = rng.random() >= 0.5
                table = self.unit(1, shape[1]) * rng.choice([-1, 1], (shape[0], 1)) if alike else self.unit(*shape)
                return within(table, budget)

    def error(self, d: int, k: int) -> Array:
        """A matrix of spectral norm one."""
        if not self.aligned and self.rng.random() < 0.4:
            u, _, v = np.linalg.svd(self.rng.standard_normal((d, k)), full_matrices=False)
            return u @ v
        return np.outer(self.unit(d), self.unit(k))

    def near(self, w: Array, target: Target, eps: float) -> Array:
        """Another element of a cover: a map within eps of w on every point of the target."""
        if target.kind in ("vector", "table"):
            step = self.unit(*(w.shape if target.kind == "table" else (w.size,))).reshape(w.shape)
            return w + eps * step
        reach = eps / float(target.radius)
        if target.kind == "gain":
            return w + reach * self.rng.choice([-1.0, 1.0], w.shape)
        return w + reach * self.error(*w.shape)


def farthest(targets: Iterable[Target]) -> Target:
    """The one whose points are longest: what is within eps there is so everywhere."""
    return max(targets, key=lambda target: float(target.radius))


def apart(a: Array, b: Array, target: Target) -> float:
    """How far two maps are from each other at most on the points of a target."""
    error, radius = a - b, float(target.radius)
    if target.kind in ("vector", "table"):
        return float(np.linalg.norm(error) if target.kind == "vector" else np.linalg.norm(error, axis=-1).max())
    return radius * norm_of("sup" if target.kind == "gain" else "op", error)


def drawn(dice: Dice, layer: Layer, norms: Norms, seq_len: int) -> Parameters:
    """Weights of a layer, and of what is inside it, within their budgets."""
    parameters: Parameters = {}
    for weight in weights_of((layer,), seq_len):
        for copy in range(weight.copies):
            for part in weight.read(norms, copy if weight.heads else None):
                index = copy * part.copies // weight.copies  # the heads of a group share one
                key = (part.kind, part.block, index if part.heads or part.copies > 1 else None)
                if key not in parameters:
                    parameters[key] = dice.array(part, limits_of(part, norms, key[2]))
    return parameters


def limits_of(weight: Weight, norms: Norms, head: int | None) -> Budget:
    """What a bound can use of the budget of a weight."""
    return weight.usable(norms.find(weight.kind, weight.block, head if weight.heads else None))


def joined(layer: Layer, weights: Parameters, seq_len: int) -> Parameters:
    """The same weights with every product of two factors as one matrix, with offsets as one more row and column."""
    whole = dict(weights)
    for weight in weights_of((layer,), seq_len):
        key = weight.kind, weight.block
        if not weight.factors or (*key, 0) in weights:
            continue
        for copy in range(weight.copies):
            sides = [_side(weight, place, copy, weights) for place in (0, 1)]
            whole[*key, copy] = sides[0] @ sides[1].T
        for factor in weight.factors:
            for index in range(factor.copies):
                del whole[factor.kind, factor.block, index]
    return whole


def _side(weight: Weight, place: int, copy: int, weights: Parameters) -> Array:
    maps, offsets = ([part for part in weight.factors if part.role == role] for role in ("factor", "factor vector"))
    parts = [maps[place], *offsets[place : place + 1 if weight.shape[place] > maps[place].shape[0] else place]]
    return np.vstack([weights[part.kind, part.block, copy * part.copies // weight.copies] for part in parts])
