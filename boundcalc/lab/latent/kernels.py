"""Kernels and feature maps. Kernels with few features have them, so that no matrix of keys by keys need be formed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting

Array = NDArray[Any]
_MOST_FEATURES = 10**5
_EPS = float(np.finfo(float).eps)
_FAR = 1e4
"""From this squared length on, in widths, differences of keys are taken before they are squared."""


def _lengths(x: Array) -> Array:
    """Squared lengths of the rows."""
    return np.einsum("ni,ni->n", x, x)


def _longest(x: Array) -> float:
    """The largest squared length of a row."""
    return float(_lengths(x).max(initial=0.0))


class Kernel(ABC):
    """A positive definite function of two keys, which are rows."""

    name: ClassVar[str]

    @abstractmethod
    def gram(self, x: Array, y: Array) -> Array:
        """The matrix (rows of x, rows of y)."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x, x) of every row."""

    def count(self, width: int) -> int | None:
        """How many features there are for keys of this width; None for infinitely many."""
        del width
        return None

    def rounding(self, x: Array, y: Array) -> float:
        """A bound of the relative rounding error of an entry."""
        return 4 * x.shape[-1] * _EPS

    def features(self, x: Array) -> Array:
        """Phi with k(x, y) = <Phi(x), Phi(y)>."""
        raise InvalidSetting(f"the {self.name} kernel has no finite feature map")


class _ByFeatures(Kernel):
    """A kernel that is the inner product of finitely many features."""

    def gram(self, x: Array, y: Array) -> Array:
        return self.features(x) @ self.features(y).T

    def diagonal(self, x: Array) -> Array:
        return np.square(self.features(x)).sum(-1)


@dataclass(frozen=True)
class Linear(_ByFeatures):
    """<x, y>. For your own features give them as keys and queries."""

    name = "linear"

    def count(self, width: int) -> int:
        return width

    def features(self, x: Array) -> Array:
        return x


@dataclass(frozen=True)
class Polynomial(_ByFeatures):
    """(<x, y> + offset)^degree: monomials with the square roots of multinomial weights."""

    name = "polynomial"
    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        validate.size("degree", self.degree)
        validate.positive("offset", self.offset, zero=True)

    def count(self, width: int) -> int:
        return math.comb(width + (self.offset > 0) + self.degree - 1, self.degree)

    def features(self, x: Array) -> Array:
        if self.count(x.shape[-1]) > _MOST_FEATURES:
            raise InvalidSetting(f"degree {self.degree} on {x.shape[-1]} coordinates has too many monomials")
        if self.offset > 0:
            x = np.concatenate([x, np.full((len(x), 1), math.sqrt(self.offset))], axis=-1)
        columns: list[Array] = []
        for chosen in combinations_with_replacement(range(x.shape[-1]), self.degree):
            repeats = math.prod(math.factorial(chosen.count(i)) for i in set(chosen))
            columns.append(math.sqrt(math.factorial(self.degree) / repeats) * np.prod(x[:, chosen], axis=-1))
        return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(-|x - y|^2/(2 width^2))."""

    name = "rbf"
    width: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("kernel width", self.width)

    def gram(self, x: Array, y: Array) -> Array:
        scale = 1 / self.width
        if max(_longest(x), _longest(y)) * scale**2 > _FAR:
            return np.exp(-0.5 * np.square(cdist(x, y) * scale))
        x, y = x * scale, y * scale
        out = x @ y.T
        out -= 0.5 * _lengths(x)[:, None]
        out -= 0.5 * _lengths(y)
        np.minimum(out, 0.0, out=out)
        return np.exp(out, out=out)

    def rounding(self, x: Array, y: Array) -> float:
        far = max(_longest(x), _longest(y)) / self.width**2
        return 8 * (x.shape[-1] + 4) * _EPS * (1 + (far if far <= _FAR else 0.0))

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
        return 2 * (x.shape[-1] + 4) * _EPS * (1 + math.sqrt(_longest(x)) * math.sqrt(_longest(y)) / self.temperature)

    def diagonal(self, x: Array) -> Array:
        return np.exp(_lengths(x) / self.temperature)


KERNELS: dict[str, type[Kernel]] = {kind.name: kind for kind in (Linear, Polynomial, RBF, Exponential)}
"""Kernels by name."""


def kernel_named(kernel: Kernel | str, **parameters: float) -> Kernel:
    """A kernel as it is, or by name, with other parameters than its defaults."""
    if isinstance(kernel, Kernel):
        return kernel
    kind = KERNELS[validate.choice("kernel", kernel, KERNELS)]
    validate.known_keys(f"the {kernel} kernel", parameters, [field.name for field in fields(kind)])  # type: ignore[arg-type]
    return kind(**parameters)
