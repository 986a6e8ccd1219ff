"""Shared helpers: random functions, constructions made once, and what their weights give on inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from boundcalc.lab.represent._network import Network
from boundcalc.lab.represent.construct import Construction, construct, possible_kinds
from boundcalc.lab.represent.functions import SparseFunction, parse


def all_functions(s: int, variables: tuple[int, ...]) -> Iterator[SparseFunction]:
    """Every function of s bits that is not constant, reduced to the bits it depends on."""
    for code in range(1, (1 << (1 << s)) - 1):
        yield SparseFunction(variables, tuple((code >> k) & 1 for k in range(1 << s))).minimised()


def random_table(s: int, rng: np.random.Generator, seq_len: int) -> SparseFunction:
    """A random function of s random bits; constants are replaced by a bit."""
    places = tuple(int(v) for v in np.sort(rng.choice(seq_len, s, replace=False)))
    table = rng.integers(0, 2, 1 << s)
    table[:2] = (0, 1) if len(set(table.tolist())) == 1 else table[:2]
    return SparseFunction(places, tuple(int(v) for v in table)).minimised()


def all_inputs(seq_len: int) -> np.ndarray:
    """All 2^T inputs; bit t of a row's number is bit t of the input."""
    return (np.arange(1 << seq_len)[:, None] >> np.arange(seq_len)) & 1


def linear(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """The attention output of [CLS] as base + bits @ change, where scores do not depend on bits."""
    encoding, w_k, w_v = network.encoding, network.w_k, network.w_v
    scores = w_k[encoding.place_block] * encoding.place + encoding.constant * w_k[encoding.constant_index]
    masses = np.exp(network.w_q[encoding.cls_index] * np.append(scores, w_k[encoding.cls_index]))
    masses /= masses.sum()
    one = encoding.bit * np.broadcast_to(w_v[encoding.bit_block], (network.seq_len, w_v.shape[1]))
    same = encoding.place * w_v[encoding.place_block] + encoding.constant * w_v[encoding.constant_index]
    return masses[:-1] @ (same - one) + masses[-1] * w_v[encoding.cls_index], masses[:-1, None] * 2 * one


def scores(network: Network, bits: np.ndarray) -> np.ndarray:
    """Scores (n,) of bits (n, T)."""
    base, change = linear(network)
    values = bits @ change + base
    hidden = np.maximum(values, 0.0) / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1.0)
    return np.clip((hidden @ network.w_1)[..., 0], -1.0, 1.0)


def least_score(made: Construction, bits: np.ndarray) -> float:
    """The least signed score sign(f) F over given inputs (n, T)."""
    return float((scores(made.network, bits) * (2.0 * made.function.values(bits) - 1)).min())


@pytest.fixture(scope="session")
def built() -> dict[tuple[str, str, int], Construction]:
    """A few constructions, of every kind, by (kind, expression, T)."""
    constructions: dict[tuple[str, str, int], Construction] = {}
    for text in ("AND(1, 4, 6)", "PARITY(0, 3, 5)", "~x1 & x4 & x6", "x0 & x3 | ~x0 & x5"):
        for T in (10, 300):
            function = parse(text).minimised()
            for kind in possible_kinds(function):
                constructions[kind, text, T] = construct(function, T, kind)
    return constructions
