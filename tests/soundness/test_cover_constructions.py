"""The constructions in the proofs of T1-T5 and T9, run on random and on worst-case inputs, against the counts claimed.

What a construction uses up (steps, units, centres, ranks, cells) is counted exactly, and the package's log-count may
not be below it, nor a tolerance be missed. Each check takes the claim, so that a smaller one can be shown to fail it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import Kind, Points, Target
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.base import random_cover
from boundcalc.statements.weights import matrix_norms
from boundcalc.testing._drawing import Array
from tests.soundness.network import spectral

SLACK = 1 + 1e-9  # rounding of the float constructions, not of the bounds
ROOM = 1e-9
Scale = Callable[[float], float]
BUDGETS = {"T1": Budget(fro=1.0), "T2": Budget(two_one=1.0), "T3": Budget(one_one=1.0)}


def subject(d: int, k: int, budget: Budget, kind: Kind = "map") -> Target:
    """A d x k target on points of radius 1."""
    norms = matrix_norms(FLOAT, budget, d, k)
    assert norms is not None
    return Target(kind, d, k, 1.0, norms, Points(1))


def claim(lemma: str, y: float, d: int = 1, k: int = 1, n: int = 1, *, kind: Kind = "map") -> float:
    """Log-count at eps = reach/y, with the optimiser's parameters (0 once y <= 1), of a budget of 1."""
    if y <= 1:
        return 0.0
    rule, target = LEMMAS[lemma], subject(d, k, BUDGETS.get(lemma, Budget(op=1.0)), kind)
    return rule.sharp(FLOAT, y, target, n, rule.params(math.log(y), target, n))


def below(needed: float, claimed: float, what: str) -> list[str]:
    return [f"{what}: {needed} codes (log), {claimed} claimed"] if needed > claimed + ROOM * (1 + needed) else []


@cache
def log_lattice(n: int, s: int) -> float:
    """Log of the number of integer vectors of length n with l1 norm at most s, exactly."""
    return math.log(sum(2**i * math.comb(n, i) * math.comb(s, i) for i in range(min(n, s) + 1)))


# ---------------------------------------------------------------- T1 and T2


class LinearCase(NamedTuple):
    """Points, a matrix that uses its budget, and how much finer than the class the tolerance is."""

    points: Array
    matrix: Array
    y: float

    @property
    def b(self) -> float:
        return float(np.linalg.norm(self.points, axis=1).max()) * (1 + 1e-12)

    @property
    def columns(self) -> Array:
        """The lengths of the columns."""
        return np.linalg.norm(self.matrix, axis=0) * (1 + 1e-12)


def random_points(rng: np.random.Generator) -> Array:
    """Points of many shapes: generic, clustered, collinear, orthonormal, with opposite pairs."""
    n, d = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    x = rng.standard_normal((n, d))
    match rng.integers(5):
        case 1:
            x = x[:1] + 0.05 * rng.standard_normal((n, d))
        case 2:
            x = rng.standard_normal((n, 1)) * x[:1]
        case 3:
            x = np.eye(max(n, d))
        case 4:
            x = np.concatenate([x, -x * rng.uniform(0.2, 1)])
    return x / np.linalg.norm(x, axis=1).max() * rng.uniform(0.3, 3)


def linear_cases(seed: int, number: int, widest: int) -> Iterator[LinearCase]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        x, k = random_points(rng), int(rng.integers(1, widest + 1))
        w = rng.standard_normal((x.shape[1], k))
        w /= np.linalg.norm(w, axis=0)
        match rng.integers(4):
            case 1:  # norms just above a level: the largest waste of tolerance
                w *= 1.2 ** -np.arange(k) * (1 + 1e-9)
            case 2:
                w *= rng.exponential(size=k) ** 4 * rng.integers(0, 2, k) + 1e-6
            case 3:
                w *= rng.integers(0, 2, w.shape)
                w[0] += 1e-3
        yield LinearCase(x, w, math.sqrt(rng.uniform(1.01, 60)))
    for n, k in itertools.product((1, 4, 9, 25, 50), (1, 2, 5, 12)):  # orthonormal points: every step is needed
        for a in (1.01, n * (1 + 1e-7), 1.21 * k, n * k * 1.1, n * k * k * 0.99):
            if a > 1 and k <= widest:
                yield LinearCase(np.eye(n), np.ones((n, k)) / math.sqrt(n), math.sqrt(a))


