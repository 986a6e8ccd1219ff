"""Attempts to falsify section G and P1 on classes small enough to compute the truth.

Every checker returns the violations it found. True statements must give none; statements with a
constant, a link or a union term left out must give some, or the checker is blind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle import gap_mp as gap

Array = NDArray[np.float64]
SLACK = 1e-12


# ------------------------------------------------------------------------ classes and their covers


@dataclass(frozen=True)
class FiniteClass:
    """One row per function, one column per point, values in [0,1]."""

    name: str
    values: Array


def cube(m: int) -> FiniteClass:
    return FiniteClass(f"cube {m}", np.array(list(product((0.0, 1.0), repeat=m))))


def thresholds(m: int) -> FiniteClass:
    return FiniteClass(f"thresholds {m}", np.tril(np.ones((m + 1, m)), -1))


def tree_sums(m: int, rng: np.random.Generator, fan: int = 4, depth: int = 3) -> FiniteClass:
    """Sums of increments of geometric size along the paths of a tree."""
    rows = np.full((1, m), 0.5)
    for level in range(depth):
        signs = rng.choice((-1.0, 1.0), (len(rows) * fan, m))
        rows = np.repeat(rows, fan, axis=0) + 0.5 * 0.6 * 0.4**level * signs
    return FiniteClass(f"tree {m}", np.clip(rows, 0, 1))


def linear(m: int, rng: np.random.Generator, dim: int = 2, size: int = 150) -> FiniteClass:
    x = rng.standard_normal((m, dim))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = rng.standard_normal((size, dim))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return FiniteClass(f"linear {m}", np.clip(0.5 + 0.5 * w @ x.T, 0, 1))


def random_class(m: int, rng: np.random.Generator) -> FiniteClass:
    size = int(rng.integers(2, 40))
    kind = rng.integers(3)
    rows = rng.random((size, m)) if kind else rng.integers(0, 2, (size, m)).astype(float)
    if kind == 2:  # clusters: coarse covers are much smaller than fine ones
        base = rng.integers(0, 2, (1 + size // 8, m))
        rows = np.clip(base[rng.integers(len(base), size=size)] + 0.1 * (rows - 0.5), 0, 1)
    return FiniteClass(f"random {m}", rows)


def classes(seed: int = 0) -> Iterator[FiniteClass]:
    rng = np.random.default_rng(seed)
    yield from (cube(8), thresholds(11), tree_sums(10, rng), linear(10, rng), linear(11, rng, 3))
    for m in (2, 5, 8, 10):
        for _ in range(4):
            yield random_class(m, rng)


def sup_cover(values: Array, eps: float, rng: np.random.Generator) -> Array:
    """An explicit cover in the sup norm: one centre, greedy members, or cells of a grid."""
    middle = (values.max(axis=0) + values.min(axis=0)) / 2
    if np.abs(values - middle).max() <= eps:
        return middle[None, :]
    left = np.arange(len(values))
    picked: list[Array] = []
    while len(left):
        centre = values[rng.choice(left)]
        centre = np.clip(centre + rng.uniform(-0.2, 0.2, centre.shape) * eps, 0, 1)
        near = np.abs(values[left] - centre).max(axis=1) <= eps
        if near.any():
            picked.append(centre)
            left = left[~near]
    cells = np.unique(np.floor(values / (2 * eps)), axis=0)
    centres = np.array(picked) if len(picked) <= len(cells) else (cells + 0.5) * 2 * eps
    gaps = np.abs(values[:, None, :] - centres[None, :, :]).max(axis=2).min(axis=1)
    assert gaps.max() <= eps * (1 + 1e-9)
    return centres


def signs(m: int) -> Array:
    return np.array(list(product((-1.0, 1.0), repeat=m)))


def rademacher(values: Array) -> float:
    """The exact empirical Rademacher complexity."""
    m = values.shape[1]
    return float((signs(m) @ values.T).max(axis=1).mean()) / m


def random_levels(rng: np.random.Generator) -> list[float]:
    levels = [0.5]
    for _ in range(int(rng.integers(1, 5))):
        levels.append(levels[-1] / float(rng.choice((1.3, 1.8, 2.6, 4.0, 12.0))))
    return levels


# ------------------------------------------------------------------------------------- G1: chaining

ChainBound = Callable[[Sequence[float], Sequence[float], int, np.random.Generator], float]


def chaining_violations(bound: ChainBound, seed: int = 1, rounds: int = 6) -> list[str]:
    """Classes and explicit covers at which ``bound`` is below the exact complexity."""
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for cls in classes(seed):
        exact = rademacher(cls.values)
        m = cls.values.shape[1]
        ladders = [random_levels(rng) for _ in range(rounds)] + [[0.5, 0.4, 0.01], [0.5, 1e-6]]
        for levels in ladders:
            log_n = [math.log(len(sup_cover(cls.values, e, rng))) for e in levels[1:]]
            value = bound(levels, log_n, m, rng)
            if exact > value + SLACK:
                found.append(f"{cls.name}: levels {levels}: {exact} > {value}")
    return found


def tree_chain(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    return float(gap.g1_chain(levels, ["tree"] * len(log_n), log_n, m))


def clip_chain(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    return float(gap.g1_chain(levels, ["clip"] * len(log_n), log_n, m))


def mixed_chain(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    kinds = [str(k) for k in rng.choice(("tree", "clip"), len(log_n))]
    return float(gap.g1_chain(levels, kinds, log_n, m))


def entropy_chain(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    return float(gap.g1_entropy_chain(levels, log_n, m))


def without_first_link(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    later = [gap.massart(levels[j], log_n[j], m) for j in range(1, len(log_n))]
    return float(levels[-1] + sum(later))


def own_radius_as_link(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    return float(levels[-1] + sum(gap.massart(levels[j + 1], n, m) for j, n in enumerate(log_n)))


def without_the_two(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    links = [gap.massart(levels[j], n / 2, m) for j, n in enumerate(log_n)]
    return float(levels[-1] + sum(links))


def without_residual(levels: Sequence[float], log_n: Sequence[float], m: int, rng: np.random.Generator) -> float:
    return float(gap.g1_entropy_chain(levels, log_n, m)) - levels[-1]


@pytest.mark.parametrize("bound", [tree_chain, clip_chain, mixed_chain, entropy_chain])
def test_g1_is_above_the_exact_complexity(bound: ChainBound) -> None:
    assert chaining_violations(bound) == []


@pytest.mark.parametrize("broken", [without_first_link, own_radius_as_link, without_the_two, without_residual])
def test_g1_checker_sees_broken_chains(broken: ChainBound) -> None:
    assert chaining_violations(broken)


def test_g1_entropy_links_are_never_worse() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        levels = random_levels(rng)
        log_n = np.sort(rng.exponential(5, len(levels) - 1)).tolist()
        m = int(rng.integers(1, 1000))
        best = entropy_chain(levels, log_n, m, rng)
        assert best <= mixed_chain(levels, log_n, m, rng) + SLACK
        assert best <= clip_chain(levels, log_n, m, rng) + SLACK
        assert best <= tree_chain(levels, log_n, m, rng) + SLACK


def closed_form_violations(value: Callable[[float], float], chain: str) -> list[str]:
    """One-line forms (m = 1) that are below the best closed form, hence unproved there."""
    found: list[str] = []
    u = np.exp(np.linspace(0.05, 3.5, 700))
    for k in [*np.linspace(0.5, 0.02, 25), *np.geomspace(0.02, 1e-7, 25)]:
        per_fold = math.e * math.sqrt(2) if chain == "entropy" else 4.094
        root = float(k) / per_fold  # sqrt(C_F)
        best = 0.5
        for levels in range(1, 26):
            j = np.arange(1, levels + 1)[:, None]
            if chain == "entropy":
                total = u * levels
            else:
                total = (u * np.sqrt((1 - u ** (-2.0 * j)) / (1 - u**-2.0))).sum(axis=0)
            best = min(best, float((u**-levels / 2 + math.sqrt(2) * root * total).min()))
        if value(root**2) < best - 1e-9:
            found.append(f"k = {k}: {value(root**2)} < {best}")
    return found


def test_g1_one_line_forms_follow_from_the_closed_forms() -> None:
    assert closed_form_violations(lambda c: float(gap.g1_one_line(c, 1)), "clip") == []
    assert closed_form_violations(lambda c: float(gap.g1_entropy_one_line(c, 1)), "entropy") == []

    def too_small(c: float) -> float:
        k = math.e * math.sqrt(2 * c)
        return k * (0.95 + math.log(1 / (2 * k)))

    assert closed_form_violations(too_small, "entropy")


@pytest.mark.parametrize("ratio", [1.5, 2.7, 6.0])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_g1_closed_forms_are_the_chain_sums(ratio: float, depth: int) -> None:
    c_f, m = gap.num("1e-4"), 7
    u = gap.num(ratio)
    levels = [u**-j / 2 for j in range(depth + 1)]
    log_n = [c_f / e**2 for e in levels[1:]]
    for kind, closed in (("tree", gap.g1_tree_closed), ("clip", gap.g1_clip_closed)):
        direct = gap.g1_chain(levels, [kind] * depth, log_n, m)
        assert abs(direct - min(gap.num("0.5"), closed(c_f, m, depth, u))) < gap.num("1e-45")
    direct = gap.g1_entropy_chain(levels, log_n, m)
    closed_value = gap.g1_entropy_closed(c_f, m, depth, u)
    assert abs(direct - min(gap.num("0.5"), closed_value)) < gap.num("1e-45")


# ------------------------------------------------------------------- G2: the exact expected supremum


def histograms(points: int, m: int) -> Iterator[tuple[int, ...]]:
    if points == 1:
        yield (m,)
        return
    for first in range(m + 1):
        for rest in histograms(points - 1, m - first):
            yield (first, *rest)


def gap_distribution(values: Array, law: Array, m: int) -> tuple[Array, Array]:
    """(sup_g (E g - mean g), probability) over all samples of size m from a finite domain."""
    counts = np.array(list(histograms(len(law), m)), dtype=float)
    log_fact = np.array([math.lgamma(i + 1) for i in range(m + 1)])
    log_p = math.lgamma(m + 1) - log_fact[counts.astype(int)].sum(axis=1) + counts @ np.log(law)
    sups = ((values @ law)[None, :] - counts @ values.T / m).max(axis=1)
    return sups, np.exp(log_p)


UniformBound = Callable[[Sequence[float], Sequence[float], int, float | None, np.random.Generator], float]


def uniform_gap_violations(bound: UniformBound, seed: int = 2) -> list[str]:
    """Finite domains at which the expected supremum, or its delta-quantile, exceeds ``bound``."""
    rng = np.random.default_rng(seed)
    domains: list[tuple[FiniteClass, Array, int]] = [(cube(8), np.full(8, 1 / 8), 2)]
    narrow = FiniteClass("narrow", np.array(list(product((0.4, 0.6), repeat=4))))
    domains.append((narrow, np.full(4, 0.25), 3))
    for _ in range(14):
        points, m = int(rng.integers(2, 5)), int(rng.integers(1, 12))
        domains.append((random_class(points, rng), rng.dirichlet(np.ones(points) * 2), m))
    found: list[str] = []
    for cls, law, m in domains:
        sups, prob = gap_distribution(cls.values, law, m)
        assert abs(prob.sum() - 1) < 1e-9
        for levels in [*(random_levels(rng) for _ in range(4)), [0.5, 0.4, 0.01], [0.5, 0.101]]:
            log_n = [math.log(len(sup_cover(cls.values, e, rng))) for e in levels[1:]]
            mean = float(sups @ prob)
            value = bound(levels, log_n, m, None, rng)
            if mean > value + SLACK:
                found.append(f"{cls.name}: mean {mean} > {value} at {levels}")
            for delta in (0.5, 0.1, 0.01):
                tail = float(prob[sups > bound(levels, log_n, m, delta, rng) + SLACK].sum())
                if tail > delta * (1 + 1e-9):
                    found.append(f"{cls.name}: tail {tail} > {delta} at {levels}")
    return found


def uniform_mixed(
    levels: Sequence[float],
    log_n: Sequence[float],
    m: int,
    delta: float | None,
    rng: np.random.Generator,
) -> float:
    kinds = [str(k) for k in rng.choice(("tree", "clip"), len(log_n))]
    return float(gap.g2_uniform_chain(levels, kinds, log_n, m, delta))


def uniform_entropy(
    levels: Sequence[float],
    log_n: Sequence[float],
    m: int,
    delta: float | None,
    rng: np.random.Generator,
) -> float:
    return float(gap.g2_uniform_entropy_chain(levels, log_n, m, delta))


def uniform_single(
    levels: Sequence[float],
    log_n: Sequence[float],
    m: int,
    delta: float | None,
    rng: np.random.Generator,
) -> float:
    if delta is None:
        return 1.0  # the single-scale form is a statement about quantiles only
    pairs = zip(levels[1:], log_n, strict=True)
    return min(float(gap.g2_uniform_single(e, n, m, delta)) for e, n in pairs)


def uniform_no_link(
    levels: Sequence[float],
    log_n: Sequence[float],
    m: int,
    delta: float | None,
    rng: np.random.Generator,
) -> float:
    first = float(gap.massart(levels[0], log_n[0], m))
    return uniform_entropy(levels, log_n, m, delta, rng) - first


def uniform_no_residual(
    levels: Sequence[float],
    log_n: Sequence[float],
    m: int,
    delta: float | None,
    rng: np.random.Generator,
) -> float:
    return uniform_entropy(levels, log_n, m, delta, rng) - 2 * levels[-1]


@pytest.mark.parametrize("bound", [uniform_mixed, uniform_entropy, uniform_single])
def test_g2_uniform_is_above_the_exact_supremum(bound: UniformBound) -> None:
    assert uniform_gap_violations(bound) == []


@pytest.mark.parametrize("broken", [uniform_no_link, uniform_no_residual])
def test_g2_checker_sees_broken_chains(broken: UniformBound) -> None:
    assert uniform_gap_violations(broken)


def all_binary_gap(domain: int, m: int) -> float:
    """E sup (E g - mean g) over all {0,1} functions on a uniform domain: the unseen mass."""
    return (1 - 1 / domain) ** m


def all_binary_violations(bound: Callable[[int, int, int], float]) -> list[str]:
    """Where ``bound(domain, m, alpha)`` is below the exact supremum over all binary functions."""
    found: list[str] = []
    for domain, m, alpha in product((2, 5, 40, 1000), (1, 4, 60, 400), (1, 3, 10)):
        if all_binary_gap(domain, m) > bound(domain, m, alpha) + SLACK:
            found.append(f"domain {domain}, m {m}, alpha {alpha}")
    return found


def test_g2_needs_uniform_covers_or_a_ghost_sample() -> None:
    log2 = math.log(2)

    def with_ghost(domain: int, m: int, alpha: int) -> float:
        log_n = log2 * min(domain, (1 + alpha) * m)
        return float(gap.g2_ghost_entropy_chain([0.5, 0], [log_n], m, None, alpha))

    def counted_on_the_sample(domain: int, m: int, alpha: int) -> float:
        log_n = log2 * min(domain, m)
        return float(gap.g2_ghost_entropy_chain([0.5, 0], [log_n], m, None, alpha))

    def empirical_without_symmetrisation(domain: int, m: int, alpha: int) -> float:
        log_n = log2 * min(domain, m)
        return float(gap.g2_uniform_entropy_chain([0.5, 0], [log_n], m, None))

    def symmetrised(domain: int, m: int, alpha: int) -> float:
        log_n = log2 * min(domain, m)
        return 2 * float(gap.g1_entropy_chain([0.5, 0], [log_n], m))

    assert all_binary_violations(with_ghost) == []
    assert all_binary_violations(symmetrised) == []
    assert all_binary_violations(counted_on_the_sample)
    assert all_binary_violations(empirical_without_symmetrisation)


def ghost_violations(factor: float, seed: int = 3) -> list[str]:
    """Exact expected gap on a finite domain against the ghost chain times ``factor``."""
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for _ in range(12):
        points, m = int(rng.integers(2, 5)), int(rng.integers(2, 12))
        cls = random_class(points, rng)
        sups, prob = gap_distribution(cls.values, np.full(points, 1 / points), m)
        for alpha in (1, 2, 8):
            levels = random_levels(rng)
            # A cover on the domain is one on every (1+alpha)m samples from it.
            log_n = [math.log(len(sup_cover(cls.values, e, rng))) for e in levels[1:]]
            value = factor * float(gap.g2_ghost_entropy_chain(levels, log_n, m, None, alpha))
            if float(sups @ prob) > value + SLACK:
                found.append(f"{cls.name} alpha {alpha}")
    return found


def test_g2_ghost_chain() -> None:
    assert ghost_violations(1.0) == []
    assert ghost_violations(0.2)


# ------------------------------------------------------------------- G3, G4, G5: failure frequencies


def binomial_cdf(x: int, m: int, p: float) -> float:
    """P(Bin(m,p) <= x)."""
    if x < 0:
        return 0.0
    logs = [
        math.lgamma(m + 1) - math.lgamma(i + 1) - math.lgamma(m - i + 1) + i * math.log(p) + (m - i) * math.log1p(-p)
        for i in range(min(x, m) + 1)
    ]
    return min(1.0, math.fsum(math.exp(v) for v in logs))


def frequency_violation(failures: int, runs: int, delta: float) -> list[str]:
    """Evidence that the failure probability exceeds delta: exact binomial test at 1e-6."""
    chance = 1.0 if failures == 0 else 1 - binomial_cdf(failures - 1, runs, delta)
    return [f"{failures} failures in {runs} runs at delta {delta}"] if chance < 1e-6 else []


ErrorBound = Callable[[float], float]  # training error -> bound on the risk, non-decreasing


def failing_count(bound: ErrorBound, risk: float, m: int) -> int:
    """The largest number of training errors at which ``bound`` is below ``risk`` (-1: none)."""
    low, high = -1, m + 1
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if bound(mid / m) < risk else (low, mid)
    return low


def independent_violations(bound: ErrorBound, n: int, risk: float, m: int, delta: float) -> list[str]:
    """n functions erring independently with probability ``risk``: the exact failure probability."""
    each = binomial_cdf(failing_count(bound, risk, m), m, risk)
    total = -math.expm1(n * math.log1p(-each)) if each < 1 else 1.0
    return [f"failure probability {total} > {delta}"] if total > delta * (1 + 1e-9) else []


INDEPENDENT = [(1, 0.3, 200), (50, 0.1, 100), (300, 0.4, 150), (10**6, 0.2, 300), (7, 0.02, 80)]


def independent_search(make: Callable[[float, int, float], ErrorBound]) -> list[str]:
    found: list[str] = []
    for (n, risk, m), delta in product(INDEPENDENT, (0.3, 0.05)):
        found += independent_violations(make(math.log(n), m, delta), n, risk, m, delta)
    return found


def bound_g3(log_n: float, m: int, delta: float) -> ErrorBound:
    return lambda q: float(gap.g3(q, log_n, m, delta))


def bound_g5(log_n: float, m: int, delta: float) -> ErrorBound:
    return lambda q: float(gap.g5_mu(q, gap.g5_complexity(log_n, m, delta), m, 20, 0.8))


def bound_g5_small_ghost(log_n: float, m: int, delta: float) -> ErrorBound:
    return lambda q: float(gap.g5_mu(q, gap.g5_complexity(log_n, m, delta), m, 1, 0.8))


@pytest.mark.parametrize("make", [bound_g3, bound_g5, bound_g5_small_ghost])
def test_g3_g5_exact_failure_probability(make: Callable[[float, int, float], ErrorBound]) -> None:
    assert independent_search(make) == []


@pytest.mark.parametrize("make", [bound_g3, bound_g5])
def test_g3_g5_checker_sees_lowered_constants(
    make: Callable[[float, int, float], ErrorBound],
) -> None:
    assert independent_search(lambda log_n, m, delta: make(0.0, m, delta))  # no union
    assert independent_search(lambda log_n, m, delta: make(log_n, 2 * m, delta))  # c halved


@dataclass(frozen=True)
class MarginProblem:
    """Margins y f(x) over a finite domain, all functions within gamma/2 of ``centres`` many."""

    margins: Array
    law: Array
    gamma: float
    log_n: float


def margin_problem(rng: np.random.Generator, gamma: float = 0.5) -> MarginProblem:
    """Base margins plus perturbations up to gamma/2, and an explicit cover at gamma/2."""
    points, bases, copies = 40, 60, 6
    base = gamma * rng.choice((-0.5, 0.0, 0.5, 1.6, 3.0), (bases, points), p=(0.1, 0.05, 0.05, 0.4, 0.4))
    shift = rng.uniform(-gamma / 2, gamma / 2, (bases, copies, points))
    corner = (gamma / 2) * rng.choice((-1.0, 1.0), (bases, copies, points))
    shift = np.where(rng.random((bases, copies, 1)) < 0.5, shift, corner)
    law = rng.dirichlet(np.ones(points))
    return MarginProblem((base[:, None, :] + shift).reshape(-1, points), law, gamma, math.log(bases))


def margin_violations(
    make: Callable[[float, int, float], ErrorBound], *, strict: bool = False, seed: int = 4
) -> list[str]:
    """Simulated failure frequency over many samples: risk(f) above the bound for some f."""
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for m, delta in ((60, 0.2), (150, 0.05)):
        problem = margin_problem(rng)
        risks = (problem.margins <= 0) @ problem.law
        below = problem.margins < problem.gamma if strict else problem.margins <= problem.gamma
        bound = make(problem.log_n, m, delta)
        table = np.array([bound(x / m) for x in range(m + 1)])
        limit = (table[None, :] < risks[:, None] - SLACK).sum(axis=1) - 1
        runs = 2000
        counts = rng.multinomial(m, problem.law, runs)
        failures = int((counts @ below.T <= limit).any(axis=1).sum())
        found += frequency_violation(failures, runs, delta)
    return found


def test_g3_g5_simulated_margins() -> None:
    assert margin_violations(bound_g3) == []
    assert margin_violations(bound_g5) == []


def test_margin_checker_sees_a_lowered_constant() -> None:
    assert margin_violations(lambda log_n, m, delta: lambda q: 0.6 * q)


def strictness_violations(strict: bool) -> list[str]:
    """One centre at margin gamma/2; f is gamma on the sample and 0 elsewhere."""
    rng = np.random.default_rng(6)
    domain, m, delta, gamma = 500, 50, 0.05, 1.0
    failures = 0
    for _ in range(200):
        sample = rng.integers(domain, size=m)
        margins = np.zeros(domain)
        margins[sample] = gamma
        train = (margins[sample] < gamma) if strict else (margins[sample] <= gamma)
        risk = float((margins <= 0).mean())
        failures += risk > float(gap.g3(float(train.mean()), 0.0, m, delta)) + SLACK
    return frequency_violation(failures, 200, delta)


def test_g0_margins_are_non_strict_on_both_sides() -> None:
    assert strictness_violations(strict=False) == []
    assert strictness_violations(strict=True)


def cell_violations(bound: Callable[[float, int, float], float], cells: int, m: int, delta: float) -> list[str]:
    """f_k errs on cell k of ``cells`` equal ones: an empty cell is a zero-error f of risk 1/cells."""
    rng = np.random.default_rng(8)
    runs = 3000
    counts = rng.multinomial(m, np.full(cells, 1 / cells), runs)
    broken = 1 / cells > bound(math.log(cells), m, delta) + SLACK
    return frequency_violation(int((counts == 0).any(axis=1).sum()) if broken else 0, runs, delta)


def zero_error_search(bound: Callable[[float, int, float], float]) -> list[str]:
    found: list[str] = []
    for cells, m, delta in product((20, 90, 200), (60, 150, 600, 1200), (0.3, 0.05)):
        found += cell_violations(bound, cells, m, delta)
    return found


@pytest.mark.parametrize("alpha", [1, 4, 30])
@pytest.mark.parametrize("theorem", [gap.g4, gap.g4_exact, gap.g4_hypergeometric])
def test_g4_failure_frequency(theorem: Callable[..., object], alpha: int) -> None:
    def bound(log_n: float, m: int, delta: float) -> float:
        return float(theorem(log_n, m, delta, alpha))  # type: ignore[arg-type]

    assert zero_error_search(bound) == []


def test_g4_checker_sees_lowered_constants() -> None:
    assert zero_error_search(lambda log_n, m, delta: float(gap.g4(0.0, m, delta)))
    assert zero_error_search(lambda log_n, m, delta: 0.5 * float(gap.g4(log_n, m, delta)))


def test_g4_forms_are_ordered_and_the_permutation_probability_is_exact() -> None:
    for m, alpha in ((3, 1), (4, 2), (5, 3)):
        total = (1 + alpha) * m
        for k in range(alpha * m + 1):
            miss = math.comb(total - k, m) / math.comb(total, m)
            assert abs(float(gap.g4_log_ratio(k, m, alpha)) - math.log(miss)) < 1e-12
    for log_n, m, alpha in product((0.0, 3.0, 40.0, 200.0), (50, 1000), (1, 5, 20)):
        exact = gap.g4_exact(log_n, m, 0.05, alpha)
        assert exact <= gap.g4(log_n, m, 0.05, alpha)
        assert exact <= gap.g4_hypergeometric(log_n, m, 0.05, alpha)
        assert exact <= gap.g4_middle(log_n, m, 0.05, alpha)
        if 10 * log_n < m:  # elsewhere many of the ghosts err
            assert gap.g4_middle(log_n, m, 0.05, alpha) <= 1.01 * exact + 1 / (alpha * m)


def median_violations(shift: int) -> list[str]:
    """P(Bin(m,p) >= floor(mp) + shift) >= 1/2, the step of G4 and G5."""
    found: list[str] = []
    for m in (1, 2, 5, 9, 30):
        for p in np.linspace(0.005, 0.995, 199).tolist():
            k = math.floor(m * p + 1e-12) + shift
            if 1 - binomial_cdf(k - 1, m, p) < 0.5 - 1e-12:
                found.append(f"m {m}, p {p}")
    return found


def test_ghost_median_step() -> None:
    assert median_violations(0) == []
    assert median_violations(1)


def test_klinv_from_above_at_every_mu() -> None:
    rng = np.random.default_rng(9)
    for _ in range(25):
        q, c = 0.8 * float(rng.random()) ** 2, float(rng.exponential(0.3))
        low, high = gap.klinv_bracket(q, c)
        assert high - low < gap.num("1e-49")
        assert gap.kl(q, low) <= c
        for mu in rng.exponential(2, 5).tolist():
            assert gap.klinv_mu(q, c, mu) >= high - gap.num("1e-45")
        assert abs(gap.klinv_mu(q, c, gap.klinv_best_mu(q, c)) - high) < gap.num("1e-40")


@pytest.mark.parametrize(("train", "alpha"), [(0.0, 3), (0.07, 1), (0.4, 20), (1.0, 2)])
def test_g5_at_every_mu_is_above_and_the_best_mu_is_equal(train: float, alpha: int) -> None:
    log_n, m, delta = 20.0, 300, 0.05
    exact = float(gap.g5(train, log_n, m, delta, alpha))
    c = gap.g5_complexity(log_n, m, delta)
    values = [float(gap.g5_mu(train, c, m, alpha, mu)) for mu in np.geomspace(1e-3, 60, 1500).tolist()]
    assert min(values) >= exact - 1e-12
    assert min(1.0, min(values)) <= exact + 1e-5


# ------------------------------------------------------------------------------------------------ P1


def hindsight_violations(*, paid: bool, budgets: int = 14, delta: float = 0.05) -> list[str]:
    """Budget k holds 2^k functions; the adversary reports any f at the budget f itself needs.

    Errors are independent, and each budget uses the exact binomial form of G3, so the probability
    that some function violates the bound at its own budget is computed exactly.
    """
    m, risk = 2000, 0.3
    cdf = np.array([binomial_cdf(x, m, risk) for x in range(450, 601)])
    log_safe = 0.0
    for k in range(budgets):
        cost = float(gap.p1_cost([k])) if paid else 0.0
        level = math.exp(math.log(delta) - cost - k * math.log(2))
        each = float(cdf[cdf < level].max(initial=0.0))
        assert level > cdf[0]
        log_safe += (1 if k == 0 else 2 ** (k - 1)) * math.log1p(-each)
    failure = -math.expm1(log_safe)
    return [f"failure probability {failure} > {delta}"] if failure > delta else []


def test_p1_must_be_paid() -> None:
    assert hindsight_violations(paid=True) == []
    assert hindsight_violations(paid=False)


def test_the_binomial_form_used_by_the_adversary() -> None:
    m, risk, level = 40, 0.3, 0.02
    for errors in range(3, 12):
        fails = gap.g3_binomial(errors, 0, m, level) < risk
        assert fails == (binomial_cdf(errors, m, risk) < level)


def test_p1_weights_and_rounding() -> None:
    one_sided = sum(math.exp(-float(gap.p1_cost([k]))) for k in range(2000))
    assert 1 - 1e-3 < one_sided <= 1
    two_sided = sum(math.exp(-float(gap.p1_cost([], [k]))) for k in range(-1500, 1501))
    assert 1 - 2e-3 < two_sided <= 1
    unpaid_side = two_sided * 1.5
    assert unpaid_side > 1  # without log 1.5 the two-sided weights are no distribution
    assert gap.p1_round_up(0.3, 1, 2) == 0
    assert gap.p1_round_up(1, 1, 2) == 0
    assert gap.p1_round_up(1.01, 1, 2) == 1
    assert gap.p1_round_up(0.3, 1, 2, two_sided=True) == -1
    assert gap.p1_round_margin(0.3, 1, 2) == -2
    assert gap.p1_round_margin(4, 1, 2) == 2


# ----------------------------------------------------------------------------------------------- PUB


def dudley_violations(log_n: Callable[[object], object]) -> list[str]:
    """Level sums of PUB below the integral they should dominate."""
    found: list[str] = []
    for cut, steps in product((0.01, 0.1), (1, 2, 6)):
        levels = np.geomspace(1, cut, steps + 1).tolist()
        counts = [log_n(gap.num(e)) for e in levels[1:]]
        above = gap.pub_dudley_sum(counts, levels, 50)
        if gap.pub_dudley(log_n, levels[-1], 50) > above + gap.num("1e-9"):
            found.append(f"cut {cut}, {steps} levels")
    return found


def test_dudley_by_levels_needs_the_monotonicity() -> None:
    assert dudley_violations(lambda e: 3 / e**2) == []  # type: ignore[operator]
    assert dudley_violations(lambda e: (1 + gap.MP.log(1 / e)) / e**2) == []  # type: ignore[operator]
    # e^2 log(1 + 9/e) increases with e: a volumetric cover does not qualify.
    assert dudley_violations(lambda e: gap.MP.log(1 + 9 / e))  # type: ignore[operator]


def test_published_constants_never_win() -> None:
    for norm, eps, points in ((1, 0.3, 10), (5, 0.01, 10**6)):
        a = (norm / eps) ** 2
        assert gap.pub_log_cover(norm, 1, eps, points) > a * math.log(2 * points + 1)
    for c_w in (0.1, 1, 9):
        sharp = c_w + math.sqrt(1 + c_w**2)
        assert gap.pub_head_lipschitz(1, c_w) > sharp
