"""Conjugate posteriors against brute-force Bayes on grids, against sympy, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.kernels import Polynomial, RandomFeatures
from boundcalc.lab.latent.models import (
    MODELS,
    BetaBernoulli,
    CategoricalMixture,
    DirichletCategorical,
    GaussianLinear,
    GaussianMean,
    GaussianMixture,
    LatentModel,
)
from boundcalc.lab.latent.symbolic import (
    SYMBOLIC,
    beta_bernoulli,
    dirichlet_categorical,
    gaussian_linear,
    gaussian_mean,
    mixture,
)

Array = NDArray[np.float64]
INSTANCES: tuple[LatentModel, ...] = (
    BetaBernoulli(2.5, 0.7),
    DirichletCategorical((0.5, 1.5, 2.0, 1.0)),
    GaussianMean(3, 2.0, 0.5),
    GaussianLinear(2, 2, Polynomial(2, 0.5), 1.5, 0.3),
    GaussianLinear(3, 1, RandomFeatures(4), 0.7, 0.2),
    CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.1, 0.8), (0.3, 0.4, 0.3)), (0.5, 0.2, 0.3)),
    GaussianMixture(((-1.0, 0.5), (1.0, 0.0), (0.0, 2.0)), (0.2, 0.3, 0.5), 0.8),
)
by_model = pytest.mark.parametrize("model", INSTANCES, ids=lambda m: m.name)


def grid_posterior(log_prior: Array, log_likelihood: Array) -> Array:
    """Bayes' rule on a grid of equal cells."""
    scores = log_prior + log_likelihood
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_beta_bernoulli_is_bayes_on_a_grid() -> None:
    model = BetaBernoulli(2.5, 1.7)
    _, tokens = model.draw(np.random.default_rng(0), 14)
    x = tokens[0]
    z = (np.arange(200_000) + 0.5) / 200_000
    weights = grid_posterior(
        (model.a - 1) * np.log(z) + (model.b - 1) * np.log(1 - z), np.where(x[:, None], np.log(z), np.log(1 - z)).sum(0)
    )
    posterior = model.posterior(x)
    assert posterior.predictive[1] == pytest.approx(float(weights @ z), abs=1e-9)
    assert posterior.variance[1] == pytest.approx(float(weights @ z**2 - (weights @ z) ** 2), abs=1e-9)
    density = beta.pdf(z[::10_000], posterior.alpha[1], posterior.alpha[0])
    assert density == pytest.approx(weights[::10_000] * 200_000, rel=1e-6)


def test_dirichlet_categorical_is_bayes_on_a_grid() -> None:
    model = DirichletCategorical((1.5, 2.0, 2.5))
    _, tokens = model.draw(np.random.default_rng(1), 11)
    side = (np.arange(1500) + 0.5) / 1500
    first, second = (axis.ravel() for axis in np.meshgrid(side, side))
    inside = first + second < 1
    z = np.stack([first, second, 1 - first - second], axis=-1)[inside]
    prior = ((np.array(model.alpha) - 1) * np.log(z)).sum(-1)
    weights = grid_posterior(prior, np.log(z)[:, tokens[0]].sum(-1))
    assert model.posterior(tokens[0]).mean == pytest.approx(weights @ z, abs=1e-4)


def test_gaussian_mean_is_bayes_on_a_grid() -> None:
    model = GaussianMean(1, 2.0, 0.7)
    _, tokens = model.draw(np.random.default_rng(2), 9)
    z = np.linspace(-8, 8, 200_001)
    weights = grid_posterior(-(z**2) / (2 * 2.0), -np.square(tokens[0] - z).sum(0) / (2 * 0.7))
    posterior = model.posterior(tokens[0])
    assert posterior.mean[0] == pytest.approx(float(weights @ z), abs=1e-10)
    assert posterior.variance == pytest.approx(float(weights @ z**2 - (weights @ z) ** 2), abs=1e-10)


