"""Latent-variable models with exact posteriors. Tokens are independent once the latent variable is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln
from scipy.stats import multivariate_normal

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.kernels import Array


class LatentModel(ABC):
    """A prior on z and a law of tokens given z. Tokens are an array with one row per token."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, rng: np.random.Generator, length: int) -> Array:
        """A sequence of this length, z drawn from the prior."""

    @abstractmethod
    def posterior(self, tokens: Array) -> Any:
        """The posterior's parameters given a sequence."""

    @abstractmethod
    def log_joint(self, tokens: Array) -> float:
        """Log density of a sequence, the latent variable integrated out."""

    @abstractmethod
    def log_predictive(self, tokens: Array, token: Array) -> float:
        """Log density of one more token after a sequence."""

    def log_by_chain(self, tokens: Array) -> float:
        """Log density of a sequence by its predictive densities, in the order given: the same for every order."""
        return sum(self.log_predictive(tokens[:i], tokens[i]) for i in range(len(tokens)))


class _Categorical(LatentModel):
    """A model of tokens that are whole numbers from 0 to values - 1."""

    @property
    @abstractmethod
    def values(self) -> int:
        """Size of the vocabulary."""

    @abstractmethod
    def predictive(self, tokens: Array) -> Array:
        """Law of one more token."""

    def log_predictive(self, tokens: Array, token: Array) -> float:
        return float(np.log(self.predictive(tokens)[int(token)]))

    def counts(self, tokens: Array) -> Array:
        """How often each value is among the tokens."""
        whole = np.asarray(tokens)
        if whole.size and (not np.issubdtype(whole.dtype, np.integer) or whole.min() < 0 or whole.max() >= self.values):
            got = whole.ravel()[:4].tolist()
            raise InvalidSetting(f"tokens must be whole numbers from 0 to {self.values - 1}, got {got}")
        return np.bincount(whole.astype(np.int64), minlength=self.values).astype(float)


@dataclass(frozen=True)
class DirichletCategorical(_Categorical):
    """z ~ Dirichlet(alpha), tokens z-distributed on 0..V-1; for two values that is the Beta-Bernoulli model."""

    name = "dirichlet-categorical"
    alpha: tuple[float, ...] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for a in self.alpha:
            validate.positive("alpha", a)

    @property
    def values(self) -> int:
        return len(self.alpha)

    def draw(self, rng: np.random.Generator, length: int) -> Array:
        return rng.choice(self.values, length, p=rng.dirichlet(self.alpha))

    def statistic(self, tokens: Array) -> Array:
        """Counts."""
        return self.counts(tokens)

    def posterior(self, tokens: Array) -> Array:
        """Alpha of the Dirichlet law of z."""
        return self.alpha + self.counts(tokens)

    def log_joint(self, tokens: Array) -> float:
        before, after = np.array(self.alpha), self.posterior(tokens)
        return float(gammaln(before.sum()) - gammaln(after.sum()) + gammaln(after).sum() - gammaln(before).sum())

    def predictive(self, tokens: Array) -> Array:
        after = self.posterior(tokens)
        return after / after.sum()


@dataclass(frozen=True)
class CategoricalMixture(_Categorical):
    """Topics: component k draws tokens from row k of a table of probabilities."""

    name = "categorical-mixture"
    table: tuple[tuple[float, ...], ...] = ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7))
    weights: tuple[float, ...] = (0.5, 0.5)

    def __post_init__(self) -> None:
        laws = (self.weights, *self.table)
        if len(self.table) != len(self.weights) or min(map(min, laws)) < 0 or max(abs(sum(x) - 1) for x in laws) > 1e-9:
            raise InvalidSetting("weights, one a row, and every row of the table must be probabilities that sum to 1")

    @property
    def values(self) -> int:
        return len(self.table[0])

    def draw(self, rng: np.random.Generator, length: int) -> Array:
        return rng.choice(self.values, length, p=self.table[rng.choice(len(self.weights), p=self.weights)])

    def statistic(self, tokens: Array) -> Array:
        """Log likelihoods of the components."""
        counts = self.counts(tokens)
        with np.errstate(divide="ignore"):
            return np.log(np.array(self.table)[:, counts > 0]) @ counts[counts > 0]

    def posterior(self, tokens: Array) -> Array:
        """Probabilities of the components."""
        scores = self.statistic(tokens) + np.log(self.weights)
        return np.exp(scores - np.logaddexp.reduce(scores))

    def log_joint(self, tokens: Array) -> float:
        return float(np.logaddexp.reduce(self.statistic(tokens) + np.log(self.weights)))

    def predictive(self, tokens: Array) -> Array:
        return self.posterior(tokens) @ np.array(self.table)


