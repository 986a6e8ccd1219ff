"""The constructions behind the covering statements, run on random and on worst-case inputs.

Each checker runs the construction of a proof with the constant it is given and returns the list of
failures (too many steps or codes, or a missed tolerance). With the stated constant the list must be
empty; with a constant below the truth it must not be (negative control).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle import covers_mp as covers

Array = NDArray[np.float64]
SLACK = 1 + 1e-9  # rounding of the float constructions, not of the bounds


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


# ---------------------------------------------------------------- T1


def perceptron(
    points: Array, w: Array, tolerance: float, b: float, *, lazy: bool, cap: int
) -> tuple[NDArray[np.int64], int]:
    """Net signed counts and number of steps; `lazy` always picks the least violated point."""
    counts = np.zeros(len(points), dtype=np.int64)
    step = tolerance / b**2
    steps = 0
    residual = points @ w
    gram = points @ points.T
    while steps < cap:
        wrong = np.flatnonzero(np.abs(residual) > tolerance)
        if wrong.size == 0:
            break
        size = np.abs(residual[wrong])
        i = int(wrong[size.argmin() if lazy else size.argmax()])
        sign = 1 if residual[i] > 0 else -1
        counts[i] += sign
        residual = residual - step * sign * gram[i]
        steps += 1
    return counts, steps


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


def t1_failures(cases: Iterator[LinearCase], limit: Callable[[float, float, float], float]) -> list[str]:
    failures: list[str] = []
    for case, lazy in itertools.product(cases, (False, True)):
        allowed = limit(case.b, case.budget, case.eps)
        w = case.matrix[:, 0]
        counts, steps = perceptron(case.points, w, case.eps, case.b, lazy=lazy, cap=10_000)
        v = case.eps / case.b**2 * (counts @ case.points)
        error = float(np.abs(case.points @ (w - v)).max())
        if steps > allowed or np.abs(counts).sum() > allowed:
            failures.append(f"{steps} steps, {allowed} allowed")
        if error > case.eps * SLACK:
            failures.append(f"error {error} above {case.eps}")
    return failures


def test_t1_perceptron_never_exceeds_its_steps() -> None:
    assert t1_failures(t1_cases(1, 1500), covers.t1_steps) == []


def test_t1_checker_rejects_fewer_steps() -> None:
    assert t1_failures(t1_cases(1, 0), lambda *a: covers.t1_steps(*a) / 2)
    assert t1_failures(t1_cases(1, 0), lambda *a: covers.t1_steps(*a) - 1)


def test_t1_codes_of_a_whole_disc_fit_the_count() -> None:
    """All w of a fine grid of the disc use at most D(N, s) different codes."""
    rng = np.random.default_rng(2)
    grid = np.linspace(-1, 1, 81)
    disc = [np.array(p) for p in itertools.product(grid, grid) if math.hypot(*p) <= 1]
    for x in (np.eye(2), rng.standard_normal((3, 2))):
        x = x / np.linalg.norm(x, axis=1).max()
        b = largest_row(x)
        eps = b / math.sqrt(6.5)
        codes = {tuple(perceptron(x, w, eps, b, lazy=True, cap=10_000)[0].tolist()) for w in disc}
        assert math.log(len(codes)) <= covers.t1_sharp(b, 1.0, eps, len(x))


def test_integer_vectors_are_counted_exactly_and_bounded_in_closed_form() -> None:
    for n, s in itertools.product(range(1, 5), range(6)):
        box = itertools.product(range(-s, s + 1), repeat=n)
        assert covers.lattice_count(n, s) == sum(sum(map(abs, v)) <= s for v in box)
    sizes = (1, 2, 3, 5, 10, 33, 100, 1000)
    for n, s in itertools.product(sizes, sizes):
        exact, binomial = covers.log_lattice(n, s), covers.log_binomial(2 * n, s)
        closed = min(covers.log_lattice_asinh(n, s), covers.log_lattice_amgm(n, s))
        assert exact <= closed * (1 + covers.MP.mpf("1e-40"))
        assert exact <= binomial * (1 + covers.MP.mpf("1e-40"))
        assert binomial <= covers.log_binomial_closed(2 * n, s)
        assert binomial <= covers.log_binomial_stirling(2 * n, s)


# ---------------------------------------------------------------- T2


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


def t2_failures(cases: Iterator[LinearCase], rho: Fraction, factor: float = 1.0) -> list[str]:
    """Steps, levels, code lengths and tolerance; `factor` shrinks the allowed steps."""
    failures: list[str] = []
    r = float(rho)
    for case in cases:
        b, budget, eps = case.b, case.budget, case.eps
        allowed = covers.t2_steps(b, budget, eps, rho) * factor
        top = covers.t2_levels(b, budget, eps, rho) - 1
        share = np.linalg.norm(case.matrix, axis=0) / budget
        v = np.zeros_like(case.matrix)
        total, net, code, active = 0, 0, 0.0, 0
        for j in np.flatnonzero(share > 0):
            level = max(0, math.ceil(-math.log(share[j]) / math.log(r) - 1e-12))
            tolerance = eps * r ** (-level / 2)
            counts, steps = perceptron(case.points, case.matrix[:, j], tolerance, b, lazy=bool(j % 2), cap=10_000)
            v[:, j] = tolerance / b**2 * (counts @ case.points)
            total, net = total + steps, net + int(np.abs(counts).sum())
            if steps:
                active += 1
                code += math.log(r / (r - 1)) + (top - level) * math.log(r)
                if level > top:
                    failures.append(f"active column at level {level} > {top}")
        if max(total, net) > allowed:
            failures.append(f"{total} steps, {allowed} allowed")
        a = float(covers.ratio(b, budget, eps))
        if rho <= Fraction(158, 100) and code > r**2 * a * math.log(r / (r - 1)) * SLACK:
            failures.append("code longer than rho^2 a log(rho/(rho-1))")
        if active:
            most = min(case.matrix.shape[1], covers.t2_steps(b, budget, eps, rho))
            length = most * (math.log(r / (r - 1)) + math.log(r**2 * a / most))
            if code > length * SLACK:
                failures.append("code longer than q (c0 + log(rho^2 a/q))")
        error = float(np.linalg.norm(case.points @ (case.matrix - v), axis=1).max())
        if error > eps * SLACK:
            failures.append(f"error {error} above {eps}")
    return failures


@pytest.mark.parametrize("rho", [Fraction(21, 20), Fraction(6, 5), Fraction(3, 2), Fraction(3)])
def test_t2_levels_steps_and_codes(rho: Fraction) -> None:
    assert t2_failures(t2_cases(3, 400), rho) == []


def test_t2_checker_rejects_half_the_steps() -> None:
    assert t2_failures(t2_cases(3, 0), Fraction(6, 5), factor=0.5)


def test_t2_forms_are_ordered() -> None:
    """Sharper counts are never above the closed form, the improved ones never above the stated."""
    for k, n, a in itertools.product((1, 3, 40), (1, 20, 1000), (1.5, 9.3, 80.0)):
        b, budget, eps = 1.0, 1.0, 1 / math.sqrt(a)
        rhos = [1.05, 1.1, 1.2, 1.35, 1.58]
        stated = [covers.t2_sharp(b, budget, eps, k, n, rho) for rho in rhos]
        lattice = [covers.t2_lattice(b, budget, eps, k, n, rho) for rho in rhos]
        assert all(y <= x for x, y in zip(stated, lattice, strict=True))
        for rho, value in zip(rhos, stated, strict=True):
            assert value <= covers.num(covers.ratio(b, budget, eps)) * covers.t2_lam_at(k, n, rho)
        assert covers.t2_lam_improved(k, n) < covers.t2_lam(k, n)


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


def round_by_draws(w: Array, s: int) -> NDArray[np.int64]:
    """Draws chosen one by one so that the conditional expectation of the error never grows."""
    total = np.zeros(len(w), dtype=np.int64)
    for j in range(1, s + 1):
        y = j * w - total
        i = int(np.abs(y).argmax())
        if abs(y[i]) > 0.5:
            total[i] += 1 if y[i] > 0 else -1
    return total


def round_by_parts(w: Array, s: int) -> NDArray[np.int64]:
    """Towards zero, then up where it helps most, within s units."""
    down = np.floor(s * w + 1e-12).astype(np.int64)
    part = s * w - down
    order = np.argsort(-part)[: s - int(down.sum())]
    down[order[part[order] > 0.5]] += 1
    return down


def round_by_weight(w: Array, units: float) -> NDArray[np.int64]:
    """Raise entries, best gain per weight first, until the squared error is at most units/2."""
    y, n = units * w, np.zeros(len(w), dtype=np.int64)
    while ((y - n) ** 2).sum() > units / 2 * SLACK:
        gain = 2 * (y - n) - 1
        cost = np.where(n == 0, 2.0, np.where(n == 1, 2 / 3, 1.0))
        n[int((gain / cost).argmax())] += 1
    return n


def t3_failures(
    cases: Iterator[SparseCase],
    units: Callable[[float], int],
    rounding: Callable[[Array, int], NDArray[np.int64]],
) -> list[str]:
    failures: list[str] = []
    for w, a in cases:
        s = units(1 / math.sqrt(a))
        n = rounding(w, s)
        if np.abs(n).sum() > s:
            failures.append("more units than allowed")
        if np.linalg.norm(w - n / s) > SLACK / math.sqrt(a):
            failures.append(f"n={len(w)}, a={a}, s={s}: tolerance missed")
    return failures


def t3_weight_failures(cases: Iterator[SparseCase], factor: float) -> list[str]:
    failures: list[str] = []
    for w, a in cases:
        n = round_by_weight(w, a / 2)
        weight = float(sum(covers.t3_weight(int(v)) for v in n))
        if weight > factor * float(covers.t3_sparse_budget(1, 1, 1 / math.sqrt(a))) * SLACK:
            failures.append(f"weight {weight}, a={a}")
    return failures


def test_t3_rounding() -> None:
    for units, rounding in (
        (covers.t3_draws, round_by_draws),
        (covers.t3_half_units, round_by_parts),
    ):
        assert t3_failures(t3_cases(4, 1500), lambda e, u=units: u(1, 1, e), rounding) == []
    assert t3_weight_failures(t3_cases(4, 1500), 1.0) == []


def test_t3_checkers_reject_fewer_units() -> None:
    for rounding in (round_by_draws, round_by_parts):
        assert t3_failures(t3_cases(4, 200), lambda e: max(1, math.ceil(e**-2 / 4)), rounding)
    assert t3_weight_failures(t3_cases(4, 200), 0.75)


def test_t3_forms_are_ordered() -> None:
    for a, d, k in ((1.7, 2, 3), (10.0, 20, 20), (100.0, 300, 40)):
        case = (1, 1, 1 / math.sqrt(a), d, k)
        assert covers.t3(*case) <= covers.t3_closed(*case)
        assert covers.t3_half(*case) <= covers.t3_lattice(*case) <= covers.t3(*case)
        if a > 5:
            assert covers.t3_sparse(*case) < covers.t3_half(*case)


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


def norm_21(w: Array) -> Array:
    return np.sqrt((w**2).sum(axis=-2)).sum(axis=-1)


def norm_f(w: Array) -> Array:
    return np.sqrt((w**2).sum(axis=(-2, -1)))


NORMS: dict[str, Norm] = {"op": norm_op, "21": norm_21, "F": norm_f}


def uniform_ball(rng: np.random.Generator, norm: str, d: int, k: int, size: int) -> Array:
    """Uniform points of the unit ball of a norm of R^(d x k)."""
    if norm == "21":
        w = rng.standard_normal((size, d, k))
        w *= rng.gamma(d, size=(size, 1, k)) / np.sqrt((w**2).sum(axis=1, keepdims=True))
        return w / (norm_21(w) + rng.exponential(size=size))[:, None, None]
    if norm == "F":
        w = rng.standard_normal((size, d, k))
        return w * (rng.random(size) ** (1 / (d * k)) / norm_f(w))[:, None, None]
    kept: list[Array] = []
    while sum(map(len, kept)) < size:
        w = rng.uniform(-1, 1, (size, d, k))
        kept.append(w[norm_op(w) <= 1])
    return np.concatenate(kept)[:size]


def targets(rng: np.random.Generator, norm: str, d: int, k: int, size: int) -> Array:
    """Interior and boundary points of the unit ball, with its extreme points."""
    w = uniform_ball(rng, norm, d, k, size)
    edge = w[: size // 2] / NORMS[norm](w[: size // 2])[:, None, None]
    corners = np.zeros((2 * d * k, d, k))
    for i, (r, c) in enumerate(itertools.product(range(d), range(k))):
        corners[2 * i, r, c], corners[2 * i + 1, r, c] = 1, -1
    extra = [w, edge, corners]
    if norm == "op" and d == k == 2:
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
    """A ball (norm), the metric it is covered in, its size, tolerance, and the dilation used."""

    norm: str
    metric: str
    d: int
    k: int
    x: float
    t: float

    @property
    def dilation(self) -> float:
        """The metric ball of radius h lies in the norm ball of radius dilation * h."""
        if self.norm == self.metric:
            return 1.0
        if self.metric == "F":
            return math.sqrt(self.k)
        return float(covers.op_scale(self.norm, self.d, self.k))

    def log_count(self) -> float:
        """The statement: log of the number of random centres."""
        if self.norm == "op":
            return float(covers.t4r_unit(self.d * self.k, self.x, self.t))
        if self.metric == "F":
            return float(covers.t4v_random(1, 1, self.x, self.d, self.k, self.t))
        return float(covers.t4o_random(1, 1, self.x, self.d, self.k, self.norm, self.t))


VOLUME_CASES = [
    VolumeCase("op", "op", 1, 1, 0.05, 0.5),
    VolumeCase("op", "op", 2, 1, 0.1, 0.5),
    VolumeCase("op", "op", 2, 2, 0.5, 0.25),
    VolumeCase("21", "F", 1, 2, 0.1, 0.5),
    VolumeCase("21", "F", 2, 2, 0.4, 0.25),
    VolumeCase("21", "op", 2, 2, 0.4, 0.25),
    VolumeCase("F", "op", 2, 2, 0.4, 0.25),
]


def random_cover_failures(case: VolumeCase, seed: int, factor: float = 1.0) -> list[str]:
    """Points missed by the random centres of the statement (their number times `factor`)."""
    rng = np.random.default_rng(seed)
    centres = int(math.exp(case.log_count()) * factor)
    radius = 1 + case.dilation * (1 - case.t) * case.x
    drawn = radius * uniform_ball(rng, case.norm, case.d, case.k, centres)
    aims = targets(rng, case.norm, case.d, case.k, 1500)
    far = distance_to(drawn, aims, NORMS[case.metric])
    return [f"missed by {v - case.x:.3g}" for v in far[far > case.x]]


@pytest.mark.parametrize("case", VOLUME_CASES, ids=str)
def test_random_covers_reach_every_target(case: VolumeCase) -> None:
    assert random_cover_failures(case, 5) == []


@pytest.mark.parametrize("case", VOLUME_CASES, ids=str)
def test_random_cover_checker_rejects_a_hundredth_of_the_centres(case: VolumeCase) -> None:
    assert random_cover_failures(case, 5, factor=0.01)


@pytest.mark.parametrize("case", VOLUME_CASES, ids=str)
def test_hit_probability_of_one_random_centre(case: VolumeCase) -> None:
    """A centre hits the ball of radius (1-t)x around any point of the unit ball with chance p."""
    rng = np.random.default_rng(6)
    h = (1 - case.t) * case.x
    drawn = (1 + case.dilation * h) * uniform_ball(rng, case.norm, case.d, case.k, 200_000)
    offset = {"F": covers.t4v_offset(case.d, case.k)}.get(case.metric, covers.MP.mpf(0))
    if case.metric == "op" and case.norm != "op":
        offset = covers.t4o_offset(case.norm, case.d, case.k)
    p = float(covers.MP.exp(-offset)) * (1 + 1 / (case.dilation * h)) ** -(case.d * case.k)
    corner = np.zeros((case.d, case.k))
    corner[0, 0] = 1
    for q in (np.zeros((case.d, case.k)), corner):
        hits = float((NORMS[case.metric](drawn - q) <= h).mean())
        assert abs(hits - p) <= 6 * math.sqrt(p / 200_000)


# ---------------------------------------------------------------- T5, T6


def separated(points: Array, distance: float, metric: Norm) -> Array:
    """A greedy maximal subset with pairwise distances above `distance`."""
    chosen = points[:1]
    left = points
    while True:
        left = left[metric(left - chosen[-1]) > distance]
        if not len(left):
            return chosen
        chosen = np.concatenate([chosen, left[:1]])


def rank_one_failures(
    eps: float, radii: tuple[float, float], seed: int, *, random: bool, factor: float = 1.0
) -> list[str]:
    """Rank-one 2 x 2 matrices W = PQ, |P|, |Q| <= 1, by covers of the two factors.

    `random`: centres of T4r, of norm above one; otherwise greedy nets inside the ball. `factor`
    enlarges the two radii without changing the tolerance.
    """
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    nets: list[Array] = []
    for radius in radii:
        x = radius * factor
        if random:
            size = covers.t4r_samples(2, x, 0.5)
            bound = float(covers.t4r_unit(2, x, 0.5))
            net = (1 + 0.5 * x) * uniform_ball(rng, "op", 2, 1, size)
        else:
            bound = 2 * math.log(1 + 2 / x)
            net = separated(uniform_ball(rng, "op", 2, 1, 20_000), 0.97 * x, norm_op)
        if math.log(len(net)) > bound * SLACK:
            failures.append(f"{len(net)} centres")
        nets.append(net)
    p, q = targets(rng, "op", 2, 1, 1500), targets(rng, "op", 2, 1, 1500)
    p1, q1 = (net[norm_op(z[:, None] - net[None]).argmin(axis=1)] for z, net in zip((p, q), nets, strict=True))
    if random:  # worst case over centres: any that is close enough may have been chosen
        worst = p[:, None] - nets[0][None]
        close = norm_op(worst) <= radii[0] * factor
        sizes = np.where(close, norm_op(nets[0])[None], 0)
        p1 = nets[0][sizes.argmax(axis=1)]
    error = norm_op(p @ np.swapaxes(q, 1, 2) - p1 @ np.swapaxes(q1, 1, 2))
    return failures + [f"error {e:.4g}" for e in error[error > eps * SLACK]]


def test_t5_products_of_covers() -> None:
    for eps in (0.3, 0.6):
        assert rank_one_failures(eps, (eps / 2, eps / 2), 7, random=False) == []
        first = eps / 2
        second = float(covers.t5_second_radius(eps, first, 0.5))
        assert rank_one_failures(eps, (first, second), 7, random=True) == []


def test_t5_checker_rejects_wider_factors() -> None:
    assert rank_one_failures(0.3, (0.15, 0.15), 7, random=False, factor=2.0)
    assert rank_one_failures(0.3, (0.15, 0.13), 7, random=True, factor=1.7)


def test_t5_random_covers_beat_the_factor_four() -> None:
    for d, k, r, eps in ((64, 64, 8, 0.05), (512, 64, 16, 0.01), (20, 300, 3, 0.3)):
        assert covers.t5_random(1, 1, eps, d, k, r) < covers.t5(1, 1, eps, d, k, r)


def schatten_failures(rank: Callable[..., int], seed: int) -> list[str]:
    """Ranks kept by dropping, and by shrinking, the singular values, ties included."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    for case in range(1500):
        d, k = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        q = min(d, k)
        p = float(rng.choice([0.25, 0.5, 1.0, 2.0]))
        eps, b, t = 1.0, 1.0, 0.5
        sigma = np.sort(rng.exponential(size=q) ** 2)[::-1]
        if case % 3 == 0:  # all singular values exactly at the threshold, or just above
            sigma = np.full(q, 0.5) * rng.choice([1.0, 1 + 1e-9])
        u = np.linalg.qr(rng.standard_normal((d, q)))[0]
        v = np.linalg.qr(rng.standard_normal((k, q)))[0]
        if case % 3 == 0:
            u, v = np.eye(d)[:, :q], np.eye(k)[:, :q]
        w = (u * sigma) @ v.T
        budget = float((sigma**p).sum()) * (1 if case % 3 == 0 else 1 + 1e-12)
        allowed = rank(b, budget, eps, p, t, d, k)
        hard, soft = np.where(sigma > t * eps / b, sigma, 0), np.maximum(sigma - t * eps / b, 0)
        for kept in (hard, soft):
            if (kept > 0).sum() > allowed:
                failures.append(f"rank {(kept > 0).sum()} > {allowed}")
            if np.linalg.norm(w - (u * kept) @ v.T, 2) * b > t * eps * SLACK:
                failures.append("dropped too much")
        if soft.max() > max(0.0, sigma.max() - t * eps / b) * SLACK:
            failures.append("shrunk matrix too large")
    return failures


