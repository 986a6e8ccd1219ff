"""Conjugate posteriors against brute-force Bayes on grids, against sympy, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import dirichlet

from boundcalc.lab.latent.models import CategoricalMixture, DirichletCategorical, GaussianLinear, LatentModel

Array = NDArray[np.float64]
INSTANCES: tuple[LatentModel, ...] = (
    DirichletCategorical((0.7, 2.5)),
    DirichletCategorical((0.5, 1.5, 2.0, 1.0)),
    GaussianLinear(2, 2, 1.5, 0.3),
    CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.1, 0.8), (0.3, 0.4, 0.3)), (0.5, 0.2, 0.3)),
)
by_model = pytest.mark.parametrize("model", INSTANCES, ids=lambda m: m.name)


def grid_posterior(log_prior: Array, log_likelihood: Array) -> Array:
    """Bayes' rule on a grid of equal cells."""
    scores = log_prior + log_likelihood
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_dirichlet_categorical_is_bayes_on_a_grid() -> None:
    model = DirichletCategorical((1.5, 2.0, 2.5))
    tokens = model.draw(np.random.default_rng(1), 11)
    side = (np.arange(1500) + 0.5) / 1500
    first, second = (axis.ravel() for axis in np.meshgrid(side, side))
    inside = first + second < 1
    z = np.stack([first, second, 1 - first - second], axis=-1)[inside]
    prior = ((np.array(model.alpha) - 1) * np.log(z)).sum(-1)
    weights = grid_posterior(prior, np.log(z)[:, tokens].sum(-1))
    posterior, mean = dirichlet(model.posterior(tokens)), weights @ z
    assert posterior.mean() == pytest.approx(mean, abs=1e-4)
    assert posterior.var() == pytest.approx(weights @ np.square(z - mean), abs=1e-4)


def test_gaussian_linear_is_bayes_on_a_grid() -> None:
    model = GaussianLinear(2, 1, prior_variance=1.3, noise_variance=0.4)
    tokens = model.draw(np.random.default_rng(3), 12)
    keys, values = model.split(tokens)
    side = np.linspace(-6, 6, 1201)
    z = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=-1)
    weights = grid_posterior(-np.square(z).sum(-1) / (2 * 1.3), -np.square(values - keys @ z.T).sum(0) / (2 * 0.4))
    after, covariance = model.posterior(tokens)
    assert after[:, 0] == pytest.approx(weights @ z, abs=1e-8)
    centred = z - weights @ z
    assert covariance == pytest.approx((weights[:, None] * centred).T @ centred, abs=1e-7)
    q = np.array([[0.6, -0.8]])
    mean, variance = model.predictive(tokens, q)
    assert mean[0, 0] == pytest.approx(float(weights @ (z @ q[0])), abs=1e-8)
    assert variance[0] == pytest.approx(float(weights @ (centred @ q[0]) ** 2) + 0.4, abs=1e-7)


def test_finite_mixtures_are_bayes() -> None:
    model = CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.1, 0.8)), (0.3, 0.7))
    tokens = np.array([0, 2, 2, 1])
    likelihoods = np.array([0.6 * 0.1 * 0.1 * 0.3, 0.1 * 0.8 * 0.8 * 0.1])
    after = np.array([0.3, 0.7]) * likelihoods
    assert model.posterior(tokens) == pytest.approx(after / after.sum(), rel=1e-13)
    assert model.log_joint(tokens) == pytest.approx(np.log(after.sum()), rel=1e-13)


def order_moves(log_density: Any, tokens: Array) -> float:
    """The most that a log density moves as a sequence is reordered at random."""
    rng, at = np.random.default_rng(0), log_density(tokens)
    return max(abs(log_density(rng.permutation(tokens)) - at) for _ in range(20))


@by_model
def test_models_are_exchangeable(model: LatentModel) -> None:
    """The joint density is the product of predictive ones in any order, which depends on the order in form."""
    tokens = model.draw(np.random.default_rng(4), 7)
    assert model.log_by_chain(tokens) == pytest.approx(model.log_joint(tokens), abs=1e-9)
    assert order_moves(model.log_by_chain, tokens) < 1e-9


def test_a_chain_and_a_model_that_forgets_are_not_exchangeable() -> None:
    def log_chain(bits: Any) -> float:
        stays = int((bits[1:] == bits[:-1]).sum())
        return stays * np.log(0.9) + (len(bits) - 1 - stays) * np.log(0.1)

    class Hasty(DirichletCategorical):
        """Later tokens count less."""

        def log_by_chain(self, tokens: Any) -> float:
            return super().log_by_chain(tokens) - 0.1 * float(np.arange(len(tokens)) @ tokens)

    bits = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    assert order_moves(log_chain, bits) > 1
    assert order_moves(Hasty((1.0, 2.0)).log_by_chain, bits) > 0.01
