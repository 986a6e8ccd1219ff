"""The package's G and P1 against classes whose complexity, gap or risk is known, by the adversaries of the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import FLOAT
from boundcalc.proof.checker import check
from boundcalc.statements import gap
from boundcalc.statements.posthoc import union_cost
from tests.oracle import gap_mp
from tests.proof.samples import proved
from tests.soundness import test_gap_theorems as theorems

Chain = Callable[[Sequence[float], Sequence[float], int], float]


def links(levels: Sequence[float], log_n: Sequence[float], m: int) -> float:
    return gap.chain_sum(FLOAT, levels, log_n, m)


def first_link_left_out(levels: Sequence[float], log_n: Sequence[float], m: int) -> float:
    return gap.chain_sum(FLOAT, levels[1:], log_n[1:], m)


def own_radius(levels: Sequence[float], log_n: Sequence[float], m: int) -> float:
    return gap.chain_sum(FLOAT, levels[1:], log_n, m)


def halved_counts(levels: Sequence[float], log_n: Sequence[float], m: int) -> float:
    return gap.chain_sum(FLOAT, levels, [n / 2 for n in log_n], m)


def complexity(chain: Chain, residual: float = 1.0) -> theorems.ChainBound:
    """G1 with some links: e_J + the sum."""
    return lambda levels, log_n, m, rng: residual * levels[-1] + chain(levels, log_n, m)


def test_the_chain_is_above_exact_complexities() -> None:
    assert theorems.chaining_violations(complexity(links)) == []


@pytest.mark.parametrize("chain", [first_link_left_out, own_radius, halved_counts], ids=lambda chain: chain.__name__)
def test_a_broken_chain_is_noticed(chain: Chain) -> None:
    assert theorems.chaining_violations(complexity(chain))


def test_a_chain_without_its_residual_is_noticed() -> None:
    assert theorems.chaining_violations(complexity(links, 0.0))


def uniform_gap(chain: Chain, factor: float = 1.0) -> theorems.UniformBound:
    """G2 for uniform covers; without a confidence, the expected supremum."""

    def bound(
        levels: Sequence[float], log_n: Sequence[float], m: int, delta: float | None, rng: np.random.Generator
    ) -> float:
        inverse = 0.0 if delta is None else math.log(1 / delta)
        return gap.gap_chain(FLOAT, levels[-1], chain(levels, log_n, m), factor, inverse, m)

    return bound


def test_uniform_chains_are_above_exact_gaps() -> None:
    factor = gap.chain_factor(FLOAT, None, uniform=True)
    assert theorems.uniform_gap_violations(uniform_gap(links, factor)) == []


def test_broken_uniform_chains_are_noticed() -> None:
    assert theorems.uniform_gap_violations(uniform_gap(first_link_left_out))
    assert theorems.uniform_gap_violations(uniform_gap(links, 0.2))


def unseen_mass(factor: Callable[[int], float], points: Callable[[int, int], int]) -> list[str]:
    """All binary functions of a finite domain, covered exactly on so many points."""

    def bound(domain: int, m: int, alpha: int) -> float:
        log_n = math.log(2) * min(domain, points(m, alpha))
        return gap.gap_chain(FLOAT, 0.0, links([0.5, 0.0], [log_n], m), factor(alpha), 0.0, m)

    return theorems.all_binary_violations(bound)


def test_empirical_covers_need_their_factor_and_their_ghosts() -> None:
    def ghosts(alpha: int) -> float:
        return gap.chain_factor(FLOAT, alpha, uniform=False)

    def symmetrised(alpha: int) -> float:
        return gap.chain_factor(FLOAT, None, uniform=False)

    def once(alpha: int) -> float:
        return gap.chain_factor(FLOAT, None, uniform=True)

    assert unseen_mass(ghosts, lambda m, alpha: (1 + alpha) * m) == []
    assert unseen_mass(symmetrised, lambda m, alpha: m) == []
    assert unseen_mass(ghosts, lambda m, alpha: m)  # counted on the sample alone
    assert unseen_mass(once, lambda m, alpha: m)  # an empirical cover taken for a uniform one


# ------------------------------------------------------------------------------------------------ G3, G4, G5


def uniform_risk(log_n: float, m: int, delta: float) -> theorems.ErrorBound:
    return lambda q: gap.risk_uniform(FLOAT, q, log_n, math.log(1 / delta), m, 0.8)


def ghost_risk(alpha: int) -> Callable[[float, int, float], theorems.ErrorBound]:
    def make(log_n: float, m: int, delta: float) -> theorems.ErrorBound:
        return lambda q: gap.risk_ghost(FLOAT, q, log_n, math.log(1 / delta), m, alpha, 0.8)

    return make


@pytest.mark.parametrize("make", [uniform_risk, ghost_risk(1), ghost_risk(20)], ids=["G3", "G5", "G5 with 20"])
def test_risks_fail_as_seldom_as_they_say(make: Callable[[float, int, float], theorems.ErrorBound]) -> None:
    assert theorems.independent_search(make) == []
    assert theorems.margin_violations(make) == []


@pytest.mark.parametrize("make", [uniform_risk, ghost_risk(20)], ids=["G3", "G5"])
def test_risks_with_a_lower_constant_are_noticed(make: Callable[[float, int, float], theorems.ErrorBound]) -> None:
    assert theorems.independent_search(lambda log_n, m, delta: make(0.0, m, delta))  # no union
    assert theorems.independent_search(lambda log_n, m, delta: make(log_n, 2 * m, delta))


@pytest.mark.parametrize("alpha", [1, 4, 30])
def test_zero_errors(alpha: int) -> None:
    def bound(log_n: float, m: int, delta: float) -> float:
        return gap.risk_realizable(FLOAT, log_n, math.log(1 / delta), m, alpha)

    assert theorems.zero_error_search(bound) == []
    if alpha == 1:
        assert theorems.zero_error_search(lambda log_n, m, delta: bound(0.0, m, delta))
        assert theorems.zero_error_search(lambda log_n, m, delta: bound(log_n, m, delta) / 2)


# ------------------------------------------------------------------------------------------------ P1


def test_choices_after_training_must_be_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(one_sided: Sequence[int], two_sided: Sequence[int] = ()) -> float:
        both = [*(False for _ in one_sided), *(True for _ in two_sided)]
        return union_cost(FLOAT, [*one_sided, *two_sided], both)

    monkeypatch.setattr(theorems.gap, "p1_cost", cost)
    assert theorems.hindsight_violations(paid=True) == []
    assert theorems.hindsight_violations(paid=False)
    theorems.test_p1_weights_and_rounding()
    monkeypatch.setattr(theorems.gap, "p1_cost", lambda one, two=(): cost(one, two) / 4)
    assert theorems.hindsight_violations(paid=True)


# ------------------------------------------------------------------------------------------------ the checker, broken


def moved(monkeypatch: pytest.MonkeyPatch, name: str, broken: Any) -> bool:
    """Whether certificates that pass would claim too little for a checker with one formula broken."""
    certificates = [c for c in proved("edelman") if c.levels]
    honest = [check(c).log_value for c in certificates]
    with monkeypatch.context() as patch:
        patch.setattr(gap, name, broken)
        values: list[float] = []
        for certificate in certificates:
            try:
                values.append(check(certificate).log_value)
            except CertificateError:
                values.append(math.inf)
    return any(abs(a - b) > 1e-6 for a, b in zip(honest, values, strict=True))


def test_every_formula_of_g_decides_some_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """No formula is computed in vain: breaking any of them changes what the checker finds."""
    for name in (
        *("chain_links", "deviation", "chain_factor", "gap_chain", "gap_uniform_single", "gap_closed"),
        *("gap_published", "risk_uniform", "risk_realizable", "binary_kl_inverse"),
    ):
        formula = getattr(gap, name)
        assert moved(monkeypatch, name, lambda *a, formula=formula, **k: formula(*a, **k) * 2), name
    assert not moved(monkeypatch, "deviation", gap.deviation)


def test_no_count_of_permutations_is_below_the_exact_one() -> None:
    """G4 on a grid of hard cases, also where errors fill the ghosts; a middle taken too far is seen."""

    def below(value: Callable[[float, int, int], float]) -> int:
        found = 0
        for m, alpha in ((3, 1), (10, 1), (50, 1), (50, 2), (200, 5), (1000, 32)):
            for part in range(1, 60):
                log_n = part * m / 40
                exact = float(gap_mp.g4_exact(log_n, m, 0.05, alpha))
                found += min(1.0, value(log_n, m, alpha)) < exact - 1e-12
        return found

    assert below(lambda log_n, m, alpha: gap.risk_realizable(FLOAT, log_n, math.log(20), m, alpha)) == 0

    def too_far(log_n: float, m: int, alpha: int) -> float:
        c, ghosts = log_n + math.log(40), alpha * m
        errors = min(gap.risk_realizable(FLOAT, log_n, math.log(20), m, alpha) * ghosts * 1.1, ghosts)
        return math.ceil(c / math.log1p(m / (ghosts - errors / 2))) / ghosts

    assert below(too_far) > 10
