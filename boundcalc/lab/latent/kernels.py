"""Kernels of CME attention; one with few features has them, so that no matrix of keys by keys need be formed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting

Array = NDArray[Any]
_EPS = float(np.finfo(float).eps)


class Kernel(ABC):
    """A positive definite function of two keys, which are rows."""

    name: ClassVar[str]

    @abstractmethod
    def gram(self, x: Array, y: Array) -> Array:
        """The matrix (rows of x, rows of y)."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x, x) of every row."""

    def rounding(self, x: Array, y: Array) -> float:
        """A bound of the relative rounding error of an entry."""
        return 4 * x.shape[-1] * _EPS

    def features(self, x: Array) -> Array | None:
        """Phi with k(x, y) = <Phi(x), Phi(y)>, where it has finitely many coordinates."""
        del x
        return None


@dataclass(frozen=True)
class Linear(Kernel):
    """<x, y>. For your own features give them as keys and queries."""

    name = "linear"

    def gram(self, x: Array, y: Array) -> Array:
        return x @ y.T

    def diagonal(self, x: Array) -> Array:
        return np.square(x).sum(-1)

    def features(self, x: Array) -> Array:
        return x


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(-|x - y|^2/(2 width^2))."""

    name = "rbf"
    width: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("kernel width", self.width)

    def gram(self, x: Array, y: Array) -> Array:
        return np.exp(-0.5 * np.square(cdist(x, y) / self.width))

    def rounding(self, x: Array, y: Array) -> float:
        apart = np.square(cdist(x, y) / self.width).max(initial=0.0)  # an entry beyond 1500 is 0
        return 8 * (x.shape[-1] + 4) * _EPS * (1 + min(apart, 1500.0) / 4)

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(<x, y>/temperature): the weights of softmax attention before they are normalised."""

    name = "exponential"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("temperature tau", self.temperature)

    def gram(self, x: Array, y: Array) -> Array:
        out = (x / self.temperature) @ y.T
        if out.size and out.max() > 700:
            raise InvalidSetting(
                f"temperature tau = {self.temperature:g} is too small: exp({out.max():.4g}) overflows; scale the keys"
            )
        return np.exp(out, out=out)

    def rounding(self, x: Array, y: Array) -> float:
        longest = math.prod(float(np.linalg.norm(rows, axis=-1).max(initial=0.0)) for rows in (x, y))
        return 2 * (x.shape[-1] + 4) * _EPS * (1 + longest / self.temperature)

    def diagonal(self, x: Array) -> Array:
        return np.exp(np.square(x).sum(-1) / self.temperature)


KERNELS: dict[str, type[Kernel]] = {kind.name: kind for kind in (Linear, RBF, Exponential)}
"""Kernels by name."""


def kernel_named(kernel: Kernel | str, **parameters: float) -> Kernel:
    """A kernel as it is, or by name, with other parameters than its defaults."""
    if isinstance(kernel, Kernel):
        return kernel
    kind: Any = KERNELS[validate.choice("kernel", kernel, KERNELS)]
    validate.known_keys(f"the {kernel} kernel", parameters, [field.name for field in fields(kind)])
    return kind(**parameters)