def perceptron(points: Array, w: Array, tolerance: float, b: float, *, lazy: bool) -> tuple[Array, int]:
    """Net signed counts and number of steps; `lazy` always picks the least violated point."""
    counts, steps, step = np.zeros(len(points)), 0, tolerance / b**2
    residual, gram = points @ w, points @ points.T
    while steps < 10_000 and (wrong := np.flatnonzero(np.abs(residual) > tolerance)).size:
        size = np.abs(residual[wrong])
        i = int(wrong[size.argmin() if lazy else size.argmax()])
        sign = 1 if residual[i] > 0 else -1
        counts[i] += sign
        residual = residual - step * sign * gram[i]
        steps += 1
    return counts, steps


def linear_failures(lemma: str, number: int, factor: float = 1.0) -> list[str]:
    """Units over (column, point) that perceptrons take, against the claim times a factor; and missed tolerances.

    By T2 the code of the proof also has the levels of the columns that take units, which set their tolerances.
    """
    failures: list[str] = []
    for case, lazy in itertools.product(linear_cases(1, number, 1 if lemma == "T1" else 8), (False, True)):
        (points, matrix, y), b, k = case, case.b, len(case.columns)
        n, budget = len(points), case.columns.sum()
        rho = 1 + 1 / math.log(2 * n * k + 1)
        top = max(0, math.ceil(1 + 2 * math.log(y) / math.log(rho) - 1e-12))
        level = np.maximum(0, np.ceil(-np.log(np.maximum(case.columns / budget, 1e-300)) / math.log(rho) - 1e-12))
        tolerances = b * budget / y * rho ** (-level / 2)
        taken = [
            perceptron(points, matrix[:, j], tolerance, b, lazy=lazy ^ bool(j % 2))
            for j, tolerance in enumerate(tolerances)
        ]
        net = np.stack([points.T @ counts for counts, _ in taken], axis=1) * tolerances / b**2
        units, active = sum(steps for _, steps in taken), np.array([steps > 0 for _, steps in taken])
        if (level[active] > top).any():
            failures.append(f"active column at level {level[active].max()} > {top}")
        code = sum(math.log(rho / (rho - 1)) + (top - level[active]) * math.log(rho))
        levels = 0.0 if lemma == "T1" else min(code, active.sum() * math.log(top + 1))
        failures += below(log_lattice(n * k, units) + levels, factor * claim(lemma, y, len(matrix), k, n), lemma)
        error = float(np.linalg.norm(points @ (matrix - net), axis=1).max())
        failures += [f"error {error} above {b * budget / y}"] if error > b * budget / y * SLACK else []
    return failures


@pytest.mark.parametrize("lemma", ["T1", "T2"])
def test_perceptrons_fit_the_claims(lemma: str) -> None:
    assert linear_failures(lemma, 600) == []
    assert linear_failures(lemma, 0, 0.5)


# ---------------------------------------------------------------- T3


def sparse_cases() -> Iterator[tuple[Array, float]]:
    """Nonnegative vectors of l1 norm at most one, and a = 1/tolerance^2."""
    rng = np.random.default_rng(4)
    for _ in range(120):
        n = int(rng.integers(1, 24))
        w = rng.exponential(size=n) ** rng.choice([0.1, 1, 3]) * (rng.random(n) < rng.random())
        w[0] += 1e-3
        yield w * rng.choice([1.0, 1.0, 0.7]) / w.sum(), float(rng.uniform(1.01, 40))
    for a in (1.5, 4.0, 9.9, 30.0):  # entries near half a unit, one unit, and few large entries
        for n in {1, 2, 3, *(int(a * f) for f in (0.25, 0.5, 0.51, 0.9, 1, 1.1, 2, 2.5))} & set(range(1, 25)):
            yield np.full(n, 1 / n), a


def round_by_parts(w: Array, s: int) -> Array:
    """Towards zero, then up where it helps most, within s units."""
    down = np.floor(s * w + 1e-12)
    part = s * w - down
    order = np.argsort(-part)[: s - int(down.sum())]
    down[order[part[order] > 0.5]] += 1
    return down


def t3_failures(factor: float = 1.0) -> list[str]:
    """As many units as the claim pays for must round every vector within the tolerance."""
    failures: list[str] = []
    for w, a in sparse_cases():
        n, claimed = len(w), factor * claim("T3", math.sqrt(a), len(w), 1) + ROOM
        units = max((s for s in range(61) if log_lattice(n, s) <= claimed), default=0)
        rounded = round_by_parts(w, units) / units if units else 0 * w
        if float(np.linalg.norm(w - rounded)) > SLACK / math.sqrt(a):
            failures.append(f"T3: {n} entries, a = {a}: {units} units are not enough")
    return failures


