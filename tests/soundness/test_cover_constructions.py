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
from numpy.typing import NDArray

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import Kind, Points, Target
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.base import random_cover
from boundcalc.statements.weights import matrix_norms

Array = NDArray[np.float64]
SLACK = 1 + 1e-9  # rounding of the float constructions, not of the bounds
ROOM = 1e-9
Scale = Callable[[float], float]
BUDGETS = {
    "T1": Budget(fro=1.0),
    "T2": Budget(two_one=1.0),
    "T3": Budget(one_one=1.0),
}


def subject(lemma: str, d: int, k: int, norms: Budget | None = None, kind: Kind = "map") -> Target:
    """A d x k target on points of radius 1, its budget 1 in the lemma's norm unless others are given."""
    known = matrix_norms(FLOAT, norms or BUDGETS.get(lemma, Budget(op=1.0)), d, k)
    assert known is not None
    return Target(kind, d, k, 1.0, known, Points(1))


def claim(lemma: str, y: float, d: int = 1, k: int = 1, n: int = 1, *, kind: Kind = "map") -> float:
    """Log-count at eps = reach/y, with the optimiser's parameters (0 once y <= 1)."""
    if y <= 1:
        return 0.0
    rule, target = LEMMAS[lemma], subject(lemma, d, k, kind=kind)
    return rule.sharp(FLOAT, y, target, n, rule.params(math.log(y), target, n))


def honest(value: float) -> float:
    return value


def below(needed: float, claimed: float, what: str) -> list[str]:
    return [f"{what}: {needed} codes (log), {claimed} claimed"] if needed > claimed + ROOM * (1 + needed) else []


@cache
def log_lattice(n: int, s: int) -> float:
    """Log of the number of integer vectors of length n with l1 norm at most s, exactly."""
    return math.log(sum(2**i * math.comb(n, i) * math.comb(s, i) for i in range(min(n, s) + 1)))


class LinearCase(NamedTuple):
    """Points, a matrix within the budget, and the tolerance."""

    points: Array
    matrix: Array
    b: float
    budget: float
    eps: float


def largest_row(points: Array) -> float:
    return float(np.linalg.norm(points, axis=1).max()) * (1 + 1e-12)


def random_points(rng: np.random.Generator) -> Array:
    """Points of many shapes: generic, clustered, collinear, orthonormal, with opposite pairs."""
    n, d = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    kind = rng.integers(5)
    x = rng.standard_normal((n, d))
    if kind == 1:
        x = x[:1] + 0.05 * rng.standard_normal((n, d))
    elif kind == 2:
        x = rng.standard_normal((n, 1)) * x[:1]
    elif kind == 3:
        x = np.eye(max(n, d))
    elif kind == 4:
        x = np.concatenate([x, -x * rng.uniform(0.2, 1)])
    return x / np.linalg.norm(x, axis=1).max() * rng.uniform(0.3, 3)


# ---------------------------------------------------------------- T1 and T2


def perceptron(points: Array, w: Array, tolerance: float, b: float, *, lazy: bool) -> tuple[NDArray[np.int64], int]:
    """Net signed counts and number of steps; `lazy` always picks the least violated point."""
    counts, steps, step = np.zeros(len(points), dtype=np.int64), 0, tolerance / b**2
    residual, gram = points @ w, points @ points.T
    while steps < 10_000 and (wrong := np.flatnonzero(np.abs(residual) > tolerance)).size:
        size = np.abs(residual[wrong])
        i = int(wrong[size.argmin() if lazy else size.argmax()])
        sign = 1 if residual[i] > 0 else -1
        counts[i] += sign
        residual = residual - step * sign * gram[i]
        steps += 1
    return counts, steps


def by_columns(case: LinearCase, tolerances: Array, lazy: bool = False) -> tuple[Array, int, NDArray[np.bool_]]:
    """What perceptrons make of the matrix column by column, their units in all, and which columns took any."""
    v, units, active = np.zeros_like(case.matrix), 0, list[bool]()
    for j, tolerance in enumerate(tolerances):
        counts, steps = perceptron(case.points, case.matrix[:, j], tolerance, case.b, lazy=lazy ^ bool(j % 2))
        v[:, j] = tolerance / case.b**2 * (counts @ case.points)
        units += max(steps, int(np.abs(counts).sum()))
        active.append(steps > 0)
    return v, units, np.array(active)


