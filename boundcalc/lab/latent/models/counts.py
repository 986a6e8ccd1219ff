"""Categorical tokens with a Dirichlet prior; bits with a Beta prior are the case of two values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.models.base import Array, LatentModel, whole_tokens


@dataclass(frozen=True)
class DirichletPosterior:
    """Dirichlet(alpha): law of z, and of one more token."""

    alpha: Array

    @property
    def mean(self) -> Array:
        """E[z|X], which is also the law of one more token."""
        return self.alpha / self.alpha.sum(-1, keepdims=True)

    predictive = mean

    @property
    def variance(self) -> Array:
        """Variance of every coordinate of z."""
        return self.mean * (1 - self.mean) / (self.alpha.sum(-1, keepdims=True) + 1)


class _Counts(LatentModel):
    """Tokens 0..V-1 with a Dirichlet prior: only the counts matter."""

    @property
    @abstractmethod
    def prior(self) -> Array:
        """The Dirichlet's parameters."""

    @property
    def values(self) -> int:
        """Size of the vocabulary."""
        return len(self.prior)

    def log_joint(self, tokens: Array) -> float:
        total, after = self.prior, self.prior + self._count(tokens)
        return float(gammaln(total.sum()) - gammaln(after.sum()) + gammaln(after).sum() - gammaln(total).sum())

    def log_predictive(self, statistic: Any, token: Array) -> float:
        return float(np.log(self.posterior_of("sums", statistic).predictive[int(token)]))

    def predictive(self, tokens: Array) -> Array:
        """Law of one more token."""
        return self.posterior(tokens).predictive

    def _count(self, tokens: Array) -> Array:
        whole = whole_tokens(tokens, self.values)
        return (whole[..., None] == np.arange(self.values)).sum(-2).astype(float)

    @property
    def statistics(self) -> Mapping[str, Callable[[Array], Any]]:
        """Counts; the sorted sequence; and shares with the length."""
        return {
            "sums": self._count,
            "sorted": lambda tokens: np.sort(whole_tokens(tokens, self.values), axis=-1),
            "mean": lambda tokens: np.append(self._count(tokens) / len(tokens), len(tokens)),
        }

    def posterior_of(self, name: str, statistic: Any) -> DirichletPosterior:
        validate.choice("statistic", name, self.statistics)
        if name == "mean":
            return DirichletPosterior(self.prior + statistic[:-1] * statistic[-1])
        return DirichletPosterior(self.prior + (statistic if name == "sums" else self._count(statistic)))


@dataclass(frozen=True)
class DirichletCategorical(_Counts):
    """z ~ Dirichlet(alpha), tokens z-distributed on 0..V-1."""

    name = "dirichlet-categorical"
    alpha: tuple[float, ...] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if len(self.alpha) < 2:
            raise InvalidSetting(f"alpha must have at least two entries, got {len(self.alpha)}")
        for a in self.alpha:
            validate.positive("alpha", a)

    @property
    def prior(self) -> Array:
        return np.array(self.alpha)

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return rng.dirichlet(self.prior, n)

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        edges = np.cumsum(z, axis=-1)[:, None, :-1]
        return (rng.random((len(z), length, 1)) > edges).sum(-1)


@dataclass(frozen=True)
class BetaBernoulli(_Counts):
    """z ~ Beta(a, b), bits that are 1 with probability z."""

    name = "beta-bernoulli"
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("a", self.a)
        validate.positive("b", self.b)

    @property
    def prior(self) -> Array:
        return np.array([self.b, self.a])

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return rng.beta(self.a, self.b, n)

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        return (rng.random((len(z), length)) < z[:, None]).astype(np.int64)