def test_gaussian_linear_is_bayes_on_a_grid() -> None:
    model = GaussianLinear(2, 1, prior_variance=1.3, noise_variance=0.4)
    _, tokens = model.draw(np.random.default_rng(3), 12)
    keys, values = model.split(tokens[0])
    side = np.linspace(-6, 6, 1201)
    z = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=-1)
    weights = grid_posterior(-np.square(z).sum(-1) / (2 * 1.3), -np.square(values - keys @ z.T).sum(0) / (2 * 0.4))
    posterior = model.posterior(tokens[0])
    assert posterior.mean[:, 0] == pytest.approx(weights @ z, abs=1e-8)
    centred = z - weights @ z
    assert posterior.covariance == pytest.approx((weights[:, None] * centred).T @ centred, abs=1e-7)
    q = np.array([[0.6, -0.8]])
    mean, variance = posterior.predictive(q)
    assert mean[0, 0] == pytest.approx(float(weights @ (z @ q[0])), abs=1e-8)
    assert variance[0] == pytest.approx(float(weights @ (centred @ q[0]) ** 2) + 0.4, abs=1e-7)


def test_finite_mixtures_are_bayes() -> None:
    model = CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.1, 0.8)), (0.3, 0.7))
    tokens = np.array([0, 2, 2, 1])
    likelihoods = np.array([0.6 * 0.1 * 0.1 * 0.3, 0.1 * 0.8 * 0.8 * 0.1])
    after = np.array([0.3, 0.7]) * likelihoods
    assert model.posterior(tokens).weights == pytest.approx(after / after.sum(), rel=1e-13)
    assert model.log_joint(tokens) == pytest.approx(np.log(after.sum()), rel=1e-13)


@by_model
def test_the_joint_density_is_the_product_of_predictive_ones(model: LatentModel) -> None:
    _, tokens = model.draw(np.random.default_rng(4), 7)
    assert model.log_by_chain(tokens[0]) == pytest.approx(model.log_joint(tokens[0]), abs=1e-9)


@by_model
def test_different_sufficient_statistics_give_one_posterior(model: LatentModel) -> None:
    _, tokens = model.draw(np.random.default_rng(5), 20)
    found = [model.posterior_of(name, statistic(tokens[0])) for name, statistic in model.statistics.items()]
    assert len(found) >= 2
    for other in found[1:]:
        assert other.mean == pytest.approx(found[0].mean, abs=1e-10)
        assert getattr(other, "variance", 0) == pytest.approx(getattr(found[0], "variance", 0), abs=1e-10)
    with pytest.raises(InvalidSetting, match="did you mean 'sums'"):
        model.posterior_of("sum", None)


@by_model
def test_posteriors_are_calibrated_on_draws_of_the_model(model: LatentModel) -> None:
    """E of (z - E[z|X]) must vanish, also given parts of X: the mean of what is left correlates with nothing."""
    rng = np.random.default_rng(6)
    z, tokens = model.draw(rng, 5, 3000)
    if isinstance(model, CategoricalMixture | GaussianMixture):
        target = np.eye(len(model.weights))[z]
    else:
        target = np.asarray(z, dtype=float)
    means = np.stack([model.posterior(x).mean for x in tokens])
    if isinstance(model, BetaBernoulli):
        means = means[:, 1]
    residual = (target - means).reshape(3000, -1)
    first = np.asarray(tokens, dtype=float).reshape(3000, -1)[:, :1]
    for values in (residual, residual * first, residual * means.reshape(3000, -1)):
        score = values.mean(0) / (values.std(0, ddof=1) / np.sqrt(3000) + 1e-12)
        assert np.abs(score).max() < 4.5


# ------------------------------------------------------------------------ symbols


@pytest.mark.parametrize("build", [beta_bernoulli, dirichlet_categorical, gaussian_mean, gaussian_linear])
def test_symbolic_posteriors_are_proportional_to_prior_times_likelihood(build: Any) -> None:
    assert build().residual() == [0] * len(build().latent)


def test_a_wrong_symbolic_posterior_is_seen() -> None:
    from dataclasses import replace

    right = beta_bernoulli()
    assert replace(right, log_prior=2 * right.log_prior).residual() != [0]