def missed(case: LinearCase, v: Array) -> list[str]:
    """Where the tolerance is not met."""
    error = float(np.linalg.norm(case.points @ (case.matrix - v), axis=1).max())
    return [f"error {error} above {case.eps}"] if error > case.eps * SLACK else []


def t1_cases(seed: int, number: int) -> Iterator[LinearCase]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        x = random_points(rng)
        w = rng.standard_normal((x.shape[1], 1)) * rng.integers(0, 2, (x.shape[1], 1))
        w[0] += 1e-3
        w *= rng.uniform(0.1, 3) / np.linalg.norm(w)
        b, budget = largest_row(x), float(np.linalg.norm(w))
        yield LinearCase(x, w, b, budget, b * budget / math.sqrt(rng.uniform(1.01, 60)))
    for n in (1, 2, 3, 7, 20, 50):  # orthonormal points: every step count is needed
        w = np.full((n, 1), 1 + 1e-7)
        yield LinearCase(np.eye(n), w, 1.0, float(np.linalg.norm(w)) * (1 + 1e-12), 1.0)


def t1_failures(cases: Iterator[LinearCase], scale: Scale = honest) -> list[str]:
    """Integer vectors with as many units as the perceptron takes, against the claim."""
    failures: list[str] = []
    for case, lazy in itertools.product(cases, (False, True)):
        n = len(case.points)
        v, units, _ = by_columns(case, np.array([case.eps]), lazy)
        claimed = claim("T1", case.b * case.budget / case.eps, len(case.matrix), 1, n)
        failures += below(log_lattice(n, units), scale(claimed), "T1") + missed(case, v)
    return failures


def t2_cases(seed: int, number: int) -> Iterator[LinearCase]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        x = random_points(rng)
        k = int(rng.integers(1, 9))
        w = rng.standard_normal((x.shape[1], k))
        w /= np.linalg.norm(w, axis=0)
        kind = rng.integers(3)
        if kind == 1:  # norms just above a level: the largest waste of tolerance
            w *= 1.2 ** -np.arange(k) * (1 + 1e-9)
        elif kind == 2:
            w *= rng.exponential(size=k) ** 4 * rng.integers(0, 2, k) + 1e-6
        b, budget = largest_row(x), float(np.linalg.norm(w, axis=0).sum()) * (1 + 1e-12)
        yield LinearCase(x, w, b, budget, b * budget / math.sqrt(rng.uniform(1.01, 40)))
    for n, k in itertools.product((1, 4, 9, 25), (1, 2, 5, 12)):
        w = np.ones((n, k)) / math.sqrt(n)
        for a in (1.01, 1.21 * k, n * k * 1.1, n * k * k * 0.99):
            if a > 1:
                yield LinearCase(np.eye(n), w, 1.0, k * (1 + 1e-12), k / math.sqrt(a))


def t2_failures(cases: Iterator[LinearCase], scale: Scale = honest) -> list[str]:
    """Units over (column, point), the levels of the active columns in the code of the proof, and the tolerance."""
    failures: list[str] = []
    for case in cases:
        n, columns, y = len(case.points), case.matrix.shape[1], case.b * case.budget / case.eps
        rho = 1 + 1 / math.log(2 * n * columns + 1)
        top = max(0, math.ceil(1 + 2 * math.log(y) / math.log(rho) - 1e-12))
        share = np.linalg.norm(case.matrix, axis=0) / case.budget
        level = np.maximum(0, np.ceil(-np.log(np.maximum(share, 1e-300)) / math.log(rho) - 1e-12))
        v, units, active = by_columns(case, case.eps * rho ** (-level / 2))
        if (level[active] > top).any():
            failures.append(f"active column at level {level[active].max()} > {top}")
        code = sum(math.log(rho / (rho - 1)) + (top - level[active]) * math.log(rho))
        needed = log_lattice(n * columns, units) + min(code, active.sum() * math.log(top + 1))
        failures += below(needed, scale(claim("T2", y, len(case.matrix), columns, n)), "T2") + missed(case, v)
    return failures


