"""Normal tokens around a normal mean, and values that are linear in features of their keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.base import validate
from boundcalc.lab.latent.kernels import Kernel, Linear
from boundcalc.lab.latent.models.base import Array, LatentModel


@dataclass(frozen=True)
class NormalPosterior:
    """z ~ N(mean, variance I); one more token adds the noise."""

    mean: Array
    variance: float
    noise_variance: float

    @property
    def predictive(self) -> tuple[Array, float]:
        """Mean and variance (per coordinate) of one more token."""
        return self.mean, self.variance + self.noise_variance


@dataclass(frozen=True)
class GaussianMean(LatentModel):
    """z ~ N(0, prior_variance I) in R^width, tokens N(z, noise_variance I)."""

    name = "gaussian-mean"
    width: int = 1
    prior_variance: float = 1.0
    noise_variance: float = 1.0

    def __post_init__(self) -> None:
        validate.size("width", self.width)
        validate.positive("prior variance", self.prior_variance)
        validate.positive("noise variance", self.noise_variance)

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return math.sqrt(self.prior_variance) * rng.standard_normal((n, self.width))

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        noise = rng.standard_normal((len(z), length, self.width))
        return z[:, None] + math.sqrt(self.noise_variance) * noise

    def log_joint(self, tokens: Array) -> float:
        x = np.asarray(tokens, dtype=float)
        length = len(x)
        s, t = self.noise_variance, self.prior_variance
        scatter, total = float(np.square(x).sum()), np.square(x.sum(0)).sum()
        quadratic = (scatter - t / (s + length * t) * float(total)) / s
        log_det = (length - 1) * math.log(s) + math.log(s + length * t)
        return -0.5 * (quadratic + self.width * (log_det + length * math.log(2 * math.pi)))

    def log_predictive(self, statistic: Any, token: Array) -> float:
        mean, variance = self.posterior_of("sums", statistic).predictive
        square = float(np.square(np.asarray(token) - mean).sum())
        return -0.5 * (square / variance + self.width * math.log(2 * math.pi * variance))

    @property
    def statistics(self) -> Mapping[str, Callable[[Array], Any]]:
        """(sum, length) and (mean, length)."""
        return {
            "sums": lambda x: (np.asarray(x, dtype=float).reshape(-1, self.width).sum(0), len(x)),
            "mean": lambda x: (np.asarray(x, dtype=float).reshape(-1, self.width).mean(0), len(x)),
        }

    def posterior_of(self, name: str, statistic: Any) -> NormalPosterior:
        validate.choice("statistic", name, self.statistics)
        total, length = statistic
        total = np.asarray(total) * (length if name == "mean" else 1)
        precision = 1 / self.prior_variance + length / self.noise_variance
        return NormalPosterior(total / self.noise_variance / precision, 1 / precision, self.noise_variance)


@dataclass(frozen=True)
class LinearPosterior:
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

    A token is a key and its value side by side. Keys are uniform on the unit sphere (or normal), independent of z.

    Attributes:
        width: of a key.
        values: width of a value.
        kernel: gives the features; it must have finitely many.
        prior_variance: of every entry of z.
        noise_variance: of every entry of a value.
        keys: "sphere" or "normal".
    """

    name = "gaussian-linear"
    width: int = 4
    values: int = 1
    kernel: Kernel = field(default_factory=Linear)
    prior_variance: float = 1.0
    noise_variance: float = 0.25
    keys: str = "sphere"

    def __post_init__(self) -> None:
        validate.size("width", self.width)
        validate.size("values", self.values)
        validate.positive("prior variance", self.prior_variance)
        validate.positive("noise variance", self.noise_variance)
        validate.choice("keys", self.keys, ("sphere", "normal"))
        self.kernel.features(np.zeros((1, self.width)))  # refuses kernels without a feature map

    @property
    def lam(self) -> float:
        """The ridge at which CME attention is the posterior mean: noise variance over prior variance."""
        return self.noise_variance / self.prior_variance

    @property
    def size(self) -> int:
        """How many features there are."""
        count = self.kernel.count(self.width)
        if count is None:
            raise TypeError("the kernel has no finite feature map")
        return count

    def draw_latent(self, rng: np.random.Generator, n: int) -> Array:
        return math.sqrt(self.prior_variance) * rng.standard_normal((n, self.size, self.values))

    def draw_keys(self, rng: np.random.Generator, *shape: int) -> Array:
        """Keys alone."""
        keys = rng.standard_normal((*shape, self.width))
        if self.keys == "sphere":
            keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
        return keys

    def draw_tokens(self, rng: np.random.Generator, z: Array, length: int) -> Array:
        keys = self.draw_keys(rng, len(z), length)
        noise = math.sqrt(self.noise_variance) * rng.standard_normal((len(z), length, self.values))
        return np.concatenate([keys, self.kernel.features(keys) @ z + noise], axis=-1)

    def split(self, tokens: Array) -> tuple[Array, Array]:
        """Keys and values."""
        rows = np.asarray(tokens, dtype=float).reshape(-1, self.width + self.values)
        return rows[:, : self.width], rows[:, self.width :]

    def log_joint(self, tokens: Array) -> float:
        """Log density of the values given the keys (whose own law does not depend on z)."""
        keys, values = self.split(tokens)
        phi = self.kernel.features(keys)
        cov = self.prior_variance * phi @ phi.T + self.noise_variance * np.eye(len(phi))
        lower = np.linalg.cholesky(cov)
        white = np.linalg.solve(lower, values)
        log_det = 2 * float(np.log(np.diag(lower)).sum())
        return -0.5 * (float(np.square(white).sum()) + values.shape[1] * (log_det + len(phi) * math.log(2 * math.pi)))

    def log_predictive(self, statistic: Any, token: Array) -> float:
        key, value = self.split(token)
        mean, variance = self.posterior_of("sums", statistic).predictive(key)
        square = float(np.square(value - mean).sum())
        return -0.5 * (square / float(variance[0]) + self.values * math.log(2 * math.pi * float(variance[0])))

    @property
    def statistics(self) -> Mapping[str, Callable[[Array], Any]]:
        """(Phi^T Phi, Phi^T V), and the triangular factor R of Phi = QR with Q^T V."""
        return {"sums": self._moments, "factor": self._factor}

    def _moments(self, tokens: Array) -> tuple[Array, Array]:
        keys, values = self.split(tokens)
        phi = self.kernel.features(keys)
        return phi.T @ phi, phi.T @ values

    def _factor(self, tokens: Array) -> tuple[Array, Array]:
        keys, values = self.split(tokens)
        q, r = np.linalg.qr(self.kernel.features(keys))
        return r, q.T @ values

    def posterior_of(self, name: str, statistic: Any) -> LinearPosterior:
        validate.choice("statistic", name, self.statistics)
        first, second = statistic
        moments, cross = (first, second) if name == "sums" else (first.T @ first, first.T @ second)
        precision = moments + self.lam * np.eye(len(moments))
        covariance = self.noise_variance * np.linalg.inv(precision)
        return LinearPosterior(np.linalg.solve(precision, cross), covariance, self.noise_variance, self.kernel)
