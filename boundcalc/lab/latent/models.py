"""Latent-variable models with exact posteriors. Tokens are independent once the latent variable is known."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import multivariate_normal

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.kernels import Array, Kernel, Linear


class LatentModel(ABC):
    """A prior on z and a law of tokens given z.

    Tokens are an array with one row per token; `draw` puts repetitions in front.
    """

    name: ClassVar[str]

    @abstractmethod
    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        """N values of z."""

    @abstractmethod
    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        """Tokens (n, length, ...) given n values of z."""

    def draw(self, rng: np.random.Generator, length: int, n: int = 1) -> tuple[Array, Array]:
        """N values of z and n sequences of this length."""
        z = self.draw_latent(rng, n)
        return z, self.draw_tokens(rng, z, length)

    @abstractmethod
    def log_joint(self, tokens: Array) -> float:
        """Log density of a sequence, the latent variable integrated out."""

    def log_by_chain(self, tokens: Array) -> float:
        """Log density of a sequence by its predictive densities, in the order given: the same for every order."""
        return sum(self.log_predictive(self.posterior(tokens[:i]), tokens[i]) for i in range(len(tokens)))

    @abstractmethod
    def log_predictive(self, posterior: Any, token: Array) -> float:
        """Log density of one more token."""

    @abstractmethod
    def posterior(self, tokens: Array) -> Any:
        """The posterior's parameters given a sequence."""


def _whole(tokens: Any, values: int) -> NDArray[np.int64]:
    """Tokens as integers in [0, values)."""
    whole = np.asarray(tokens)
    if whole.size and (not np.issubdtype(whole.dtype, np.integer) or whole.min() < 0 or whole.max() >= values):
        raise InvalidSetting(f"tokens must be whole numbers from 0 to {values - 1}, got {whole.ravel()[:4].tolist()}")
    return whole.astype(np.int64)


def _choose(rng: np.random.Generator, laws: Array, length: int) -> Array:
    """Tokens (n, length), each row of them drawn from its own law."""
    return (rng.random((len(laws), length, 1)) > np.cumsum(laws, axis=-1)[:, None, :-1]).sum(-1)


def _log_normal(x: Array, mean: Any, covariance: Array) -> float:
    """Log density of rows of x that are independent normal vectors."""
    law: Any = multivariate_normal
    return float(np.sum(law.logpdf(x, mean, covariance)))


# -- tokens of which only the counts matter