def test_perceptrons_fit_the_claims_of_t1_and_t2() -> None:
    assert t1_failures(t1_cases(1, 800)) == []
    assert t1_failures(t1_cases(1, 0), lambda value: value / 2)
    assert t2_failures(t2_cases(3, 800)) == []
    assert t2_failures(t2_cases(3, 0), lambda value: value / 2)


# ---------------------------------------------------------------- T3


class SparseCase(NamedTuple):
    """A nonnegative vector of l1 norm at most one, and a = 1/tolerance^2."""

    w: Array
    a: float


def t3_cases(seed: int, number: int) -> Iterator[SparseCase]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        n = int(rng.integers(1, 200))
        w = rng.exponential(size=n) ** rng.choice([0.1, 1, 3]) * (rng.random(n) < rng.random())
        w[0] += 1e-3
        w *= rng.choice([1.0, 1.0, 0.7]) / w.sum()
        yield SparseCase(w, float(rng.uniform(1.01, 40)))
    for a in (1.5, 4.0, 9.9, 30.0):  # entries near half a unit, one unit, and few large entries
        for n in {1, 2, 3, *(int(a * f) for f in (0.25, 0.5, 0.51, 0.9, 1, 1.1, 2, 2.5))}:
            yield SparseCase(np.full(max(n, 1), 1 / max(n, 1)), a)


def round_by_parts(w: Array, s: int) -> NDArray[np.int64]:
    """Towards zero, then up where it helps most, within s units."""
    down = np.floor(s * w + 1e-12).astype(np.int64)
    part = s * w - down
    order = np.argsort(-part)[: s - int(down.sum())]
    down[order[part[order] > 0.5]] += 1
    return down


def t3_failures(cases: Iterator[SparseCase], scale: Scale) -> list[str]:
    """As many units as the claim pays for must round every vector within the tolerance."""
    failures: list[str] = []
    for w, a in cases:
        n = min(len(w), 24)
        v = w[:n] / max(1.0, float(w[:n].sum()))
        claimed = scale(claim("T3", math.sqrt(a), n, 1)) + ROOM
        units = max((s for s in range(61) if log_lattice(n, s) <= claimed), default=0)
        rounded = round_by_parts(v, units) / units if units else 0 * v
        if float(np.linalg.norm(v - rounded)) > SLACK / math.sqrt(a):
            failures.append(f"T3: {n} entries, a = {a}: {units} units are not enough")
    return failures


def test_t3_roundings_fit_the_claim() -> None:
    assert t3_failures(t3_cases(4, 120), honest) == []
    assert t3_failures(t3_cases(4, 120), lambda value: value / 4)


# ---------------------------------------------------------------- T4 and its relatives

Norm = Callable[[Array], Array]


def norm_op(w: Array) -> Array:
    """Operator norm of a stack of d x 1, 1 x k or 2 x 2 matrices, in closed form."""
    square = (w**2).sum(axis=(-2, -1))
    if 1 in w.shape[-2:]:
        return np.sqrt(square)
    det = w[..., 0, 0] * w[..., 1, 1] - w[..., 0, 1] * w[..., 1, 0]
    gap = np.sqrt(np.maximum(square**2 - 4 * det**2, 0))
    return np.sqrt((square + gap) / 2)


def uniform_ball(rng: np.random.Generator, d: int, k: int, size: int) -> Array:
    """Uniform points of the spectral unit ball of R^(d x k)."""
    kept: list[Array] = []
    while sum(map(len, kept)) < size:
        w = rng.uniform(-1, 1, (size, d, k))
        kept.append(w[norm_op(w) <= 1])
    return np.concatenate(kept)[:size]


