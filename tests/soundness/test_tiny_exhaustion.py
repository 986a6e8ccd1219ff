"""Counts against the true covering number, bracketed in dimension at most two.

Two functions at distance above 2 eps never share a centre, even one outside the class: a packing at
that distance is a lower bound on every cover. Functions are represented by their values on the
points (rows: points, columns: outputs); the distance is the largest l2 norm over the points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from tests.soundness.claims import claim

Array = NDArray[np.float64]


def distance(values: Array, one: Array) -> Array:
    """Distance of each function to one function: values (size, points, outputs)."""
    return np.sqrt(((values - one) ** 2).sum(axis=2)).max(axis=1)


def packing(values: Array, eps: float) -> int:
    """A greedy packing at distances above 2 eps: a lower bound on every cover at eps."""
    left, size = values, 0
    while len(left):
        left = left[distance(left, left[0]) > 2 * eps * (1 + 1e-9)]
        size += 1
    return size


def greedy_cover(values: Array, eps: float) -> int:
    """A cover of the listed functions by listed functions: an upper bound on their number."""
    left, size = values, 0
    while len(left):
        left = left[distance(left, left[0]) > eps]
        size += 1
    return size


def matrices(d: int, k: int, inside: Callable[[Array], Array], steps: int) -> Array:
    """A grid of d x k matrices (at most two entries) inside a set given by a gauge <= 1."""
    axis = np.linspace(-1, 1, steps)
    grid = np.array(list(itertools.product(axis, repeat=d * k))).reshape(-1, d, k)
    return grid[inside(grid) <= 1 + 1e-12]


def l2(w: Array) -> Array:
    return np.sqrt((w**2).sum(axis=(1, 2)))


def l21(w: Array) -> Array:
    return np.sqrt((w**2).sum(axis=1)).sum(axis=1)


def l11(w: Array) -> Array:
    return np.abs(w).sum(axis=(1, 2))


def linf(w: Array) -> Array:
    return np.abs(w).max(axis=(1, 2))


class TinyCase(NamedTuple):
    """Functions as value tables, and the log-counts that claim to cover them."""

    values: Array
    eps: float
    counts: dict[str, float]


def ball_points(steps: int = 24) -> Array:
    """Unit vectors of the plane: the uniform statements hold for every set of them."""
    t = np.linspace(0, np.pi, steps, endpoint=False)
    return np.stack([np.cos(t), np.sin(t)], axis=1)


def tiny_cases(eps: float) -> list[TinyCase]:
    """Classes of at most two parameters, whose packings are listed, with what the package claims of them."""
    y, cases = 1 / eps, []
    for x in (
        np.array([[1.0, 0.0]]),
        np.eye(2),
        np.array([[1.0, 0.0], [0.96, 0.28]]),
        np.array([[1.0, 0.0], [-0.6, 0.8], [0.6, 0.8]]),
        ball_points(6),
    ):
        disc = x @ matrices(2, 1, l2, 161)
        cases.append(TinyCase(disc, eps, {name: claim(name, y, 2, 1, len(x)) for name in ("T1", "T2")}))
    pair = np.ones((1, 1)) @ matrices(1, 2, l21, 161)
    cases.append(TinyCase(pair, eps, {"T2 pair": claim("T2", y, 1, 2, 1)}))
    for d, k in ((1, 1), (2, 1), (1, 2)):
        x, steps = np.ones((1, 1)) if d == 1 else ball_points(), 2001 if d * k == 1 else 161
        for gauge, names in (
            (l2, ("T4", "T5", "T14")),
            (l21, ("T13",)),
            (l11, ("T3",)),
        ):
            extra = {"T5": Budget(op=1.0, rank=1)}
            counts = {name: claim(name, y, d, k, norms=extra.get(name)) for name in names}
            cases.append(TinyCase(x @ matrices(d, k, gauge, steps), eps, counts))
        vectors = np.ones((1, 1)) @ matrices(1, d * k, l2, steps)
        cases.append(TinyCase(vectors, eps, {"T8": claim("T8", y, 1, d * k, kind="vector")}))
    gains = np.eye(2)[None] * np.swapaxes(matrices(2, 1, linf, 161), 1, 2)  # x * g for x = e_1, e_2
    cases.append(TinyCase(gains, eps, {"T9": claim("T9", y, 1, 2, kind="gain")}))
    table = np.eye(2) @ matrices(2, 1, linf, 161)
    cases.append(TinyCase(table, eps, {"T10": claim("T10", y, 2, 1, kind="table")}))
    return cases


def too_small(cases: list[TinyCase], factor: float = 1.0) -> set[str]:
    """Names of the counts that fall below a packing; `factor` scales every log-count."""
    bad: set[str] = set()
    for values, eps, counts in cases:
        least = packing(values, eps)
        assert least <= greedy_cover(values, eps)  # the bracket is consistent
        bad |= {name for name, log in counts.items() if log * factor < math.log(least) - 1e-9}
    return bad


@pytest.mark.parametrize("eps", [0.9, 0.5, 1 / 3, 0.23, 0.11])
def test_no_claim_is_below_the_packing_number(eps: float) -> None:
    assert too_small(tiny_cases(eps)) == set()


def test_claims_that_are_too_small_are_noticed() -> None:
    bad = set[str]().union(*(too_small(tiny_cases(eps), 0.35) for eps in (0.5, 0.15)))
    assert {"T4", "T8", "T9", "T10", "T13", "T14"} <= bad
    bad = set[str]().union(*(too_small(tiny_cases(eps), 0.15) for eps in (0.5, 0.23)))
    assert {"T1", "T3"} <= bad
    assert "T2 pair" in set[str]().union(*(too_small(tiny_cases(eps), 0.05) for eps in (0.5, 0.23)))


def test_every_lemma_is_held_against_something() -> None:
    names = {name.split()[0] for case in tiny_cases(0.5) for name in case.counts}
    assert names == set(LEMMAS) - {"Tpub"}  # never below T1 and T2
    for y, n, k in itertools.product((1.1, 7.0, 300.0), (1, 10**6), (1, 30)):
        assert claim("Tpub", y, k, k, n, norms=Budget(two_one=1.0)) >= claim("T2", y, k, k, n)
        assert claim("Tpub", y, k, k, n, kind="score", norms=Budget(fro=1.0)) >= claim("T1", y, k, k, n, kind="score")


def test_intervals_and_boxes_need_just_as_many_centres_as_claimed() -> None:
    for eps in (0.5, 1 / 3, 0.3, 0.0999):
        interval = np.linspace(-1, 1, 6001)[:, None, None]
        for d in (1, 2, 3):
            claimed = math.exp(claim("T9", 1 / eps, 1, d, kind="gain") / d)
            assert packing(interval, eps) <= round(claimed) <= packing(interval, eps) + 1
            assert claimed == pytest.approx(round(claimed))
