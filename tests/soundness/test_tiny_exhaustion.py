"""Counts against the true covering number, bracketed in dimension at most two.

Two functions at distance above 2 eps never share a centre, even one outside the class: a packing at
that distance is a lower bound on every cover. Functions are represented by their values on the
points (rows: points, columns: outputs); the distance is the largest l2 norm over the points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle import covers_mp as covers

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


def empirical_cases(eps: float) -> list[TinyCase]:
    """T1 and T2 on few points: axis-parallel, clustered, opposite and generic ones."""
    sets = [
        np.array([[1.0, 0.0]]),
        np.eye(2),
        np.array([[1.0, 0.0], [0.96, 0.28]]),
        np.array([[1.0, 0.0], [-0.6, 0.8], [0.6, 0.8]]),
        ball_points(6),
    ]
    cases: list[TinyCase] = []
    for x in sets:
        n = len(x)
        disc = matrices(2, 1, l2, 161)
        counts = {
            "T1": covers.t1_closed(1, 1, eps, n),
            "T1 binomial": covers.t1_binomial(1, 1, eps, n),
            "T1 sharp": covers.t1_sharp(1, 1, eps, n),
            "T2": covers.t2_closed(1, 1, eps, 1, n),
            "T2 improved": covers.t2_closed_improved(1, 1, eps, 1, n),
            "T2 sharp": covers.t2_sharp(1, 1, eps, 1, n, Fraction(6, 5)),
            "T2 lattice": covers.t2_lattice(1, 1, eps, 1, n, Fraction(6, 5)),
        }
        cases.append(TinyCase(x @ disc, eps, {key: float(v) for key, v in counts.items()}))
    one = np.ones((1, 1))
    counts = {
        "T2": covers.t2_closed(1, 1, eps, 2, 1),
        "T2 improved": covers.t2_closed_improved(1, 1, eps, 2, 1),
    }
    for rho in (Fraction(11, 10), Fraction(3, 2), Fraction(4)):
        counts[f"T2 sharp {rho}"] = covers.t2_sharp(1, 1, eps, 2, 1, rho)
        counts[f"T2 lattice {rho}"] = covers.t2_lattice(1, 1, eps, 2, 1, rho)
    values = one @ matrices(1, 2, l21, 161)
    cases.append(TinyCase(values, eps, {key: float(v) for key, v in counts.items()}))
    return cases


def uniform_cases(eps: float) -> list[TinyCase]:
    """T3-T6, T8-T10 against every unit input."""
    cases: list[TinyCase] = []
    half, third = Fraction(1, 2), Fraction(1, 3)
    for d, k in ((1, 1), (2, 1), (1, 2)):
        x = np.ones((1, 1)) if d == 1 else ball_points()
        op = {
            "T4": covers.t4(1, 1, eps, d, k),
            "T4r": covers.t4r(1, 1, eps, d, k),
            "T4r Rogers": covers.t4r_rogers_unit(d * k, eps, half),
            "T5": covers.t5(1, 1, eps, d, k, 1),
            "T5 random": covers.t5_random(1, 1, eps, d, k, 1),
            "T6": covers.t6(1, 1, 1, eps, 1, third, d, k),
            "T6 soft": covers.t6_soft(1, 1, 1, eps, 1, third, d, k),
            "T4o F": covers.t4o(1, 1, eps, d, k, "F"),
            "T8": covers.t8(1, eps, d * k),
            "T9b": covers.t9b(1, eps, d * k),
        }
        mixed = {
            "T4v": covers.t4v(1, 1, eps, d, k),
            "T4v random": covers.t4v_random(1, 1, eps, d, k, half),
            "T4o 21": covers.t4o(1, 1, eps, d, k, "21"),
            "T4o random": covers.t4o_random(1, 1, eps, d, k, "21", half),
        }
        entries = {
            "T3": covers.t3(1, 1, eps, d, k),
            "T3 lattice": covers.t3_lattice(1, 1, eps, d, k),
            "T3 half": covers.t3_half(1, 1, eps, d, k),
            "T3 sparse": covers.t3_sparse(1, 1, eps, d, k),
            "T4o 11": covers.t4o(1, 1, eps, d, k, "11"),
        }
        steps = 2001 if d * k == 1 else 161
        for gauge, counts in ((l2, op), (l21, mixed), (l11, entries)):
            logs = {key: float(v) for key, v in counts.items()}
            cases.append(TinyCase(x @ matrices(d, k, gauge, steps), eps, logs))
    gains = np.swapaxes(matrices(2, 1, linf, 161), 1, 2)  # x * g for x = e_1, e_2
    values = np.eye(2)[None] * gains
    cases.append(TinyCase(values, eps, {"T9": float(covers.t9(1, 1, eps, 2))}))
    tokens = covers.t10_points(10, 10, 2)  # a table of two one-dimensional embeddings
    table = {
        "T10 by T1": covers.t1_sharp(1, 1, eps, tokens),
        "T10 by T2": covers.t2_lattice(1, 1, eps, 1, tokens, Fraction(6, 5)),
    }
    values = np.eye(2) @ matrices(2, 1, l2, 161)
    cases.append(TinyCase(values, eps, {key: float(v) for key, v in table.items()}))
    values = np.eye(2) @ matrices(2, 1, linf, 161)
    cases.append(TinyCase(values, eps, {"T10 rows": float(covers.t10_rows(1, eps, 2, 1))}))
    return cases


def too_small(cases: list[TinyCase], factor: float = 1.0) -> set[str]:
    """Names of the counts that fall below a packing; `factor` scales every log-count."""
    bad: set[str] = set()
    for values, eps, counts in cases:
        least = packing(values, eps)
        assert least <= greedy_cover(values, eps)  # the bracket is consistent
        bad |= {name for name, log in counts.items() if log * factor < math.log(least) - 1e-9}
    return bad


TOLERANCES = [0.9, 0.5, 1 / 3, 0.23, 0.11]


@pytest.mark.parametrize("eps", TOLERANCES)
def test_no_count_is_below_the_packing_number(eps: float) -> None:
    assert too_small(empirical_cases(eps)) == set()
    assert too_small(uniform_cases(eps)) == set()


def test_checker_rejects_counts_that_are_too_small() -> None:
    bad = set[str]().union(*(too_small(empirical_cases(eps), 0.2) for eps in (0.5, 0.11)))
    assert {"T1 sharp", "T2 lattice"} <= bad
    bad = set[str]().union(*(too_small(uniform_cases(eps), 0.35) for eps in (0.5, 0.11)))
    assert {"T3 half", "T4", "T4v", "T4o 21", "T9", "T9b", "T10 by T1"} <= bad


def test_exact_cases() -> None:
    """Where the covering number is known: intervals and boxes."""
    for eps in (Fraction(1, 2), Fraction(1, 3), Fraction(3, 10), Fraction(999, 10_000)):
        interval = np.linspace(-1, 1, 6001)[:, None, None]
        assert packing(interval, float(eps)) <= math.ceil(1 / eps) == covers.t9_cells(1, 1, eps)
        assert packing(interval, float(eps)) >= math.ceil(1 / eps) - 1
        for d in (1, 2, 3):
            exact = d * math.log(math.ceil(1 / eps))
            assert float(covers.t9(1, 1, eps, d)) == pytest.approx(exact)


def test_zero_cost_once_the_tolerance_covers_the_class() -> None:
    for eps in (1.0, 1.5):
        assert covers.t1_sharp(1, 1, eps, 5) == 0 == covers.t1_closed(1, 1, eps, 5)
        assert covers.t2_lattice(1, 1, eps, 3, 5, 1.2) == 0 == covers.t2_closed(1, 1, eps, 3, 5)
        for lemma in (covers.t3, covers.t3_half, covers.t3_sparse, covers.t4, covers.t4r):
            assert lemma(1, 1, eps, 3, 4) == 0
        assert covers.t9(1, 1, eps, 4) == 0 == covers.t5(1, 1, eps, 3, 4, 2)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 2), (3, 2), (1, 3)])
def test_volumes(d: int, k: int) -> None:
    """The closed volumes of the operator, (2,1) and l2 balls, by sampling the cube."""
    rng = np.random.default_rng(11)
    size = 200_000
    w = rng.uniform(-1, 1, (size, d, k))
    inside = {
        "op": (np.linalg.norm(w, 2, axis=(1, 2)) <= 1, covers.log_vol_op(d, k)),
        "21": (l21(w) <= 1, covers.log_vol_21(d, k)),
        "F": (l2(w) <= 1, covers.log_ball(d * k)),
        "11": (l11(w) <= 1, covers.t4o_offset("11", d, k)),
    }
    for name, (hit, log_volume) in inside.items():
        log = log_volume
        if name == "11":
            log = log + covers.log_vol_op(d, k) - d * k * covers.MP.log(covers.op_scale("11", d, k))
        p = float(covers.MP.exp(log)) / 2 ** (d * k)
        assert abs(float(hit.mean()) - p) <= 6 * math.sqrt(p / size) * (p < 1) + 1e-12


def test_offsets_of_the_volume_bounds() -> None:
    """R of T4v is close to (k-1)/2 log 2; R' of the operator form is below 0.46 per entry."""
    for d, k in ((200, 3), (50, 50), (768, 64)):
        stirling = (k - 1) / 2 * math.log(2)
        assert float(covers.t4v_offset(d, k)) == pytest.approx(stirling, rel=0.06)
        for norm in ("F", "21"):
            assert 0 <= covers.t4o_offset(norm, d, k) <= 0.46 * d * k
    case = (1, 1, 0.001, 64, 64)
    assert covers.t4o(*case, "21") < covers.t4v(*case) < covers.t4(*case)
