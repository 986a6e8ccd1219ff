"""Exchangeable sequences: rows that are independent once a latent variable is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import ClosedShare, Positive, Size, check_fields
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import Shape, Task


@dataclass(frozen=True)
class GaussianLinearTask(Task):
    """Rows (key, value) with value = <z, key> + noise, z drawn anew per sequence; predict the value of one more key.

    Row 0 is the question: its key, and no value (a flag in the last column says so).

    Attributes:
        L: answered rows per sequence.
        p: dimension of the keys, which are N(0, I / p); z is N(0, I).
        sigma: deviation of the noise.
    """

    kind: ClassVar[str] = "gaussian-linear"
    L: Size = 32
    p: Size = 4
    sigma: Positive = 0.1

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def shape(self) -> Shape:
        return Shape("rows", self.L + 1, "real", width=self.p + 2)

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        del world
        z = source.normal(n, 1, self.p)
        keys = source.normal(n, self.L + 1, self.p) / math.sqrt(self.p)
        values = (z * keys).sum(-1) + self.sigma * source.normal(n, self.L + 1)
        x = source.array(np.zeros((n, self.L + 1, self.p + 2), dtype=np.float32))
        x[..., : self.p] = keys
        x[:, 1:, self.p] = values[:, 1:]
        x[:, 0, self.p + 1] = 1.0
        return x, values[:, 0]


@dataclass(frozen=True)
class MaskedTokenTask(Task):
    """Tokens of one law on V words, drawn anew for every sequence; the first is masked: say what it was.

    The law z is Dirichlet(alpha), so that every further token tells more of it: given L tokens, word v has probability
    (n_v + alpha)/(L + V alpha), which is what attention can compute (the mean of what is shown, with the mask's own row
    as V alpha tokens seen before). The mask is token 0 of a vocabulary of V + 1. Words come in pairs of twins (2i, 2i +
    1).

    Attributes:
        L: tokens that are shown.
        V: words.
        alpha: how even a law is: a multiple of 1/2.
        blur: probability that the answer names the word's twin instead, which hides the difference of twins from a
            learner that learns from answers alone: E[answer | X] = M E[z | X] with singular values 1 and 1 - 2 blur.
    """

    kind: ClassVar[str] = "masked-token"
    L: Size = 32
    V: Annotated[int, partial(validate.size, least=2)] = 16
    alpha: Positive = 0.5
    blur: ClosedShare = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if (2 * self.alpha) % 1:
            raise InvalidSetting(f"alpha must be a multiple of 1/2, got {self.alpha:g}")
        if self.blur > 0.5 or (self.blur and self.V % 2):
            raise InvalidSetting(f"blur mixes twins, at most half: choose an even V, got blur {self.blur}, V {self.V}")

    @property
    def shape(self) -> Shape:
        return Shape("tokens", self.L + 1, "classes", vocabulary=self.V + 1, classes=self.V)

    @property
    def channel(self) -> NDArray[np.float64]:
        """M: the answer given the word, so that E[answer | X] = M E[z | X]."""
        twins = np.eye(self.V + self.V % 2)[np.arange(self.V) ^ 1, : self.V]
        return (1 - self.blur) * np.eye(self.V) + self.blur * twins

    def posterior_mean(self, tokens: NDArray[Any]) -> NDArray[np.float64]:
        """E[z | X] of sequences (n, L + 1)."""
        words = np.arange(1, self.V + 1)
        counts = np.stack([(tokens[:, 1:] == word).sum(1) for word in words], axis=1)
        return (counts + self.alpha) / (self.L + self.V * self.alpha)

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        del world
        gamma = (source.normal(n, self.V, round(2 * self.alpha)) ** 2).sum(-1)  # twice a Gamma(alpha) variable
        below = (gamma / gamma.sum(-1, keepdim=True)).cumsum(-1)
        tokens = (source.uniform(n, self.L + 1, 1) > below[:, None, : self.V - 1]).sum(-1)
        y = tokens[:, 0] * 1
        if self.blur:
            y = y ^ (source.uniform(n) < self.blur) * 1
        tokens = tokens + 1
        tokens[:, 0] = 0
        return tokens, y