@dataclass(frozen=True)
class _DirichletPosterior:
    """Dirichlet(alpha): law of z, and of one more token."""

    alpha: Array

    @property
    def mean(self) -> Array:
        """E[z|X], which is also the law of one more token."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    @property
    def variance(self) -> Array:
        """Variance of every coordinate of z."""
        return self.mean * (1 - self.mean) / (self.alpha.sum(-1, keepdims=True) + 1)


@dataclass(frozen=True)
class DirichletCategorical(LatentModel):
    """z ~ Dirichlet(alpha), tokens z-distributed on 0..V-1; for two values that is the Beta-Bernoulli model."""

    name = "dirichlet-categorical"
    alpha: tuple[float, ...] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for a in self.alpha:
            validate.positive("alpha", a)

    @property
    def values(self) -> int:
        """Size of the vocabulary."""
        return len(self.alpha)

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return rng.dirichlet(self.alpha, n)

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        return _choose(rng, z, length)

    def statistic(self, tokens: Array) -> Array:
        """Counts."""
        return np.bincount(_whole(tokens, self.values), minlength=self.values).astype(float)

    def log_joint(self, tokens: Array) -> float:
        before = np.array(self.alpha)
        after = before + self.statistic(tokens)
        return float(gammaln(before.sum()) - gammaln(after.sum()) + gammaln(after).sum() - gammaln(before).sum())

    def log_predictive(self, posterior: _DirichletPosterior, token: Array) -> float:
        return float(np.log(posterior.mean[int(token)]))

    def posterior(self, tokens: Array) -> _DirichletPosterior:
        return _DirichletPosterior(self.alpha + self.statistic(tokens))

    def predictive(self, tokens: Array) -> Array:
        """Law of one more token."""
        return self.posterior(tokens).mean


# -- finitely many values of the latent variable


@dataclass(frozen=True)
class _FinitePosterior:
    """Probabilities of the components."""

    weights: Array


@dataclass(frozen=True)
class CategoricalMixture(LatentModel):
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
        """Size of the vocabulary."""
        return len(self.table[0])

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return rng.choice(len(self.weights), n, p=np.array(self.weights))

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        return _choose(rng, np.array(self.table)[z], length)

    def statistic(self, tokens: Array) -> Array:
        """Sums of log likelihoods, of each component."""
        with np.errstate(divide="ignore"):
            return np.log(np.array(self.table))[:, _whole(tokens, self.values)].sum(1)

    def log_joint(self, tokens: Array) -> float:
        return float(np.logaddexp.reduce(self.statistic(tokens) + np.log(self.weights)))

    def log_predictive(self, posterior: _FinitePosterior, token: Array) -> float:
        return float(np.log((posterior.weights @ np.array(self.table))[int(token)]))

    def posterior(self, tokens: Array) -> _FinitePosterior:
        scores = self.statistic(tokens) + np.log(self.weights)
        return _FinitePosterior(np.exp(scores - np.logaddexp.reduce(scores)))

    def predictive(self, tokens: Array) -> Array:
        """Law of one more token."""
        return self.posterior(tokens).weights @ np.array(self.table)


# -- normal tokens


@dataclass(frozen=True)
class _LinearPosterior:
    """Columns of z ~ N(columns of mean, covariance), independent of each other."""

    mean: Array
    covariance: Array
    noise_variance: float
    kernel: Kernel

    def predictive(self, q: Array) -> tuple[Array, Array]:
        """Mean (queries, width of v) and variance (queries,) of the values at these keys."""
        phi = self.kernel.features(np.asarray(q, dtype=float))
        return phi @ self.mean, self.noise_variance + np.einsum("qi,ij,qj->q", phi, self.covariance, phi)


@dataclass(frozen=True)
class GaussianLinear(LatentModel):
    """Values phi(key) z + noise, entries of z independent N(0, prior_variance), noise N(0, noise_variance I).

    A token is a key and its value side by side. Keys are uniform on the unit sphere, independent of z.

    Attributes:
        width, values: widths of a key and of a value.
        kernel: gives the features; it must have finitely many.
        prior_variance, noise_variance: of every entry of z and of a value.
    """

    name = "gaussian-linear"
    width: int = 4
    values: int = 1
    kernel: Kernel = field(default_factory=Linear)
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

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        features = self.kernel.features(np.zeros((1, self.width))).shape[-1]
        return math.sqrt(self.prior_variance) * rng.standard_normal((n, features, self.values))

    def draw_keys(self, rng: np.random.Generator, *shape: int) -> Array:
        """Keys alone."""
        keys = rng.standard_normal((*shape, self.width))
        return keys / np.linalg.norm(keys, axis=-1, keepdims=True)

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        keys = self.draw_keys(rng, len(z), length)
        noise = math.sqrt(self.noise_variance) * rng.standard_normal((len(z), length, self.values))
        return np.concatenate([keys, self.kernel.features(keys) @ z + noise], axis=-1)

    def split(self, tokens: Array) -> tuple[Array, Array]:
        """Keys and values."""
        return tokens[..., : self.width], tokens[..., self.width :]

    def log_joint(self, tokens: Array) -> float:
        """Log density of the values given the keys (whose own law does not depend on z)."""
        keys, values = self.split(tokens)
        covariance = self.prior_variance * self.kernel.gram(keys, keys) + self.noise_variance * np.eye(len(keys))
        return _log_normal(values.T, None, covariance)

    def log_predictive(self, posterior: _LinearPosterior, token: Array) -> float:
        key, value = self.split(token)
        mean, variance = posterior.predictive(key[None])
        return _log_normal(value, mean[0], variance[0] * np.eye(self.values))

    def posterior(self, tokens: Array) -> _LinearPosterior:
        keys, values = self.split(tokens)
        phi = self.kernel.features(keys)
        precision = phi.T @ phi + self.lam * np.eye(phi.shape[-1])
        covariance = self.noise_variance * np.linalg.inv(precision)
        return _LinearPosterior(
            np.linalg.solve(precision, phi.T @ values), covariance, self.noise_variance, self.kernel
        )


MODELS: dict[str, type[LatentModel]] = {
    kind.name: kind for kind in (DirichletCategorical, CategoricalMixture, GaussianLinear)
}
"""Every model by name."""