def test_symbolic_and_numeric_posteriors_agree() -> None:
    rng = np.random.default_rng(7)
    bits = BetaBernoulli(1.3, 2.2)
    x = bits.draw(rng, 9)[1][0]
    at = {"a": 1.3, "b": 2.2, "L": 9, "s": int(x.sum())}
    formulas = beta_bernoulli()
    assert _at(formulas.predictive["probability"], at) == pytest.approx(bits.posterior(x).predictive[1], rel=1e-13)
    assert _at(formulas.parameters["variance"], at) == pytest.approx(bits.posterior(x).variance[1], rel=1e-12)

    words = DirichletCategorical((0.4, 1.1, 2.0))
    x = words.draw(rng, 12)[1][0]
    at = {f"alpha_{i + 1}": a for i, a in enumerate(words.alpha)}
    at |= {f"n_{i + 1}": int((x == i).sum()) for i in range(3)}
    found = [_at(value, at) for value in dirichlet_categorical().predictive.values()]
    assert found == pytest.approx(words.posterior(x).predictive.tolist(), rel=1e-13)

    mean = GaussianMean(1, 1.7, 0.6)
    x = mean.draw(rng, 8)[1][0]
    at = {"t": 1.7**0.5, "sigma": 0.6**0.5, "L": 8, "s": float(x.sum())}
    posterior = mean.posterior(x)
    assert _at(gaussian_mean().parameters["mean"], at) == pytest.approx(posterior.mean[0], rel=1e-12)
    assert _at(gaussian_mean().predictive["predictive variance"], at) == pytest.approx(
        posterior.predictive[1], rel=1e-12
    )

    linear = GaussianLinear(2, 1, prior_variance=1.7, noise_variance=0.6)
    x = linear.draw(rng, 8)[1][0]
    gram, cross = linear.statistics["sums"](x)
    q = np.array([[0.3, -1.2]])
    at = {"t": 1.7**0.5, "sigma": 0.6**0.5, "phi_1": 0.3, "phi_2": -1.2, "c_1": cross[0, 0], "c_2": cross[1, 0]}
    at |= {"G_11": gram[0, 0], "G_12": gram[0, 1], "G_22": gram[1, 1]}
    predicted, variance = linear.posterior(x).predictive(q)
    assert _at(gaussian_linear().predictive["predictive mean"], at) == pytest.approx(predicted[0, 0], rel=1e-11)
    assert _at(gaussian_linear().predictive["predictive variance"], at) == pytest.approx(variance[0], rel=1e-11)

    topics = CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.1, 0.8)), (0.3, 0.7))
    x = topics.draw(rng, 5)[1][0]
    likelihoods = np.exp(topics.log_likelihoods(x).sum(0))
    at = {"pi_1": 0.3, "pi_2": 0.7, "l_1": likelihoods[0], "l_2": likelihoods[1]}
    assert _at(mixture().parameters["Pr(z=1)"], at) == pytest.approx(topics.posterior(x).weights[0], rel=1e-12)


def _at(formula: Any, values: dict[str, float]) -> float:
    found = formula.subs({symbol: values[symbol.name] for symbol in formula.free_symbols})
    return float(found)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_formulas_print(name: str) -> None:
    assert set(SYMBOLIC) == set(MODELS)
    text = SYMBOLIC[name]().latex()
    assert text.count("&=") >= 2
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BetaBernoulli(0.0, 1.0), "a must be finite and above 0"),
        (lambda: DirichletCategorical((1.0,)), "at least two"),
        (lambda: CategoricalMixture(((0.5, 0.6), (0.5, 0.5))), "sum to 1"),
        (lambda: GaussianMixture(weights=(0.5, 0.6)), "weights must sum to 1"),
        (lambda: GaussianLinear(keys="cube"), "keys must be one of"),
        (lambda: GaussianMean(noise_variance=-1.0), "noise variance"),
        (lambda: BetaBernoulli().posterior(np.array([0, 2])), "from 0 to 1"),
        (lambda: gaussian_linear(9), "at most 4"),
    ],
)
def test_bad_models_are_refused_in_one_line(make: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
