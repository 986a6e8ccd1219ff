"""Looking for wrong signs on all inputs of short sequences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Network

MOST_BITS = 20
_CHUNK = 1 << 14


@dataclass(frozen=True)
class Worst:
    """The least signed score sign(f) F, its input, and how many inputs were tried."""

    score: float
    bits: np.ndarray
    tried: int


def all_inputs(seq_len: int, start: int, stop: int) -> np.ndarray:
    """Rows start, ..., stop - 1 of the 2^T inputs; bit t of the number is bit t of the input."""
    return ((np.arange(start, stop, dtype=np.int64)[:, None] >> np.arange(seq_len)) & 1).astype(np.float64)


def exhaust(network: Network, function: SparseFunction) -> Worst:
    """The least signed score over all 2^T inputs (T <= 20)."""
    T = network.seq_len
    if T > MOST_BITS:
        raise InvalidSetting(
            f"T = {T} has 2^{T} inputs: exhaustion is for T <= {MOST_BITS}; the certificate covers every T in closed "
            "form"
        )
    scores = [
        worst_of(network, function, all_inputs(T, start, min(start + _CHUNK, 1 << T)))
        for start in range(0, 1 << T, _CHUNK)
    ]
    worst = min(scores, key=lambda one: one.score)
    return Worst(worst.score, worst.bits, 1 << T)


def worst_of(network: Network, function: SparseFunction, bits: np.ndarray) -> Worst:
    """The least signed score over given inputs (n, T)."""
    signed = network.scores(bits) * (2.0 * function.values(bits) - 1)
    at = int(signed.argmin())
    return Worst(float(signed[at]), bits[at].astype(np.int8), len(bits))
