"""`LatentModel`: draws, the joint density, sufficient statistics, and the posterior they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting

Array = NDArray[Any]


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
        """The same as a product of predictive densities in the order given: equal for every order, if exchangeable."""
        total = 0.0
        for i in range(len(tokens)):
            total += self.log_predictive(self.statistics["sums"](tokens[:i]), tokens[i])
        return total

    @abstractmethod
    def log_predictive(self, statistic: Any, token: Array) -> float:
        """Log density of one more token, given the statistic "sums" of those seen."""

    @property
    @abstractmethod
    def statistics(self) -> Mapping[str, Callable[[Array], Any]]:
        """Sufficient statistics by name; "sums" is the one the posterior is computed from."""

    @abstractmethod
    def posterior_of(self, name: str, statistic: Any) -> Any:
        """The posterior's parameters from a sufficient statistic."""

    def posterior(self, tokens: Array) -> Any:
        """The posterior's parameters given a sequence."""
        return self.posterior_of("sums", self.statistics["sums"](np.asarray(tokens)))


def whole_tokens(tokens: Any, values: int) -> NDArray[np.int64]:
    """Tokens as integers in [0, values)."""
    whole = np.asarray(tokens)
    if whole.size and (not np.issubdtype(whole.dtype, np.integer) or whole.min() < 0 or whole.max() >= values):
        raise InvalidSetting(f"tokens must be whole numbers from 0 to {values - 1}, got {whole.ravel()[:4].tolist()}")
    return whole.astype(np.int64)
