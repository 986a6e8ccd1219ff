"""Scores of test sets: against SciPy on random cases, coverage by exact enumeration, files that claim too much, and
plans."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom, binomtest, multinomial

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.predictors.needed import plan_difference, plan_held_out
from boundcalc.predictors.scores import Score

CASES = 1000


def error(errors: int, n: int, delta: float = 0.05, looks: int = 1) -> Score:
    return Score("error", {"errors": errors, "n": n}, delta, looks)


def pair(first: int, second: int, n: int, delta: float = 0.05) -> Score:
    return Score("difference", {"first": first, "second": second, "n": n}, delta)


def test_intervals_and_paired_tests_are_scipys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(CASES):
        n = int(10 ** rng.uniform(0, 4))
        errors, looks = int(rng.integers(0, n + 1)), int(rng.integers(1, 9))
        delta = float(rng.choice([0.5, 0.1, 0.05, 0.001]))
        found = error(errors, n, delta, looks)
        exact = binomtest(errors, n).proportion_ci(1 - delta / looks, "exact")
        upper = binomtest(errors, n, alternative="less").proportion_ci(1 - delta / looks, "exact").high
        assert found.interval == (pytest.approx(exact.low, rel=1e-9, abs=1e-12), pytest.approx(exact.high, rel=1e-9))
        if errors:
            assert found.interval[0] <= betaincinv(errors, n - errors + 1, delta / looks / 2) * (1 + 1e-12)
        assert found.upper == pytest.approx(upper, rel=1e-9)
        first = int(rng.integers(0, errors + 1))
        p = pair(first, errors - first, n).p_value
        assert p == pytest.approx(binomtest(first, errors).pvalue if errors else 1.0, rel=1e-9)


def test_a_published_table() -> None:
    """Clopper and Pearson's limits as R's binom.test prints them: 10 of 100, and 0 of 25."""
    assert error(10, 100).interval == (pytest.approx(0.04900469, abs=5e-9), pytest.approx(0.17622260, abs=5e-9))
    assert error(0, 25).interval == (0.0, pytest.approx(0.1371852, abs=5e-8))


def covered(scores: Mapping[Any, Score], chances: Mapping[Any, float], true: float) -> float:
    """The smaller chance, of an interval with the true value within and of an upper limit that it is at most."""
    inside = math.fsum(p for k, p in chances.items() if scores[k].interval[0] <= true <= scores[k].interval[1])
    return min(inside, math.fsum(p for k, p in chances.items() if true <= scores[k].upper))


@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_errors_are_covered(delta: float) -> None:
    n = 12
    scores = {k: error(k, n, delta) for k in range(n + 1)}
    rates = np.linspace(0.01, 0.99, 99).tolist()
    least = min(covered(scores, {k: float(binom.pmf(k, n, rate)) for k in scores}, rate) for rate in rates)
    assert 1 - delta - 1e-12 <= least < 1 - delta / 8  # and not by saying nothing


@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_differences_are_covered(delta: float) -> None:
    n = 8
    scores = {(k, j): pair(k, j, n, delta) for k in range(n + 1) for j in range(n + 1 - k)}
    for a, b in itertools.product(np.linspace(0, 1, 13).tolist(), repeat=2):
        if a + b > 1:
            continue
        chances = {k: float(multinomial.pmf([*k, n - sum(k)], n, [a, b, max(0.0, 1 - a - b)])) for k in scores}
        assert covered(scores, chances, a - b) >= 1 - delta - 1e-12
        if a == b:
            assert sum(p for k, p in chances.items() if (scores[k].p_value or 0) <= delta) <= delta + 1e-12


def weighted(pairs: Sequence[tuple[float, float]], delta: float, largest: float = 1.0) -> Score:
    losses, weights = (list(part) for part in zip(*pairs, strict=True))
    return Score("loss", {"losses": losses, "weights": weights, "largest": largest}, delta)


@pytest.mark.parametrize("delta", [0.5, 0.05])
@pytest.mark.parametrize(
    "values",
    [
        [(0.0, 1.0), (1.0, 1.0)],
        [(0.2, 1.0), (0.3, 1.0), (0.9, 1.0)],
        [(0.0, 1.0), (1.0, 1.0), (0.0, 0.25)],
        [(1.0, 0.5), (0.0, 1.0), (0.4, 0.0)],
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_means_are_covered(n: int, delta: float, values: list[tuple[float, float]]) -> None:
    """Every sample of n pairs of a loss and its weight (1 in S3), in every order; the truth is E[w x] / E[w]."""
    found = {x: weighted(x, delta) for x in itertools.product(values, repeat=n) if any(w for _, w in x)}
    rng, least, forgotten = np.random.default_rng(0), 1.0, 1.0
    for _ in range(16):
        chances = rng.dirichlet(np.full(len(values), 0.7))
        true = sum(c * w * x for c, (x, w) in zip(chances, values, strict=True))
        true /= sum(c * w for c, (_, w) in zip(chances, values, strict=True))
        mass = {x: math.prod(chances[values.index(each)] for each in x) for x in found}
        unsaid = 1 - sum(mass.values())  # all weights 0: nothing is claimed
        least = min(least, unsaid + covered(found, mass, true))
        means = {x: float(np.mean([loss for loss, _ in x])) for x in found}
        forgotten = min(forgotten, unsaid + sum(m for x, m in mass.items() if means[x] + 0.2 >= true))
    assert least >= 1 - delta - 1e-12
    plain = delta == 0.5 or len({w for _, w in values}) == 1
    assert plain or forgotten < 1 - delta  # negative control: the plain mean does not cover the weighted one


def test_weights_change_what_is_certified() -> None:
    x = [1.0, 0.0, 0.3, 0.0] * 50
    plain, same = Score("loss", {"losses": x}), weighted([(each, 3.0) for each in x], 0.05, 3.0)
    assert (same.value, same.upper, same.interval) == (plain.value, plain.upper, plain.interval)
    light = weighted([(each, 1.0 if each < 1 else 0.1) for each in x], 0.05)
    assert light.value < plain.value
    assert weighted([(each, 1.0) for each in x], 0.05, 40.0).upper > same.upper  # a largest weight that is never met
    facts = same.to_json()["facts"]
    for change in (
        {**facts, "largest": 2.9},
        {**facts, "weights": facts["weights"][1:]},
        {**facts, "weights": [-1.0, *facts["weights"][1:]]},
        {**facts, "weights": [0.0] * len(x)},
        {**facts, "weights": [0.5, *facts["weights"][1:]]},
    ):
        with pytest.raises(CertificateError):
            Score.from_json({**same.to_json(), "facts": change})
    assert Score.from_json(same.to_json()).interval == same.interval


def test_limits_of_means_come_near_the_exact_ones_of_errors() -> None:
    x = [1.0] * 40 + [0.0] * 460
    betting, exact = Score("loss", {"losses": x}).upper, error(40, 500).upper
    assert exact < betting < 1.2 * exact
    wide = Score("graded difference", {"losses": [(1 + each) / 2 for each in x]}).interval
    assert wide[0] < 0.08 < wide[1]


def test_what_a_file_claims_is_what_follows() -> None:
    score = pair(40, 20, 1000)
    assert Score.from_json(score.to_json()).to_json() == score.to_json()
    claims = score.to_json()["claims"]
    low, high = claims["interval"]
    for change in (
        {"claims": {**claims, "upper": claims["upper"] * 0.99}},
        {"claims": {**claims, "interval": [low * 1.01, high]}},
        {"claims": {**claims, "interval": [low, high * 0.99]}},
        {"claims": {**claims, "p_value": claims["p_value"] / 2}},
        {"claims": {**claims, "p_value": None}},
        {"claims": {**claims, "upper": math.inf}},
        {"delta": 0.5},
        {"looks": 10},
        {"looks": 0},
        {"kind": "error"},
        {"claims": {**claims, "statement": "S1"}},
        {"facts": {"first": 40, "second": 961, "n": 1000}},
        {"facts": {"first": True, "second": 2, "n": 1000}},
        {"more": 1},
        {"format": "boundcalc-score/1"},
    ):
        with pytest.raises(CertificateError):
            Score.from_json({**score.to_json(), **change})
    for losses in ([], [0.5, 1.1], [float("nan")], [-0.1], "0.5"):
        with pytest.raises(CertificateError):
            Score("loss", {"losses": losses})


def test_plans_are_what_they_promise() -> None:
    plan = plan_held_out(0.1, 0.05)
    assert plan.n == 263
    assert plan_held_out(0.1, 0.08).n == 1845
    assert plan_held_out(0.1, 0.05, looks=10).n > plan.n
    with pytest.raises(InvalidSetting, match="must be above"):
        plan_held_out(0.05, 0.05)
    with pytest.raises(InvalidSetting, match="differ by"):
        plan_difference(0.3, 0.2)


def below_target(errors: int, n: int, target: float, delta: float, looks: int) -> bool:
    return error(errors, n, delta, looks).upper <= target


def finds_the_better(errors: int, discordant: int, delta: float) -> bool:
    return 2 * errors < discordant and (pair(errors, discordant - errors, discordant).p_value or 1) <= delta


def most_errors(sizes: Sequence[int], as_planned: Callable[..., bool], *question: float) -> list[int]:
    """For each number of examples the most errors at which a score is as planned; -1 where none is."""
    found, k = list[int](), -1
    for n in sizes:
        while k + 1 <= n and as_planned(k + 1, n, *question):
            k += 1
        found.append(k)
    return found


TIES = [(0.5, 0.2, 0.5, 0.5, 1), (0.5, 0.1, 0.5, 0.25, 1), (0.5, 0.2, 0.5, 0.0625, 1)]
"""Half of all samples is exactly the level here, and limits are rounded up: they come out above the target."""


@pytest.mark.parametrize("cases", [10, pytest.param(CASES, marks=pytest.mark.slow)])
def test_plans_are_those_of_the_scores(cases: int) -> None:
    """On ties and random questions: from the planned n on every n is enough, by certificates of every outcome."""
    rng = np.random.default_rng(0)
    questions = list(TIES)
    for _ in range(cases - cases // 10):
        target = float(rng.uniform(0.05, 0.5))
        truth, power = float(rng.uniform(0.1, 0.55)) * target, float(rng.choice([0.5, 0.8, 0.9]))
        questions.append((target, truth, power, float(rng.choice([0.5, 0.1, 0.05, 0.01])), int(rng.integers(1, 5))))
    for target, truth, power, delta, looks in questions:
        plan = plan_held_out(target, truth, power, delta, looks)
        sizes = range(1, plan.n + 41)
        allowed = most_errors(sizes, below_target, target, delta, looks)
        powers = binom.cdf(allowed, sizes, truth)
        assert (plan.allowed, plan.power) == (allowed[plan.n - 1], pytest.approx(powers[plan.n - 1], rel=1e-9))
        assert (powers[plan.n - 1 :] >= power).all()
        assert plan.n == 1 or powers[plan.n - 2] < power
    for case in range(1 + cases // 10):
        discordant, delta = float(rng.uniform(0.1, 0.6)), float(rng.choice([0.1, 0.05]))
        gap, power = float(rng.uniform(0.3, 0.9)) * discordant, float(rng.choice([0.5, 0.8]))
        gap, discordant, power, delta = (gap, discordant, power, delta) if case else (0.3, 0.3, 0.5, 0.0625)
        plan = plan_difference(gap, discordant, power, delta)
        allowed = most_errors(range(plan.n + 1), finds_the_better, delta)
        wins = binom.cdf(allowed, range(plan.n + 1), (1 - gap / discordant) / 2)
        before, last = (float(binom.pmf(range(n + 1), n, discordant) @ wins[: n + 1]) for n in (plan.n - 1, plan.n))
        assert before < power <= last == pytest.approx(plan.power, rel=1e-9)
