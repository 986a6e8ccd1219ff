"""A layer where it stands, run on drawn weights and rows: what is seen of it, which no claim changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.layers.facts import Context, Facts
from boundcalc.setting import Layer, Norms
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights
from boundcalc.testing.drawing import Array, Dice, Key, apart, drawn, farthest, joined, projected

Rule = Callable[[Any, Context], Facts]
"""What is claimed of a layer where it stands."""
Drawn = Mapping[Key, Array]
"""Every array of the layer."""

_Seen = TypeVar("_Seen")
_TRIES = 60
_STEP = 1e-6


@dataclass(frozen=True)
class LayerExample:
    """A layer where it stands, and how to run it.

    Attributes:
        layer: the layer.
        norms: budgets of its weights.
        run: the output rows of (weights, input rows).
        radius: largest length of an input row.
        seq_len: T, input rows.
        inputs: input rows, where they are not rows of the ball (tokens).
    """

    layer: Layer
    norms: Norms
    run: Callable[[Drawn, Array], Array]
    radius: float = 1.0
    seq_len: int = 3
    inputs: Callable[[np.random.Generator], Array] | None = None

    def __str__(self) -> str:
        return f"{self.layer} at radius {self.radius:g}"

    def claims(self, rule: Rule, ns: NumberSystem = FLOAT, rows: int | None = None) -> Facts:
        """What a rule says of it, where all rows of its output are used or so many."""
        count = self.seq_len if rows is None else rows
        return rule(self.layer, Context(Weights(ns, self.norms), ns.number(self.radius), count, self.seq_len))

    def output(self, weights: Drawn, x: Array) -> Array:
        """The rows it makes."""
        return np.atleast_2d(self.run(weights, x))

    def runs(self, number: int = 60) -> Iterator[tuple[Dice, Drawn, Array, Array]]:
        """Weights, input rows and what the layer makes of them, often all along the same axes; with dice for more."""
        for index, (aligned, weights, x, y) in enumerate(self._drawn[:number]):
            yield Dice(np.random.default_rng((1, index)), aligned), weights, x, y

    @cached_property
    def _drawn(self) -> list[tuple[bool, Drawn, Array, Array]]:
        rng, draws = np.random.default_rng(0), list[tuple[bool, Drawn, Array, Array]]()
        for _ in range(_TRIES):
            dice = Dice(rng, aligned=bool(rng.random() < 0.4))
            weights = joined(self.layer, drawn(dice, self.layer, self.norms, self.seq_len), self.seq_len)
            x = self.inputs(rng) if self.inputs else dice.rows(self.seq_len, self.layer.widths()[0] or 3, self.radius)
            draws.append((dice.aligned, weights, x, self.output(weights, x)))
        return draws

    # what was seen, which no claim changes

    @cached_property
    def longest(self) -> float:
        """The longest row that came out."""
        return max(_largest(y) for _, _, _, y in self.runs())

    @cached_property
    def stretched(self) -> tuple[float, float]:
        """The most that a difference of inputs grew by, but for rounding, and which difference."""
        worst = (0.0, 0.0)
        for dice, weights, x, y in self.runs():
            for spread in (_STEP, 0.3):
                across = self.radius * dice.rng.standard_normal(x.shape) / math.sqrt(x.shape[1])
                other = x + spread * (across if dice.rng.random() < 0.6 else -x)  # along the rows products change most
                other = projected(other, self.radius)
                if (moved := _largest(other - x)) > 0:
                    worst = max(worst, ((_largest(self.output(weights, other) - y) - 1e-12) / moved, moved))
        return worst

    def moved(self, kind: str, targets: Sequence[Target]) -> Sequence[tuple[float, float]]:
        """How far the output moved with the arrays of one kind, and how far these did on the points of their targets.

        Each a little, and each to another of its class: its opposite, or what was drawn with other weights.
        """
        first = farthest(targets)

        def find() -> list[tuple[float, float]]:
            moves: list[tuple[float, float]] = []
            for (dice, weights, x, y), (_, others, _, _) in pairwise(self.runs()):
                mine = {key: array for key, array in weights.items() if key[0] == kind}
                near = {key: dice.near(array, first, _STEP) for key, array in mine.items()}
                moves.append((_STEP, _largest(self.output({**weights, **near}, x) - y)))
                for other in ({key: -array for key, array in mine.items()}, {key: others[key] for key in mine}):
                    far = max(apart(array, other[key], first) for key, array in mine.items())
                    moves.append((far, _largest(self.output({**weights, **other}, x) - y)))
            return moves

        return self.once((kind, first.kind, float(first.radius)), find)

    def dimensions(self, kind: str, side: int) -> int:
        """How many dimensions the slopes of the last row by the first matrix of a kind span, on one side of it."""

        def find() -> int:
            return max(_dimensions(self, kind, side, weights, x) for _, weights, x, _ in self.runs(6))

        return self.once((kind, side), find)

    def once(self, what: object, find: Callable[[], _Seen]) -> _Seen:
        """The value of its first use."""
        if what not in self._seen:
            self._seen[what] = find()
        return self._seen[what]

    @cached_property
    def _seen(self) -> dict[object, Any]:
        return {}


def _largest(x: Array) -> float:
    return float(np.linalg.norm(x, axis=-1).max())


def _dimensions(at: LayerExample, kind: str, side: int, weights: Drawn, x: Array) -> int:
    key = next((key for key in weights if key[0] == kind), None)
    if key is None or weights[key].ndim != 2:
        return 0
    matrix, slopes = weights[key], list[Array]()
    step = 1e-4 * max(1.0, float(np.abs(matrix).max()))
    for place in np.ndindex(*matrix.shape):
        change = np.zeros_like(matrix)
        change[place] = step
        up, down = (at.output({**weights, key: matrix + sign * change}, x)[-1] for sign in (1, -1))
        slopes.append((up - down) / (2 * step))
    slope = np.array(slopes).reshape(*matrix.shape, -1).swapaxes(0, side)
    sizes = np.linalg.svd(slope.reshape(len(slope), -1), compute_uv=False)
    return int((sizes > 1e-4 * max(1e-2, sizes[0])).sum())
