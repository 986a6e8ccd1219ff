"""Looking for wrong signs: all inputs of short sequences, random and adversarial ones of long sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Network

MOST_BITS = 20
_AT_ONCE = 16
_HOSTILE = 20_000
_RECHECKED = 50


@dataclass(frozen=True)
class Worst:
    """The least signed score sign(f) F met, the input, and how many inputs were tried."""

    score: float
    bits: np.ndarray
    tried: int


def all_inputs(seq_len: int, start: int, stop: int) -> np.ndarray:
    """Rows start, ..., stop - 1 of the 2^T inputs; bit t of the number is bit t of the input."""
    return ((np.arange(start, stop, dtype=np.int64)[:, None] >> np.arange(seq_len)) & 1).astype(np.float64)


def exhaust(network: Network, function: SparseFunction) -> Worst:
    """The least signed score over all 2^T inputs (T <= 20) of a network of one block."""
    T = network.seq_len
    if T > MOST_BITS:
        raise InvalidSetting(
            f"T = {T} has 2^{T} inputs: exhaustion is for T <= {MOST_BITS}; the certificate covers every T in closed form"
        )
    base, change = network.linear
    s = function.arity
    table = replace(function, variables=tuple(range(s))).values(all_inputs(s, 0, 1 << s))
    places = {v: 1 << i for i, v in enumerate(function.variables)}
    first = min(T, _AT_ONCE)
    values, rows = base[:, None], np.zeros(1, dtype=np.int64)
    for t in range(first):  # inputs double with every bit
        values = np.concatenate([values, values + change[t][:, None]], axis=1)
        rows = np.concatenate([rows, rows + places.get(t, 0)])
    worst = Worst(float("inf"), np.zeros(T, dtype=np.int8), 1 << T)
    for rest in all_inputs(T - first, 0, 1 << (T - first)):
        signs = 2.0 * table[rows + sum(int(b) * places.get(first + t, 0) for t, b in enumerate(rest))] - 1
        signed = network.read((values + (rest @ change[first:])[:, None]).T) * signs
        at = int(signed.argmin())
        if signed[at] < worst.score:
            bits = np.concatenate([all_inputs(first, at, at + 1)[0], rest])
            worst = Worst(float(signed[at]), bits.astype(np.int8), 1 << T)
    return worst


def attack(network: Network, function: SparseFunction, count: int, seed: int, chunk: int = 1000) -> Worst:
    """The least signed score over `count` inputs.

    Random ones, and for each pattern of the bits that matter the other bits set against the sign by steepest descent,
    from every start that a hidden unit suggests.
    """
    rng = np.random.default_rng(seed)
    T = network.seq_len
    hostile = adversarial(network, function, rng, min(count, _HOSTILE))[:count]
    worst = _least(network, function, hostile, Worst(float("inf"), np.zeros(T, dtype=np.int8), count))
    for start in range(len(hostile), count, chunk):
        packed = rng.integers(0, 256, (min(chunk, count - start), -(-T // 8)), dtype=np.uint8)
        worst = _least(network, function, np.unpackbits(packed, axis=1, count=T), worst)
    return worst


def worst_of(network: Network, values: Callable[[np.ndarray], np.ndarray], bits: np.ndarray) -> Worst:
    """The least signed score over given inputs (n, T) of a network of any depth; `values` of them are 0 and 1."""
    signed = network.scores(bits) * (2.0 * values(bits) - 1)
    at = int(signed.argmin())
    return Worst(float(signed[at]), bits[at].astype(np.int8), len(bits))


def adversarial(network: Network, function: SparseFunction, rng: np.random.Generator, most: int) -> np.ndarray:
    """Inputs meant to be wrong: against each unit and against the sum, for patterns of the bits that matter."""
    chosen = list(function.variables)
    _, change = network.linear
    starts = [np.zeros(network.seq_len, dtype=np.uint8), np.ones(network.seq_len, dtype=np.uint8)]
    starts += [np.asarray(change[:, j] * sign > 0, dtype=np.uint8) for j in range(change.shape[1]) for sign in (1, -1)]
    patterns = _patterns(len(chosen), rng, max(1, most // (3 * len(starts))))
    out: list[np.ndarray] = []
    for start in starts:
        bits = np.repeat(start[None], len(patterns), axis=0)
        bits[:, chosen] = patterns
        for _ in range(2):
            out.append(bits)
            bits = _descend(network, function, bits)
        out.append(bits)
    return np.concatenate(out)


def _patterns(s: int, rng: np.random.Generator, most: int) -> np.ndarray:
    if s <= 12 and 1 << s <= most:
        return all_inputs(s, 0, 1 << s)
    ones = rng.integers(0, s + 1, most)  # every number of ones alike, not only the middle ones
    return (rng.random((most, s)).argsort(1) < ones[:, None]).astype(float)


def _descend(network: Network, function: SparseFunction, bits: np.ndarray) -> np.ndarray:
    """All bits that do not matter set against the signed sum, to first order."""
    base, change = network.linear
    active = (bits @ change + base) > 0
    signs = 2.0 * function.values(bits) - 1
    slopes = (active * network.blocks[0].w_1[:, 0]) @ change.T * signs[:, None]
    new = (slopes < 0).astype(np.uint8)
    new[:, list(function.variables)] = bits[:, list(function.variables)]
    return new


def _least(network: Network, function: SparseFunction, bits: np.ndarray, worst: Worst) -> Worst:
    """The worse of the worst so far and the worst of a batch; in large ones float32 chooses what float64 decides."""
    if len(bits) > _RECHECKED:
        signs = 2.0 * function.values(bits) - 1
        keep = np.argpartition(network.read(network.values(bits, np.float32)) * signs, _RECHECKED)[:_RECHECKED]
        bits = bits[keep]
    found = worst_of(network, function.values, bits)
    return replace(found, tried=worst.tried) if found.score < worst.score else worst
