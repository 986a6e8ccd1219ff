"""Parameters for T13, T14 and laws of noise, chosen on a grid and kept.

Any admissible ones are valid: nothing here is trusted.

Grids let the gamma functions of a matrix, which depend on its sides and a parameter only, be computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from operator import add

from boundcalc.base.numbers import FLOAT
from boundcalc.statements.covers.laws import RANGES, Law

_STEP = 0.5
"""Distance of neighbouring nodes in log y."""
_LAST = 24
"""From y = e^12 on the parameters stay: covers by volume are as good there, and little of a chain is."""
_HIGHEST = 60
"""Places on the grid of a parameter: powers of sqrt 2 in units of the sides, and a = 0 as the least a."""
_FIRST = {"a": 12, "s": 13, "r": 15}
_MOST_MOVES = 60

_Place = tuple[int, ...]


def tuned(lemma: Law, d: int, k: int, log_y: float) -> Mapping[str, float]:
    """Near-optimal parameters for matrices of one shape: those of the nearest node."""
    return _tuned(lemma, d, k, min(_LAST, max(0, round(log_y / _STEP))))


@lru_cache(maxsize=1 << 16)
def _tuned(lemma: Law, d: int, k: int, node: int) -> Mapping[str, float]:
    return _at(lemma, d, k, _place(lemma, d, k, node))


def _at(lemma: Law, d: int, k: int, place: _Place) -> dict[str, float]:
    """The parameters at a place of the grid."""
    units = {"a": (d + k + 1) / 128, "s": max(d, k) / 1024, "r": 1 / 1024}
    params: dict[str, float] = {}
    for name, j in zip(lemma.ranges, place, strict=False):  # all but the last, t
        value = 0.0 if name == "a" and j == 0 else units[name] * math.sqrt(2) ** (j - (name == "a"))
        params[name] = min(max(value, RANGES[name][0]), RANGES[name][1])
    if "t" in lemma.ranges:  # the part of eps that the net is given; near the best for all sizes
        params["t"] = min(0.25, 1 / (d * k))
    return params


@lru_cache(maxsize=1 << 16)
def _place(lemma: Law, d: int, k: int, node: int) -> _Place:
    """By descent from between two coarser nodes, so that the result does not depend on the order of questions."""
    near = node & -node  # how far the coarser nodes are
    between = 0 < node <= _LAST - near
    if between:
        sides = zip(_place(lemma, d, k, node - near), _place(lemma, d, k, node + near), strict=True)
        place = tuple((low + high) // 2 for low, high in sides)
    else:
        place = (
            _place(lemma, d, k, node - near) if node else tuple(_FIRST[name] for name in lemma.ranges if name != "t")
        )
    costs: dict[_Place, float] = {}

    def cost(at: _Place) -> float:
        if at not in costs:
            params = _at(lemma, d, k, at)
            costs[at] = lemma.missed(FLOAT, math.exp(node * _STEP) / (1 - params.get("t", 0.0)), d, k, params)
        return costs[at]

    for stride in (1,) if between else (4, 2, 1):
        for _ in range(_MOST_MOVES):
            other = min(_neighbours(place, stride), key=cost, default=place)
            if cost(other) >= cost(place):
                break
            place = other
    return place


@cache
def _moves(count: int, stride: int) -> Sequence[_Place]:
    """Steps of one parameter, up and down; of three also s and r together: heavier tails want a narrower body."""
    axes = [tuple(stride * (i == axis) for i in range(count)) for axis in range(count)]
    if count == 3:
        axes.append((0, stride, stride))
    return [tuple(sign * by for by in move) for move in axes for sign in (1, -1)]


def _neighbours(place: _Place, stride: int) -> list[_Place]:
    moved = [tuple(map(add, place, move)) for move in _moves(len(place), stride)]
    return [place for place in moved if min(place) >= 0 and max(place) <= _HIGHEST]
