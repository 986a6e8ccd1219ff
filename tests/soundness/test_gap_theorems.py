"""Attempts to falsify section G and P1 on classes small enough to compute the truth.

Every checker returns the violations it found. True statements must give none; statements with a
constant, a link or a union term left out must give some, or the checker is blind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import multinomial

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements import gap
from boundcalc.statements.posthoc import (
    _grid_value,
    _steps_cost,
    correct_for_selection,
    posthoc_cost,
)
from boundcalc.statements.strategies import STRATEGIES, Known
from boundcalc.testing._drawing import Array

SLACK = 1e-12


# ------------------------------------------------------------------------ classes and their covers


def cube(m: int) -> Array:
    """One row per function, one column per point, values in [0, 1]: here all of 0 and 1."""
    return np.array(list(product((0.0, 1.0), repeat=m)))


def random_class(m: int, rng: np.random.Generator) -> Array:
    size = int(rng.integers(2, 40))
    kind = rng.integers(3)
    rows = rng.random((size, m)) if kind else rng.integers(0, 2, (size, m)).astype(float)
    if kind == 2:  # clusters: coarse covers are much smaller than fine ones
        base = rng.integers(0, 2, (1 + size // 8, m))
        rows = np.clip(base[rng.integers(len(base), size=size)] + 0.1 * (rows - 0.5), 0, 1)
    return rows


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


def rademacher(values: Array) -> float:
    """The exact empirical Rademacher complexity."""
    m = values.shape[1]
    signs = np.array(list(product((-1.0, 1.0), repeat=m)))
    return float((signs @ values.T).max(axis=1).mean()) / m


def random_levels(rng: np.random.Generator) -> list[float]:
    levels = [0.5]
    for _ in range(int(rng.integers(1, 5))):
        levels.append(levels[-1] / float(rng.choice((1.3, 1.8, 2.6, 4.0, 12.0))))
    return levels


# ------------------------------------------------------------------------------------- G1: chaining

ChainBound = Callable[[Sequence[float], Sequence[float], int], float]


def chaining_violations(bound: ChainBound) -> list[str]:
    """Classes and explicit covers at which ``bound`` is below the exact complexity."""
    rng = np.random.default_rng(1)
    found: list[str] = []
    for values in (cube(8), *(random_class(m, rng) for m in (2, 5, 8, 10) for _ in range(4))):
        exact, m = rademacher(values), values.shape[1]
        for levels in [*(random_levels(rng) for _ in range(6)), [0.5, 0.4, 0.01], [0.5, 1e-6]]:
            log_n = [math.log(len(sup_cover(values, e, rng))) for e in levels[1:]]
            if exact > (value := bound(levels, log_n, m)) + SLACK:
                found.append(f"levels {levels}: {exact} > {value}")
    return found


def chain(levels: Sequence[float], log_n: Sequence[float], m: int) -> float:
    """G1: e_J and the links."""
    return levels[-1] + sum(gap.chain_links(FLOAT, levels, log_n, m))


BROKEN_CHAINS: dict[str, ChainBound] = {
    "without its first link": lambda levels, log_n, m: chain(levels[1:], log_n[1:], m),
    "links at their own radius": lambda levels, log_n, m: chain(levels[1:], log_n, m),
    "without the 2": lambda levels, log_n, m: chain(levels, [n / 2 for n in log_n], m),
    "without the residual": lambda levels, log_n, m: chain(levels, log_n, m) - levels[-1],
}


def test_g1_is_above_the_exact_complexity_and_broken_chains_are_not() -> None:
    assert chaining_violations(chain) == []
    for name, broken in BROKEN_CHAINS.items():
        assert chaining_violations(broken), name


def closed_form_violations(value: Callable[[float], float]) -> list[str]:
    """One-line forms (m = 1, log N = capacity/e^2) that are below the best chain with scales of one ratio."""
    found: list[str] = []
    u = np.exp(np.linspace(0.05, 3.5, 700))
    for k in [math.e / 8, *np.linspace(0.5, 0.02, 25), *np.geomspace(0.02, 1e-7, 25)]:  # worst first
        capacity = (float(k) / math.e) ** 2 / 2
        chains = (u**-n + math.sqrt(8 * capacity) * u * n for n in range(1, 26))
        best = min(1.0, *(float(each.min()) for each in chains))
        if value(capacity) < best - 1e-9:
            found.append(f"k = {k}: {value(capacity)} < {best}")
    return found


def test_the_one_line_form_follows_from_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    assert closed_form_violations(lambda capacity: gap.chain_closed(FLOAT, capacity, 2.0, 1)) == []
    monkeypatch.setattr(gap, "CLOSED_OFFSET", 1.0851)
    assert closed_form_violations(lambda capacity: gap.chain_closed(FLOAT, capacity, 2.0, 1))


def test_dudleys_integral_is_the_published_closed_form() -> None:
    """4a + (12/sqrt m) times the integral of sqrt(capacity)/e from a to 1/2, at its best a."""
    capacity, m = 3e4, 10**9
    ends = np.geomspace(1e-6, 0.5, 200_001)
    k = math.sqrt(capacity / m)
    values = 4 * ends + 12 * k * np.log(0.5 / ends)
    assert gap.complexity_published(FLOAT, capacity, m) == pytest.approx(float(values.min()), rel=1e-9)


# ------------------------------------------------------------------- G2: the exact expected supremum


def gap_distribution(values: Array, law: Array, m: int) -> tuple[Array, Array]:
    """(sup_g (E g - mean g), probability) over all samples of size m from a finite domain."""
    counts = np.array([each for each in product(range(m + 1), repeat=len(law)) if sum(each) == m])
    return ((values @ law)[None, :] - counts @ values.T / m).max(axis=1), multinomial(m, law).pmf(counts)


UniformBound = Callable[[Sequence[float], Sequence[float], int, float | None], float]


def uniform_gap_violations(bound: UniformBound) -> list[str]:
    """Finite domains at which the expected supremum, or its delta-quantile, exceeds ``bound``."""
    rng = np.random.default_rng(2)
    domains: list[tuple[Array, Array, int]] = [(cube(8), np.full(8, 1 / 8), 2)]
    domains.append((np.array(list(product((0.4, 0.6), repeat=4))), np.full(4, 0.25), 3))
    for _ in range(14):
        points, m = int(rng.integers(2, 5)), int(rng.integers(1, 12))
        domains.append((random_class(points, rng), rng.dirichlet(np.ones(points) * 2), m))
    found: list[str] = []
    for values, law, m in domains:
        sups, prob = gap_distribution(values, law, m)
        assert abs(prob.sum() - 1) < 1e-9
        for levels in [*(random_levels(rng) for _ in range(4)), [0.5, 0.4, 0.01], [0.5, 0.101]]:
            log_n = [math.log(len(sup_cover(values, e, rng))) for e in levels[1:]]
            if float(sups @ prob) > bound(levels, log_n, m, None) + SLACK:
                found.append(f"mean at {levels}")
            for delta in (0.5, 0.1, 0.01):
                if float(prob[sups > bound(levels, log_n, m, delta) + SLACK].sum()) > delta * (1 + 1e-9):
                    found.append(f"tail at {delta}, {levels}")
    return found


def uniform(levels: Sequence[float], log_n: Sequence[float], m: int, delta: float | None) -> float:
    """G2; without a confidence, the expected supremum."""
    confidence = 0.0 if delta is None else math.log(1 / delta)
    return STRATEGIES["chain"].value(FLOAT, Known(levels[0], levels[1:], log_n, confidence, m, 0.0))


def uniform_single(levels: Sequence[float], log_n: Sequence[float], m: int, delta: float | None) -> float:
    if delta is None:
        return 1.0  # the single-scale form is a statement about quantiles only
    pairs = zip(levels[1:], log_n, strict=True)
    return min(gap.gap_uniform_single(FLOAT, e, n, math.log(1 / delta), m) for e, n in pairs)


BROKEN_GAPS: dict[str, UniformBound] = {
    "without a link": lambda levels, log_n, *of: (
        uniform(levels, log_n, *of) - gap.chain_links(FLOAT, levels, log_n, of[0])[0]
    ),
    "without the residual": lambda levels, *of: uniform(levels, *of) - 2 * levels[-1],
    "a fifth of the links": lambda levels, log_n, *of: uniform(levels, [n / 25 for n in log_n], *of),
}


def test_g2_is_above_the_exact_supremum_and_broken_chains_are_not() -> None:
    for bound in (uniform, uniform_single):
        assert uniform_gap_violations(bound) == []
    for name, broken in BROKEN_GAPS.items():
        assert uniform_gap_violations(broken), name


def all_binary_gap(domain: int, m: int) -> float:
    """E sup (E g - mean g) over all {0,1} functions on a uniform domain: the unseen mass."""
    return (1 - 1 / domain) ** m


def test_the_residual_counts_twice() -> None:
    """All functions with the values 0.4 and 0.6: one centre, and what is not seen may be 0.2 above what is."""
    exact = 0.2 * all_binary_gap(1000, 4)
    value = uniform([0.5, 0.1], [0.0], 4, None)
    assert value - 0.1 < exact <= value


def unseen_mass(ghosts: int | None, counted: int) -> list[str]:
    """Where the chain is below the exact supremum over all binary functions of a finite domain.

    They are covered exactly on `counted` m points, the links times the factor of so many ghosts (None: once).
    """
    found: list[str] = []
    for domain, m in product((2, 5, 40, 1000), (1, 4, 60, 400)):
        links = sum(gap.chain_links(FLOAT, [0.5], [math.log(2) * min(domain, counted * m)], m))
        factor = 1 if ghosts is None else gap.chain_factor(FLOAT, ghosts)
        if all_binary_gap(domain, m) > factor * links + SLACK:
            found.append(f"domain {domain}, m {m}")
    return found


def test_empirical_covers_need_their_factor_and_their_ghosts() -> None:
    for ghosts in (1, 3, 10):
        assert unseen_mass(ghosts, 1 + ghosts) == []
    assert unseen_mass(1, 1) == []  # symmetrisation
    assert unseen_mass(10, 1)  # counted on the sample alone
    assert unseen_mass(None, 1)  # an empirical cover taken for a uniform one


# ------------------------------------------------------------------------------------- G3: the kl inverse


def exact_inverse(q: float, c: float) -> float:
    """sup{p >= q : kl(q|p) <= c}."""
    return float(brentq(lambda p: rel_entr(q, p) + rel_entr(1 - q, 1 - p) - c, q, 1 - 1e-15, xtol=1e-15))  # type: ignore[arg-type]


def test_the_kl_inverse_is_above_at_every_mu_and_tight_at_the_best() -> None:
    rng = np.random.default_rng(9)
    for _ in range(25):
        q, c = 0.8 * float(rng.random()) ** 2, float(rng.exponential(0.3))
        values = [gap.binary_kl_inverse(FLOAT, q, c, mu) for mu in np.geomspace(1e-3, 60, 1500).tolist()]
        assert exact_inverse(q, c) * (1 - 1e-12) <= min(values) <= exact_inverse(q, c) * (1 + 1e-4)
        assert gap.binary_kl_inverse(FLOAT, 0.0, c, None) == pytest.approx(exact_inverse(0.0, c), rel=1e-12)


# ------------------------------------------------------------------------------------------------ P1


def spent(cost: Callable[[int], float], steps: range) -> float:
    """The share of delta that a union bound over all outcomes spends: each takes exp(-cost) of it."""
    return sum(math.exp(-cost(k)) for k in steps)


def test_all_outcomes_that_are_read_off_after_training_share_one_delta() -> None:
    """What they cost leaves hardly anything of it; a quarter of the cost, or no log 1.5 on two sides, spends more."""
    one_sided = spent(lambda k: _steps_cost(FLOAT, k), range(2000))
    two_sided = spent(lambda k: _steps_cost(FLOAT, k, two_sided=True), range(-1500, 1501))
    assert 1 - 1e-3 < one_sided <= 1 < spent(lambda k: _steps_cost(FLOAT, k) / 4, range(2000))
    assert 1 - 2e-3 < two_sided <= 1 < spent(lambda k: _steps_cost(FLOAT, k), range(-1500, 1501))


PLAIN = Setting.of(depth=2)


def cost(p: float | None, q: float | None, *, distance: bool) -> float:
    """The correction of two blocks with such nuclear norms, or with none, read off after training."""

    def budget(nuclear: float | None) -> Budget:
        own = Budget(op=1.0, nuclear=nuclear)
        return Budget(op=1.0, distance=own) if distance else own

    measured = Norms(C=1.0, budgets={"W_V[0]": budget(p), "W_V[1]": budget(q)}, measured=True)
    return posthoc_cost(FLOAT, *correct_for_selection(PLAIN.but(norms=measured)))


@pytest.mark.parametrize("distance", [False, True])
def test_all_outcomes_of_a_norm_of_tied_matrices_share_one_delta(distance: bool) -> None:
    free = cost(None, None, distance=distance)
    sizes = [(_grid_value(k), k) for k in (0, 1, 40)]
    paid = [math.exp(free - cost(size, _grid_value(0), distance=distance)) for size, _ in sizes]
    assert paid == pytest.approx([1 / ((k + 1) * (k + 2)) for _, k in sizes])
    assert cost(0.5, None, distance=distance) == free  # which norms are measured is fixed before the data
