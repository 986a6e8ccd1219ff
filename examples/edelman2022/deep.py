"""Functions of functions of functions in as many blocks as there are levels, right on every input.

Run it with `python examples/edelman2022/deep.py` (`--quick` for shorter sequences). All is computed in the row of
[CLS]. The first block gives each function of the bits a head and hidden units of its own, and one more unit, the
marker, that is on at [CLS] and off elsewhere, where attention is even. In every further block [CLS] finds itself by the
marker, and reads the features in its row as bits. Every function is symmetric in its inputs, so ramps that are flat
around each level undo the leak of attention. Each block is scaled so that no row leaves the unit ball: projections do
nothing.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from boundcalc.lab.represent.functions import SparseFunction, parse
from boundcalc.lab.represent.units import ramp_units

Values = dict[float, float]
QUICK = {"quick": True}
BIT, PLACE, CONSTANT = 0.6, 0.6, 0.5
LEAK = 1e-3
"""Attention to other rows than the selected ones."""
TREES = {
    2.0: (("x0 & x1", "x2 & x3"), ("x0 ^ x1",)),
    3.0: (("x0 & x1", "x2 & x3", "x4 & x5", "x6 & x7"), ("x0 | x1", "x2 | x3"), ("x0 & x1",)),
    4.0: (
        ("x0 ^ x1", "x2 | x3", "x4 & x5", "x6 & x7"),
        ("x0 | x1", "x1 ^ x2 ^ x3"),
        ("x0 & x1", "x0 | x1"),
        ("x0 ^ x1",),
    ),
}


def clip(rows: np.ndarray) -> np.ndarray:
    """Projection of every row onto the unit ball."""
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)


def block(rows: np.ndarray, heads: list[tuple[np.ndarray, np.ndarray, np.ndarray]], w_1: np.ndarray) -> np.ndarray:
    """Pi_1(relu(Pi_1(attention)) W_1) with heads (w_q, w_k, W_V), scaled so that no row leaves the ball."""
    out = np.zeros((*rows.shape[:2], w_1.shape[0]))
    for w_q, w_k, w_v in heads:
        scores = (rows @ w_q)[..., None] * (rows @ w_k)[:, None, :]
        masses = np.exp(scores - scores.max(-1, keepdims=True))
        out += masses / masses.sum(-1, keepdims=True) @ (rows @ w_v)
    out /= np.linalg.norm(out, axis=-1).max()
    hidden = np.maximum(clip(out), 0.0) @ w_1
    return clip(hidden / np.linalg.norm(hidden, axis=-1).max())


def units_of(function: SparseFunction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes (inputs, units), offsets and weights of ramps of the mean, +-1 within a third of a level's distance."""
    symmetric = function.symmetric
    assert symmetric is not None  # noqa: S101 - the trees have AND, OR and parity only
    units = ramp_units(symmetric.profile, 0.3 / function.arity, (1.0, 1.0))
    share = np.where(symmetric.negated, -1.0, 1.0) / function.arity
    return np.outer(share, units.alpha[0]), units.theta, units.weight


def first_block(bits: np.ndarray, functions: list[SparseFunction]) -> np.ndarray:
    """Rows after the first block: a coordinate per function, and the marker."""
    n, T = bits.shape
    rows = np.zeros((n, T + 1, 2 * T + 2))
    rows[:, 1:, :T] = PLACE * np.eye(T)
    rows[:, 1:, T : 2 * T] = BIT * (2 * bits - 1)[..., None] * np.eye(T)
    rows[:, 1:, 2 * T] = CONSTANT
    rows[:, 0, 2 * T + 1] = 1.0
    units = [units_of(function) for function in functions]
    total, start = sum(theta.size for _, theta, _ in units) + 1, 0
    heads, w_1 = [], np.zeros((total, len(functions) + 1))
    for index, (function, (alpha, theta, weight)) in enumerate(zip(functions, units, strict=True)):
        s, chosen, mine = function.arity, list(function.variables), slice(start, start + theta.size)
        beta = math.log((T - s + 1) / (s * LEAK))
        mass = 1 / (s + (T - s + 1) * math.exp(-beta))
        w_q, w_k, w_v = np.zeros(2 * T + 2), np.zeros(2 * T + 2), np.zeros((2 * T + 2, total))
        w_q[2 * T + 1], w_k[chosen] = 1.0, beta / PLACE
        w_v[[T + v for v in chosen], mine] = alpha / (BIT * mass)
        w_v[chosen, mine] = theta / (PLACE * mass * s)
        if index == 0:  # the marker: more on the chosen positions than even attention gives them
            w_v[:T, -1] = -s / (T - s) * (1 + 1e-6)
            w_v[chosen, -1] = 1.0
        heads.append((w_q, w_k, w_v))
        w_1[mine, index] = weight
        start += theta.size
    w_1[-1, -1] = 1.0
    return block(rows, heads, w_1)


def next_block(rows: np.ndarray, functions: list[SparseFunction]) -> np.ndarray:
    """Functions of the features in the row of [CLS], which finds itself by the marker, and the marker's copy."""
    k, T = rows.shape[-1] - 1, rows.shape[1] - 1
    mark, elsewhere = rows[0, 0, -1], rows[:, 1:, -1].max()
    sizes = np.abs(rows[:, 0, :k]).mean(0)
    units = [units_of(function) for function in functions]
    total, start = sum(theta.size for _, theta, _ in units) + 1, 0
    w_q, w_v, w_1 = np.zeros(k + 1), np.zeros((k + 1, total)), np.zeros((total, len(functions) + 1))
    w_q[-1] = math.sqrt(math.log(T / LEAK) / (mark * (mark - elsewhere)))
    for index, (function, (alpha, theta, weight)) in enumerate(zip(functions, units, strict=True)):
        chosen, mine = list(function.variables), slice(start, start + theta.size)
        w_v[chosen, mine] = alpha / sizes[chosen][:, None]
        w_v[-1, mine] = theta / mark
        w_1[mine, index] = weight
        start += theta.size
    w_v[-1, -1] = w_1[-1, -1] = 1.0
    return block(rows, [(w_q, w_q, w_v)], w_1)


def least(tree: tuple[tuple[str, ...], ...], T: int) -> float:
    """The least score, counted positive on the side of the tree's value, over all 2^T inputs, of scores of size about
    1."""
    bits = (np.arange(1 << T)[:, None] >> np.arange(T)) & 1
    functions = [[parse(text) for text in level] for level in tree]
    rows, truth = first_block(bits, functions[0]), bits
    for level in functions[1:]:
        rows = next_block(rows, level)
    for level in functions:
        truth = np.stack([function.values(truth) for function in level], axis=-1)
    scores = rows[:, 0, 0] * (2.0 * truth[:, 0] - 1)
    return float(scores.min() / np.abs(scores).max())


def main(quick: bool = False) -> tuple[Values, Values]:
    """Nine tenths of the largest score, and the least signed score of all inputs, by the number of blocks."""
    scores = {depth: least(tree, 8 if quick else 12) for depth, tree in TREES.items()}
    return dict.fromkeys(scores, 0.9), scores


if __name__ == "__main__":
    for depth, score in main("--quick" in sys.argv)[1].items():
        print(f"{depth:g} blocks: right on all inputs: {score > 0}; least signed score {score:.4f} of the largest")