def targets(rng: np.random.Generator, d: int, k: int, size: int) -> Array:
    """Interior and boundary points of the unit ball, with its extreme points."""
    w = uniform_ball(rng, d, k, size)
    edge = w[: size // 2] / norm_op(w[: size // 2])[:, None, None]
    corners = np.zeros((2 * d * k, d, k))
    for i, (r, c) in enumerate(itertools.product(range(d), range(k))):
        corners[2 * i, r, c], corners[2 * i + 1, r, c] = 1, -1
    extra = [w, edge, corners]
    if d == k == 2:
        t = np.linspace(0, 2 * np.pi, 60, endpoint=False)
        c, s = np.cos(t), np.sin(t)
        extra += [np.stack([np.stack([c, s], -1), np.stack([-f * s, f * c], -1)], -2)
                  for f in (1, -1)]  # fmt: skip
    return np.concatenate(extra)


def distance_to(centres: Array, points: Array, metric: Norm) -> Array:
    """Distance of each point to its nearest centre."""
    chunks = np.array_split(points, max(1, len(points) * len(centres) // 2_000_000))
    return np.concatenate([metric(c[:, None] - centres[None]).min(axis=1) for c in chunks])


class VolumeCase(NamedTuple):
    """The spectral ball of d x k matrices, the tolerance, and the share of it for the net."""

    d: int
    k: int
    x: float
    t: float

    def log_count(self) -> float:
        """Log of the number of random centres claimed."""
        return random_cover(FLOAT, float(self.d * self.k), 1 / self.x, self.t)


VOLUME_CASES = [VolumeCase(1, 1, 0.05, 0.5), VolumeCase(2, 1, 0.1, 0.5), VolumeCase(2, 2, 0.5, 0.25)]


def random_cover_failures(case: VolumeCase, seed: int, factor: float = 1.0) -> list[str]:
    """Points missed by the random centres of the statement (their number times `factor`)."""
    rng = np.random.default_rng(seed)
    centres = int(math.exp(case.log_count()) * factor)
    drawn = (1 + (1 - case.t) * case.x) * uniform_ball(rng, case.d, case.k, centres)
    aims = targets(rng, case.d, case.k, 1500)
    far = distance_to(drawn, aims, norm_op)
    return [f"missed by {v - case.x:.3g}" for v in far[far > case.x]]


@pytest.mark.parametrize("case", VOLUME_CASES, ids=str)
def test_as_many_random_centres_as_claimed_reach_every_target(case: VolumeCase) -> None:
    assert random_cover_failures(case, 5) == []
    assert random_cover_failures(case, 5, factor=0.01)


# ---------------------------------------------------------------- T5


def separated(points: Array, distance: float, metric: Norm) -> Array:
    """A greedy maximal subset with pairwise distances above `distance`."""
    chosen = points[:1]
    left = points
    while True:
        left = left[metric(left - chosen[-1]) > distance]
        if not len(left):
            return chosen
        chosen = np.concatenate([chosen, left[:1]])


def rank_one_failures(eps: float, seed: int, *, factor: float = 1.0) -> list[str]:
    """Rank-one 2 x 2 matrices W = PQ, |P|, |Q| <= 1, by greedy nets of the two factors, against the claim of T5.

    `factor` enlarges the two radii without changing the tolerance.
    """
    rng = np.random.default_rng(seed)
    nets = [separated(uniform_ball(rng, 2, 1, 20_000), 0.97 * factor * eps / 2, norm_op) for _ in range(2)]
    claimed = LEMMAS["T5"].closed(FLOAT, 1 / eps, subject("T5", 2, 2, Budget(op=1.0, rank=1)), 1)
    failures = below(sum(math.log(len(net)) for net in nets), claimed, "T5")
    p, q = targets(rng, 2, 1, 1500), targets(rng, 2, 1, 1500)
    p1, q1 = (net[norm_op(z[:, None] - net[None]).argmin(axis=1)] for z, net in zip((p, q), nets, strict=True))
    error = norm_op(p @ np.swapaxes(q, 1, 2) - p1 @ np.swapaxes(q1, 1, 2))
    return failures + [f"error {e:.4g}" for e in error[error > eps * SLACK]]


def test_t5_products_of_covers_fit_the_claim() -> None:
    for eps in (0.3, 0.6):
        assert rank_one_failures(eps, 7) == []
    assert rank_one_failures(0.3, 7, factor=2.0)


# ---------------------------------------------------------------- T9


def test_t9_cells() -> None:
    """Gains of [-1, 1] rounded to the middle of one of n cells are off by 1/n at the edges; a cell less is too few."""
    for y in (1.0, 1.5, 2.0, 7.01, *np.random.default_rng(9).uniform(1, 30, 500)):
        cells = round(math.exp(claim("T9", float(y), kind="gain")))
        assert 1 / cells <= SLACK / y
        assert cells == 1 or y.is_integer() or 1 / (cells - 1) > SLACK / y
