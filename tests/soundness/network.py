"""Networks on real weights within their budgets, run by the layers' own forward pass, and weights moved within a class.

Between layers rows are projected to the radii that the calculus claims, as elements of a cover are; of weights within
budget that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import NUMPY
from boundcalc.lab.train.parameters import read_row
from boundcalc.layers.base import TOKENS, weights_of
from boundcalc.layers.facts import Context, Facts, Target
from boundcalc.layers.forward import Fixed, Forward
from boundcalc.norms.limits import explicit
from boundcalc.setting import Budget, Layer, Norms, Residual, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.weights import Weights
from boundcalc.testing._drawing import (
    Array,
    Dice,
    Parameters,
    apart,
    drawn,
    farthest,
    joined,
    limits_of,
    projected,
    used,
)
from boundcalc.testing._layers import Arrays
from tests.cases.layers import fixed

CERTIFIED = ("op", "fro", "two_one", "two_one_t", "one_one", "rank")


def merged(setting: Setting) -> Setting | None:
    """The setting with its linear maps merged; None where none meet."""
    larger = merge_linear_maps(setting)
    return None if larger is None else larger.setting


def rows(x: Array) -> float:
    """The metric: the largest l2 norm of a row."""
    return float(np.linalg.norm(np.atleast_2d(x), axis=-1).max())


def spectral(stack: Array) -> Array:
    """Operator norms of matrices whose smaller side is at most 2."""
    square = (stack**2).sum(axis=(-2, -1))
    if 1 in stack.shape[-2:]:
        return np.sqrt(square)
    w = stack if stack.shape[-1] == 2 else stack.swapaxes(-2, -1)
    a, b = w[..., 0], w[..., 1]
    det = (a**2).sum(-1) * (b**2).sum(-1) - (a * b).sum(-1) ** 2
    return np.sqrt((square + np.sqrt(np.maximum(square**2 - 4 * det, 0))) / 2)


def outputs(setting: Setting, weights: Parameters, inputs: Sequence[Array]) -> Array:
    """What the library's forward pass makes of inputs: a row of outputs for each."""
    a = setting.architecture
    forward = Forward(NUMPY, Arrays(weights, a.seq_len), Fixed(row=read_row(a)))
    return np.asarray(forward(a.stages, np.stack(inputs))[:, 0])


def outside(setting: Setting, weights: Parameters) -> set[str]:
    """Weights of the class that exceed one of their limits: by the certified norms, and by those of tables."""
    a, wrong = setting.architecture, set[str]()
    parts = {(part.kind, part.block): part for weight in weights_of(a.stages, a.seq_len) for part in weight.all}
    for (kind, block, head), array in weights.items():
        if (kind, block) in parts and array.any():
            budget = replace(limits_of(parts[kind, block], setting.norms, head), heads=None)
            norms = explicit(array) if array.ndim == 2 else Budget()
            pairs = ((getattr(norms, name), getattr(budget, name)) for name in CERTIFIED)
            above = any(size is not None and limit is not None and size > limit * (1 + 1e-9) for size, limit in pairs)
            if above or used(array, budget) > 1 + 1e-7:  # a sum of roots of eigenvalues takes 1e-16 for 1e-8
                wrong.add(kind)
    return wrong


class Network:
    """Layers, their budgets, and what the calculus says about each layer where it stands."""

    def __init__(self, layers: Sequence[Layer], norms: Norms, seq_len: int, radius: float = 1.0) -> None:
        self.layers, self.norms, self.seq_len, self.radius = layers, norms, seq_len, radius
        self.known: list[tuple[Layer, Facts]] = []
        self._weights = Weights(FLOAT, norms)
        self._walk(layers, radius)

    @classmethod
    def of(cls, setting: Setting) -> Network:
        """The network of a setting."""
        a = setting.architecture
        return cls(a.stages, setting.norms, a.seq_len, a.input_radius)

    def _walk(self, layers: Sequence[Layer], radius: float) -> float:
        """Facts of every layer, front to back; returns the radius at the end."""
        for layer in layers:
            if isinstance(layer, Residual):
                radius = sum(self._walk(branch, radius) for branch in layer.branches)
                continue
            here = layer.facts(Context(self._weights, radius, self.seq_len, self.seq_len))
            self.known.append((layer, here))
            radius = float(here.radius)
        return radius

    def draw(self, dice: Dice, *, whole: bool = False) -> Parameters:
        """Weights of every layer within their budgets; `whole`: the scores of heads as one matrix."""
        p: Parameters = {}
        for layer, _ in self.known:
            own = drawn(dice, layer, self.norms, self.seq_len)
            p |= joined(layer, own, self.seq_len) if whole else own
        return p

    def zeros(self) -> Parameters:
        """Weights of every layer, all 0."""
        return {key: 0 * array for key, array in self.draw(Dice(np.random.default_rng(0))).items()}

    def inputs(self, dice: Dice) -> Any:
        """Token numbers, or rows of the ball, often on its edge and often opposite or equal."""
        first: Any = self.layers[0]
        if first.widths()[0] == TOKENS:
            return dice.rng.integers(first.vocabulary, size=self.seq_len)
        width = next(width for layer in self.layers if (width := layer.widths()[0]) is not None)
        return dice.rows(self.seq_len, width, self.radius)

    def run(self, p: Parameters, x: Array, *, check: list[float] | None = None) -> Array:
        """The output rows; `check` collects (largest row)/(claimed radius) before projections."""
        return self._through(self.layers, p, x, iter(self.known), check)

    def _through(
        self, layers: Sequence[Layer], p: Parameters, x: Array, known: Iterator[Any], check: list[float] | None
    ) -> Array:
        for layer in layers:
            if isinstance(layer, Residual):
                x = np.sum([self._through(branch, p, x, known, check) for branch in layer.branches], axis=0)
                continue
            _, here = next(known)
            x = self.apply(layer, p, x)
            if check is not None:
                check.append(rows(x) / float(here.radius))
            x = projected(x, float(here.radius))
        return x

    def apply(self, layer: Any, p: Parameters, x: Array) -> Array:
        """One layer, its rows not projected."""
        run = Forward(NUMPY, Arrays(p, self.seq_len), fixed(layer, self.seq_len))
        return np.atleast_2d(run((layer,), x[None])[0])


def moved(
    dice: Dice, p: Parameters, others: Parameters, name: str, targets: Sequence[Target], eps: float
) -> Parameters:
    """The maps of one piece within their class and within eps: a part of the way to others, or to their negatives."""
    near, place, of = dict(p), place_of(name)[:2], farthest(targets)
    for key in (key for key in p if key[:2] == place):
        w, other = p[key], others[key] if dice.rng.random() < 0.5 else -p[key]
        far = apart(w, other, of)
        near[key] = other if far <= eps else w + eps / far * (other - w)
    return near
