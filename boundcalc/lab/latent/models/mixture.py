"""A latent variable with finitely many values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.models.base import Array, LatentModel, whole_tokens


@dataclass(frozen=True)
class FinitePosterior:
    """Probabilities of the components."""

    weights: Array

    @property
    def mean(self) -> Array:
        """The probabilities."""
        return self.weights


class _Finite(LatentModel):
    """Models whose log likelihoods add up over tokens, component by component."""

    weights: tuple[float, ...]

    def _check_weights(self, components: int) -> None:
        if len(self.weights) != components:
            raise InvalidSetting(f"there must be a weight for each of {components} components, got {len(self.weights)}")
        for weight in self.weights:
            validate.positive("weight", weight)
        if abs(sum(self.weights) - 1) > 1e-9:
            raise InvalidSetting(f"weights must sum to 1, got {sum(self.weights):g}")

    @abstractmethod
    def log_likelihoods(self, tokens: Array) -> Array:
        """Log density of every token under every component: (tokens, components)."""

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return rng.choice(len(self.weights), n, p=np.array(self.weights))

    def log_joint(self, tokens: Array) -> float:
        return float(np.logaddexp.reduce(self.log_likelihoods(tokens).sum(0) + np.log(self.weights)))

    def log_predictive(self, statistic: Any, token: Array) -> float:
        weights = self.posterior_of("sums", statistic).weights
        return float(np.logaddexp.reduce(self.log_likelihoods(np.asarray(token)[None])[0] + np.log(weights)))

    @property
    def statistics(self) -> Mapping[str, Callable[[Array], Any]]:
        """Sums of log likelihoods, and the same relative to the first component."""

        def sums(tokens: Array) -> Array:
            return self.log_likelihoods(tokens).sum(0)

        return {"sums": sums, "ratios": lambda tokens: sums(tokens) - sums(tokens)[0]}

    def posterior_of(self, name: str, statistic: Any) -> FinitePosterior:
        validate.choice("statistic", name, self.statistics)
        scores = np.asarray(statistic) + np.log(self.weights)
        return FinitePosterior(np.exp(scores - np.logaddexp.reduce(scores)))


@dataclass(frozen=True)
class CategoricalMixture(_Finite):
    """Topics: component k draws tokens from row k of a table of probabilities."""

    name = "categorical-mixture"
    table: tuple[tuple[float, ...], ...] = ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7))
    weights: tuple[float, ...] = (0.5, 0.5)

    def __post_init__(self) -> None:
        rows = np.array(self.table, dtype=float)
        if rows.ndim != 2 or (rows < 0).any() or (np.abs(rows.sum(1) - 1) > 1e-9).any():
            raise InvalidSetting("every row of the table must be probabilities that sum to 1")
        self._check_weights(len(rows))

    @property
    def values(self) -> int:
        """Size of the vocabulary."""
        return len(self.table[0])

    def log_likelihoods(self, tokens: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(np.array(self.table)).T[whole_tokens(tokens, self.values)]

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        edges = np.cumsum(np.array(self.table), axis=1)[z][:, None, :-1]
        return (rng.random((len(z), length, 1)) > edges).sum(-1)

    def predictive(self, tokens: Array) -> Array:
        """Law of one more token."""
        return self.posterior(tokens).weights @ np.array(self.table)


@dataclass(frozen=True)
class GaussianMixture(_Finite):
    """Component k draws tokens from N(row k of means, deviation^2 I)."""

    name = "gaussian-mixture"
    means: tuple[tuple[float, ...], ...] = ((-1.0,), (1.0,))
    weights: tuple[float, ...] = (0.5, 0.5)
    deviation: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("deviation", self.deviation)
        self._check_weights(len(self.means))

    @property
    def _means(self) -> Array:
        return np.array(self.means, dtype=float)

    def log_likelihoods(self, tokens: Array) -> Array:
        x = np.asarray(tokens, dtype=float).reshape(-1, self._means.shape[1])
        squares = np.square(x[:, None] - self._means).sum(-1) / self.deviation**2
        return -0.5 * (squares + x.shape[1] * math.log(2 * math.pi * self.deviation**2))

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        means = self._means[z][:, None]
        return means + self.deviation * rng.standard_normal((len(z), length, means.shape[-1]))