def test_t6_rank_after_truncation() -> None:
    assert schatten_failures(covers.t6_rank, 8) == []
    assert covers.t6_soft(1, 1, 2, 0.1, 1, 0.5, 64, 64) < covers.t6(1, 1, 2, 0.1, 1, 0.5, 64, 64)


def test_t6_checker_rejects_one_rank_less() -> None:
    assert schatten_failures(lambda *a: max(0, covers.t6_rank(*a) - 1), 8)


# ---------------------------------------------------------------- T9


def gain_failures(cells: Callable[[float, float, float], int], seed: int) -> list[str]:
    """Gains rounded to the middle of their cell, against the worst input of norm b."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    for _ in range(2000):
        d = int(rng.integers(1, 9))
        b, half = math.sqrt(d), float(rng.uniform(0.1, 3))
        eps = b * half / float(rng.choice([1.0, 1.5, 2.0, 7.01, rng.uniform(1, 30)]))
        number = cells(b, half, eps)
        edges = np.linspace(-half, half, number + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        gains = np.concatenate([rng.uniform(-half, half, d), edges])
        error = b * np.abs(gains[:, None] - middles).min(axis=1).max()  # input b e_i
        if error > eps * SLACK:
            failures.append(f"{number} cells: error {error} above {eps}")
    return failures


def test_t9_cells() -> None:
    assert gain_failures(covers.t9_cells, 9) == []


def test_t9_checker_rejects_one_cell_less() -> None:
    assert gain_failures(lambda *a: max(1, covers.t9_cells(*a) - 1), 9)
