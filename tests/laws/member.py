"""The network that a printed risk is about, as arrays; and random searches for a better one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from boundcalc.engine._witness import State, best_state, first_token
from boundcalc.setting import Embedding, Setting
from boundcalc.testing._drawing import Array, Dice, Parameters, within
from tests.soundness.network import Network


def member(setting: Setting) -> tuple[Parameters, tuple[Array, Array]]:
    """The network that `built_margin` is about, and an input of each label: rows, or tokens."""
    state, _ = best_state(setting)
    assert state is not None
    weights = Network.of(setting).zeros()
    for (kind, block, _), array in weights.items():
        if kind.endswith(".gain"):
            array[...] = setting.norms.find(kind, block).sup or 0.0
    for entry in state.entries:
        for (kind, block, _), array in weights.items():
            if (kind, block) == (entry.kind, entry.block):
                for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    if value := entry.shape[2 * row + column]:
                        array[np.array(entry.starts) + row, column] = value * entry.factor
    return weights, _inputs(setting, state, weights)


def _inputs(setting: Setting, state: State, weights: Parameters) -> tuple[Array, Array]:
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