@dataclass(frozen=True)
class GaussianLinear(LatentModel):
    """Values key z + noise, entries of z independent N(0, prior_variance), noise N(0, noise_variance I).

    A token is a key and its value side by side. Keys are uniform on the unit sphere, independent of z.

    Attributes:
        width, values: widths of a key and of a value.
        prior_variance, noise_variance: of every entry of z and of a value.
    """

    name = "gaussian-linear"
    width: int = 4
    values: int = 1
    prior_variance: float = 1.0
    noise_variance: float = 0.25

    def __post_init__(self) -> None:
        validate.size("width", self.width)
        validate.size("values", self.values)
        validate.positive("prior variance", self.prior_variance)
        validate.positive("noise variance", self.noise_variance)

    @property
    def lam(self) -> float:
        """The ridge at which CME attention is the posterior mean: noise variance over prior variance."""
        return self.noise_variance / self.prior_variance

    def draw_keys(self, rng: np.random.Generator, length: int) -> Array:
        """Keys alone."""
        keys = rng.standard_normal((length, self.width))
        return keys / np.linalg.norm(keys, axis=-1, keepdims=True)

    def draw(self, rng: np.random.Generator, length: int) -> Array:
        keys = self.draw_keys(rng, length)
        z = math.sqrt(self.prior_variance) * rng.standard_normal((self.width, self.values))
        noise = math.sqrt(self.noise_variance) * rng.standard_normal((length, self.values))
        return np.concatenate([keys, keys @ z + noise], axis=-1)

    def split(self, tokens: Array) -> tuple[Array, Array]:
        """Keys and values."""
        return tokens[..., : self.width], tokens[..., self.width :]

    def posterior(self, tokens: Array) -> tuple[Array, Array]:
        """Mean of z, and covariance of its columns, which are independent of each other."""
        keys, values = self.split(tokens)
        precision = keys.T @ keys + self.lam * np.eye(self.width)
        return np.linalg.solve(precision, keys.T @ values), self.noise_variance * np.linalg.inv(precision)

    def predictive(self, tokens: Array, q: Array) -> tuple[Array, Array]:
        """Mean (queries, width of v) and variance (queries,) of the values at keys q."""
        mean, covariance = self.posterior(tokens)
        return q @ mean, self.noise_variance + np.einsum("qi,ij,qj->q", q, covariance, q)

    def log_joint(self, tokens: Array) -> float:
        """Log density of the values given the keys (whose own law does not depend on z)."""
        keys, values = self.split(tokens)
        covariance = self.prior_variance * keys @ keys.T + self.noise_variance * np.eye(len(keys))
        return _log_normal(values.T, None, covariance)

    def log_predictive(self, tokens: Array, token: Array) -> float:
        key, value = self.split(token)
        mean, variance = self.predictive(tokens, key[None])
        return _log_normal(value, mean[0], variance[0] * np.eye(self.values))


def _log_normal(x: Array, mean: Any, covariance: Array) -> float:
    """Log density of rows of x that are independent normal vectors."""
    law: Any = multivariate_normal
    return float(np.sum(law.logpdf(x, mean, covariance)))


MODELS: dict[str, type[LatentModel]] = {
    kind.name: kind for kind in (DirichletCategorical, CategoricalMixture, GaussianLinear)
}
"""Every model by name."""