def test_t3_roundings_fit_the_claim() -> None:
    assert t3_failures() == []
    assert t3_failures(1 / 4)


# ---------------------------------------------------------------- T4 and its relatives


def uniform_ball(rng: np.random.Generator, d: int, k: int, size: int) -> Array:
    """Uniform points of the spectral unit ball of R^(d x k)."""
    kept: list[Array] = []
    while sum(map(len, kept)) < size:
        w = rng.uniform(-1, 1, (size, d, k))
        kept.append(w[spectral(w) <= 1])
    return np.concatenate(kept)[:size]


def targets(rng: np.random.Generator, d: int, k: int, size: int) -> Array:
    """Interior and boundary points of the unit ball, with its extreme points."""
    w = uniform_ball(rng, d, k, size)
    edge = w[: size // 2] / spectral(w[: size // 2])[:, None, None]
    corners = np.concatenate([sign * np.eye(d * k).reshape(-1, d, k) for sign in (1, -1)])
    turns = np.linalg.qr(rng.standard_normal((60, max(d, k), max(d, k))))[0][:, :d, :k]
    return np.concatenate([w, edge, corners, turns])


@pytest.mark.parametrize(("d", "k", "x", "t"), [(1, 1, 0.05, 0.5), (2, 1, 0.1, 0.5), (2, 2, 0.5, 0.25)])
def test_as_many_random_centres_as_claimed_reach_every_target(d: int, k: int, x: float, t: float) -> None:
    """Centres of the statement, whose net has the share t of the tolerance x; a hundredth of them misses some."""
    rng = np.random.default_rng(5)
    number = int(math.exp(random_cover(FLOAT, float(d * k), 1 / x, t)))
    centres, aims = (1 + (1 - t) * x) * uniform_ball(rng, d, k, number), targets(rng, d, k, 1500)
    for share, reached in ((1.0, True), (0.01, False)):
        some = centres[: int(number * share)]
        chunks = np.array_split(aims, max(1, len(aims) * len(some) // 2_000_000))
        far = max(float(spectral(chunk[:, None] - some).min(axis=1).max()) for chunk in chunks)
        assert (far <= x) == reached


# ---------------------------------------------------------------- T5


def separated(points: Array, distance: float) -> Array:
    """A greedy maximal subset with pairwise distances above `distance`."""
    chosen, left = points[:1], points
    while len(left := left[spectral(left - chosen[-1]) > distance]):
        chosen = np.concatenate([chosen, left[:1]])
    return chosen


def rank_one_failures(eps: float, *, factor: float = 1.0) -> list[str]:
    """Rank-one 2 x 2 matrices W = PQ, |P|, |Q| <= 1, by greedy nets of the two factors, against the claim of T5.

    `factor` enlarges the two radii without changing the tolerance.
    """
    rng = np.random.default_rng(7)
    nets = [separated(uniform_ball(rng, 2, 1, 20_000), 0.97 * factor * eps / 2) for _ in range(2)]
    claimed = LEMMAS["T5"].closed(FLOAT, 1 / eps, subject(2, 2, Budget(op=1.0, rank=1)), 1)
    failures = below(sum(math.log(len(net)) for net in nets), claimed, "T5")
    p, q = targets(rng, 2, 1, 1500), targets(rng, 2, 1, 1500)
    p1, q1 = (net[spectral(z[:, None] - net[None]).argmin(axis=1)] for z, net in zip((p, q), nets, strict=True))
    error = spectral(p @ np.swapaxes(q, 1, 2) - p1 @ np.swapaxes(q1, 1, 2))
    return failures + [f"error {e:.4g}" for e in error[error > eps * SLACK]]


def test_t5_products_of_covers_fit_the_claim() -> None:
    for eps in (0.3, 0.6):
        assert rank_one_failures(eps) == []
    assert rank_one_failures(0.3, factor=2.0)


# ---------------------------------------------------------------- T9


def test_t9_cells() -> None:
    """Gains of [-1, 1] rounded to the middle of one of n cells are off by 1/n at the edges; a cell less is too few."""
    for y in (1.0, 1.5, 2.0, 7.01, *np.random.default_rng(9).uniform(1, 30, 500)):
        cells = round(math.exp(claim("T9", float(y), kind="gain")))
        assert 1 / cells <= SLACK / y
        assert cells == 1 or y.is_integer() or 1 / (cells - 1) > SLACK / y
