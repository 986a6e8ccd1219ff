"""The search for the numbers of a proof by K2.

Not trusted: `statements.comparison.sharp.problem` decides what they prove.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from operator import mul

from boundcalc.base.numbers import FLOAT, golden
from boundcalc.statements.comparison.network import Network, sizes_of
from boundcalc.statements.comparison.sharp import (
    LARGEST_SCORE,
    Kernel,
    Strata,
    Terms,
    Tuning,
    series,
    sharp,
    step,
)

_ROOM = 1.012
"""What a claim of block 1 leaves to the subdivision that proves it."""
_CURVATURES = ((0.0, 0.95), (0.5, 0.87), (1.0, 0.6), (1.5, 0.36), (2.0, 0.3))
"""Good slopes of 1/Z by the range of scores, between which they are interpolated."""
_SPLIT = 0.2
_ROUNDS = 40
_GOLDEN_STEPS = 20
_RANGES = (6, 9, 12)
_FIRST = (0.72, 0.76, 0.8, 0.84, 0.88)
_DEEPEST = 16
"""Blocks up to which strata are looked for: each is tried with all others."""


@lru_cache(maxsize=256)
def tune(network: Network) -> Tuning | None:
    """Numbers for K2, or None where its series is not used."""
    first, depth = network.blocks[0], len(network.blocks)
    fro, most = first.scores_fro * network.radius**2, first.scores_op * network.radius**2
    if fro > LARGEST_SCORE:
        return None
    curvature = _curvature(fro)
    plain = Tuning(curvature, _SPLIT, _kernel(fro, most, curvature), (None,) * (depth - 1))
    if network.heads != 1 or not 1 < depth <= _DEEPEST:
        return plain
    told_apart = replace(plain, strata=_strata(network, plain))
    return min((plain, told_apart), key=lambda tuning: sharp(FLOAT, network, tuning))


def _curvature(fro: float) -> float:
    for (low, first), (high, last) in pairwise(_CURVATURES):
        if fro <= high:
            return first + (last - first) * (fro - low) / (high - low)
    return _CURVATURES[-1][1]


def _orders(fro: float) -> int:
    """Orders that are written out: what is left is below a hundredth of one."""
    order, term = 1, 4 * fro
    while order < 4 or term > 0.03:
        order += 1
        term *= 4 * fro / order
    return order


@lru_cache(maxsize=64)
def _kernel(fro: float, most: float, curvature: float) -> Kernel:
    """Weights by conditional gradients on a coarse grid of mixtures, and a claim with room from a fine one."""
    terms = series(FLOAT, fro, most, _orders(fro), curvature, _SPLIT)
    squares = _squared_terms(terms, 8, 2)
    mix = [square + 1e-12 for square in max(squares, key=lambda row: sum(map(math.sqrt, row)))]
    best: tuple[float, list[float]] = (math.inf, [])
    for k in range(_ROUNDS):
        weights = [math.sqrt(part) for part in mix]
        inverse = [1 / weight for weight in weights]
        values = [sum(map(mul, row, inverse)) for row in squares]
        at = max(range(len(squares)), key=values.__getitem__)
        best = min(best, (sum(weights) * values[at], weights))
        mix = [max(1e-12, part + (new - part) / (k + 3)) for part, new in zip(mix, squares[at], strict=True)]
    total, inverse = sum(best[1]), [1 / weight for weight in best[1]]
    largest = max(sum(map(mul, row, inverse)) for row in _squared_terms(terms, 24, 8))
    return Kernel(math.sqrt(total * largest) * _ROOM, tuple(weight / total for weight in best[1]))


def _squared_terms(terms: Terms, lengths: int, covariances: int) -> list[list[float]]:
    """Squared terms of a series at so many mean lengths, and covariances of each."""
    places = [(x / lengths, f / covariances) for x in range(lengths + 1) for f in range(covariances + 1)]
    grid = [(x, f * (1 - x * x)) for x, f in places]
    return [[term**2 for term in terms(at, at)] for at in grid]


def _strata(network: Network, plain: Tuning) -> tuple[Strata | None, ...]:
    """For each later block the strata that make its complexity smallest."""
    gaussian, chosen = plain.kernel.bound, list[Strata | None]()
    for size in sizes_of(FLOAT, network, columns=True)[1:-1]:
        whole = step(FLOAT, gaussian, size, None)
        values: list[tuple[float, Strata | None]] = [(whole, None)]
        if 0 < size.hull <= LARGEST_SCORE:
            strata = [_stratum(size.hull, first, count) for count, first in product(_RANGES, _FIRST)]
            values += [(step(FLOAT, gaussian, size, candidate, whole), candidate) for candidate in strata]
        gaussian, best = min(values, key=lambda value: value[0])
        chosen.append(best)
    return tuple(chosen)


@lru_cache(maxsize=1024)
def _stratum(hull: float, first: float, count: int) -> Strata:
    """Ranges that are finer near 1, where one column has everything."""
    edges = (*(1 - (1 - first) * (1 - k / count) ** 1.5 for k in range(count)), 1.0)
    return Strata(edges, tuple(_stretch(hull, hull * high**2) * (1 + 4e-3) for high in edges[1:]))


def _stretch(hull: float, bend: float) -> float:
    """J(S, h), by golden section: the square has one peak in x."""
    up = math.exp(hull)

    def loss(x: float) -> float:
        one, zero = (1 + bend * (1 - x)) ** 2, (1 - bend * x) ** 2
        b = (x * one + (1 - x) * zero) * (1 + up) - x * (one - zero)
        w = min(1.0, max(1 / (x + (1 - x) * up), 2 * zero / b))
        return (zero - b * w) / (up * w * w)

    return math.sqrt(-min(loss(golden(loss, 0.0, 1.0, _GOLDEN_STEPS)), loss(0.0), loss(1.0)))
