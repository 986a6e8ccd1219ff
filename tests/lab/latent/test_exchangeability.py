"""Exchangeable or not, extendible or not, sufficient or not: each with laws for which the answer is known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.latent.exchangeability import (
    check_model,
    extendibility,
    extension_distance,
    largest_extension,
    mixture_distance,
    moment_defect,
    order_gap,
)
from boundcalc.lab.latent.information import (
    exact_information,
    gaussian_information,
    linear_summaries,
    sampled_information,
    summaries,
)
from boundcalc.lab.latent.models import (
    BetaBernoulli,
    CategoricalMixture,
    DirichletCategorical,
    GaussianMean,
    LatentModel,
)
from boundcalc.statements.latent import finite_mixture_distance
from tests.lab.latent.test_models import by_model


@by_model
def test_models_are_exchangeable(model: LatentModel) -> None:
    """The chain of predictive densities depends on the order in form; it may not in value."""
    found = check_model(model, 9)
    assert found.worst < 1e-9
    assert found.statistics == tuple(model.statistics)


def test_a_model_that_is_not_what_it_says_is_seen() -> None:
    class Sloppy(BetaBernoulli):
        """Its statistic of shares forgets that there are several."""

        @property
        def statistics(self) -> Any:
            right = super().statistics
            return {**right, "mean": lambda tokens: np.append(right["mean"](tokens)[:-1], 1)}

    class Hasty(BetaBernoulli):
        """Later tokens count less."""

        def log_by_chain(self, tokens: Any) -> float:
            return super().log_by_chain(tokens) - 0.1 * float(np.arange(len(tokens)) @ tokens)

    assert check_model(Sloppy(2.0, 1.0)).posterior > 0.01
    assert check_model(Sloppy(2.0, 1.0)).order < 1e-9
    assert check_model(Hasty(2.0, 1.0)).order > 0.01


def test_a_markov_chain_is_not() -> None:
    def log_density(bits: Any) -> float:
        stays = sum(a == b for a, b in itertools.pairwise(bits.tolist()))
        return stays * math.log(0.9) + (len(bits) - 1 - stays) * math.log(0.1)

    rng = np.random.default_rng(1)
    assert order_gap(log_density, np.array([0, 0, 0, 1, 1, 1, 0, 1]), rng) > 1


def urn_law(ones: int, total: int, drawn: int) -> Any:
    """P(k ones among so many drawn without replacement)."""
    ways = [math.comb(ones, k) * math.comb(total - ones, drawn - k) for k in range(drawn + 1)]
    return np.array(ways) / math.comb(total, drawn)


def binomial_mixture(n: int, points: list[float]) -> Any:
    k = np.arange(n + 1)
    choose = np.array([math.comb(n, int(i)) for i in k])
    return sum(choose * z**k * (1 - z) ** (n - k) for z in points) / len(points)


def test_an_urn_extends_as_far_as_the_urn() -> None:
    for ones, total, drawn in ((3, 8, 4), (1, 6, 3), (5, 10, 2)):
        law = urn_law(ones, total, drawn)
        assert law.sum() == pytest.approx(1)
        assert largest_extension(law) == total
        (_, within), (beyond, _) = extension_distance(law, total), extension_distance(law, total + 1)
        assert within < 1e-9 < beyond
        assert moment_defect(law) < -1e-6
        assert mixture_distance(law) > 1e-3


def test_how_far_a_law_extends_is_not_what_a_solver_let_pass() -> None:
    """Where a linear programme is solved to 1e-7 only, these urns seem to end at 52 and 473."""
    for ones, total, drawn in ((30, 60, 6), (250, 500, 4)):
        assert largest_extension(urn_law(ones, total, drawn)) == total


def test_a_law_that_extends_further_than_is_looked_is_not_said_to_end_there() -> None:
    assert largest_extension(urn_law(15, 30, 3), most=20) == 20
    assert largest_extension(urn_law(15, 30, 3), most=40) == 30


@pytest.mark.parametrize("law", [[math.nan, 1.0], [math.inf, 0.0], [0.5, 0.6], [1.0]])
def test_what_is_no_law_is_refused(law: list[float]) -> None:
    with pytest.raises(InvalidSetting, match="sum to 1, got"):
        largest_extension(law)


def test_mixtures_of_coins_extend_for_ever() -> None:
    for points in ([0.3], [0.1, 0.9], [0.2, 0.5, 0.7]):
        law = binomial_mixture(6, points)
        assert largest_extension(law, most=200) is None
        assert moment_defect(law) > -1e-12
    assert mixture_distance(binomial_mixture(6, [0.5])) < 1e-3


def test_x1_bounds_the_distance_to_a_mixture_and_a_tenth_of_it_does_not() -> None:
    worst = 0.0
    for total in (6, 10, 20):
        for ones in range(1, total):
            for drawn in range(2, 6):
                bound = finite_mixture_distance(FLOAT, drawn, total)
                distance = mixture_distance(urn_law(ones, total, drawn), points=150)
                assert distance <= bound + 1e-9
                worst = max(worst, distance / bound)
    assert worst > 0.1


def test_data_without_replacement_warns_and_de_finetti_data_does_not() -> None:
    rng = np.random.default_rng(2)
    deck = np.array([1] * 4 + [0] * 4)
    urns = np.array([rng.permutation(deck)[:5] for _ in range(3000)])
    found = extendibility(urns)
    assert found.low <= -1 / 7 <= found.high
    assert 8 <= found.most <= 9
    assert "extend to at most 8 exchangeable tokens" in found.warning
    _, bits = BetaBernoulli(2.0, 2.0).draw(rng, 5, 3000)
    calm = extendibility(bits)
    assert calm.warning == ""
    assert calm.low <= 1 / 5 <= calm.high  # Var(z)/Var(x) = 1/(a + b + 1)
    with pytest.raises(InvalidSetting, match="at least 10"):
        extendibility(bits[:5])


FINITE = (
    BetaBernoulli(2.0, 1.0),
    DirichletCategorical((0.5, 1.0, 1.5)),
    CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.2, 0.7)), (0.4, 0.6)),
)
by_finite = pytest.mark.parametrize("model", FINITE, ids=lambda m: m.name)


@by_finite
def test_the_posterior_leaves_nothing_unsaid(model: Any) -> None:
    length = 8 if model.values == 2 else 6
    told = list(summaries(model, length).items())
    assert [name for name, summary in told if exact_information(model, summary, length).upper < 1e-12] == [
        "posterior",
        "counts",
        "sorted sequence",
    ]
    for statistic in model.statistics.values():
        assert exact_information(model, statistic, length).upper < 1e-12
    assert exact_information(model, lambda x: x, length).upper < 1e-12


@by_finite
def test_summaries_that_are_not_sufficient_are_seen(model: Any) -> None:
    length = 8 if model.values == 2 else 6
    nothing = exact_information(model, lambda x: 0, length).estimate
    half = exact_information(model, lambda x: np.sort(x[: length // 2]), length).estimate
    largest = exact_information(model, lambda x: x.max(), length).estimate
    assert 1e-3 < half < nothing
    assert 1e-3 < largest < nothing


def test_exact_information_of_one_bit_by_hand() -> None:
    """Uniform prior, one token seen and forgotten: I = log 2 - H(2/3)."""
    found = exact_information(BetaBernoulli(1.0, 1.0), lambda x: 0, 1)
    by_hand = math.log(2) + (2 / 3) * math.log(2 / 3) + (1 / 3) * math.log(1 / 3)
    assert found.estimate == pytest.approx(by_hand, rel=1e-12)


@by_finite
def test_sampled_information_brackets_the_exact_one(model: Any) -> None:
    rng = np.random.default_rng(3)
    sufficient = sampled_information(model, summaries(model, 10)["posterior"], 10, rng, n=4000)
    assert sufficient.upper < 2e-2
    assert sufficient.lower < 1e-12
    length = 6
    for summary in (lambda x: x[:3].sum(), lambda x: 0):
        exact = exact_information(model, summary, length).estimate
        found = sampled_information(model, summary, length, rng, n=1500)
        assert found.lower <= exact <= found.upper
        assert found.lower > 0


def test_gaussian_information() -> None:
    model = GaussianMean(2, 1.5, 0.5)
    assert gaussian_information(model, np.ones((1, 6)), 6).estimate < 1e-12
    assert gaussian_information(model, np.eye(6), 6).estimate < 1e-12
    part = gaussian_information(model, np.array([[1, 1, 1, 0, 0, 0]]), 6).estimate
    skew = gaussian_information(model, np.array([[2, 1, 1, 1, 1, 1]]), 6).estimate
    assert 0 < skew < part
    by_hand = 2 * 0.5 * math.log((0.5 + 1 / (1 / 1.5 + 3 / 0.5)) / (0.5 + 1 / (1 / 1.5 + 6 / 0.5)))
    assert part == pytest.approx(by_hand, rel=1e-10)
    told = {name: gaussian_information(model, a, 6).estimate for name, a in linear_summaries(6).items()}
    assert [name for name, left in told.items() if left < 1e-12] == ["mean", "whole sequence"]


def test_too_long_to_enumerate() -> None:
    with pytest.raises(InvalidSetting, match="--sequences 4000, sampled_information"):
        exact_information(BetaBernoulli(), lambda x: 0, 30)
