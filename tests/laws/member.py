"""The network that a printed risk is about, as arrays; and random searches for a better one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boundcalc.engine._witness import State, best_state, first_token
from boundcalc.layers.base import weights_of
from boundcalc.setting import Embedding, Setting
from boundcalc.testing._drawing import Array, Dice, Parameters, within
from tests.soundness.network import Network

Arrays = dict[tuple[str, int | None, int | None], np.ndarray]


@dataclass(frozen=True)
class Member:
    """A network of a class, as arrays.

    Attributes:
        weights: by kind, block and head (None where there is one).
        inputs: one of each label: T rows, or T tokens, of which the first is the one that is read where it has no data.
        margin: of both, as floats with room for their rounding.
    """

    weights: Arrays
    inputs: tuple[np.ndarray, np.ndarray]
    margin: float


def member(setting: Setting) -> Member | None:
    """The network that `built_margin` is about, or None."""
    state, margin = best_state(setting)
    if state is None:
        return None
    a = setting.architecture
    weights: Arrays = {}
    for weight in weights_of(a.stages, a.seq_len):
        for copy in range(weight.copies):
            for part in weight.read(setting.norms, copy if weight.heads else None):
                head = copy * part.copies // weight.copies if part.heads or part.copies > 1 else None
                top = setting.norms.find(part.kind, part.block).sup if part.role == "gain" else 0.0
                weights[part.kind, part.block, head] = np.full(part.shape, top or 0.0)
    for entry in state.entries:
        for (kind, block, _), array in weights.items():
            if (kind, block) == (entry.kind, entry.block):
                for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    if value := entry.shape[2 * row + column]:
                        array[np.array(entry.starts) + row, column] = value * entry.factor
    return Member(weights, _inputs(setting, state, weights), margin)


def _inputs(setting: Setting, state: State, weights: Arrays) -> tuple[np.ndarray, np.ndarray]:
    a = setting.architecture
    first = a.stages[0]
    for layer in a.stages:
        if isinstance(layer, Embedding) and layer.positions == "fixed":
            weights["positions", None, None] = np.zeros((a.seq_len, layer.d))
    if isinstance(first, Embedding) and first.vocabulary:
        tokens = np.tile(first_token(first) + np.arange(2)[:, None], a.seq_len)
        if first.own_row is not None:
            tokens[:, 0] = first.own_row
        return tokens[0], tokens[1]
    width = first.widths()[0] or a.d
    x = np.zeros((2, a.seq_len, width))
    rows = np.array(state.start).reshape(2, 2)[:, : min(width, 2)]
    x[:, :, : min(width, 2)] = (a.input_radius * rows / np.linalg.norm(rows, axis=1, keepdims=True))[:, None]
    return x[0], x[1]


Score = Callable[[Network, Parameters, list[Array]], float]


def climb(setting: Setting, rng: np.random.Generator, widths: list[int], score: Score, starts: int = 1) -> float:
    """The largest score that random steps of weights, and of an input of each width, come to."""
    a, network, best = setting.architecture, Network.of(setting), -np.inf

    def full(x: Array) -> Array:
        return a.input_radius * x / np.linalg.norm(x, axis=1, keepdims=True)

    for _ in range(starts):
        weights, xs = network.draw(Dice(rng)), [full(rng.standard_normal((a.seq_len, d))) for d in widths]
        here = score(network, weights, xs)
        for step in range(400):
            size = 0.5 * 0.985**step
            other = {
                key: within(w + size * rng.standard_normal(w.shape), setting.norms.find(key[0], key[1]))
                for key, w in weights.items()
            }
            moved = [full(x + size * rng.standard_normal(x.shape)) for x in xs]
            if (there := score(network, other, moved)) > here:
                weights, xs, here = other, moved, there
        best = max(best, here)
    return best
