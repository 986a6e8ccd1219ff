"""Attention pooling made for its bound: one trained query over rows (p_t, bit t), a read-out fixed in advance (S5).

f(x) = c sum_t softmax(<q, (p_t, x_t)>) x_t, x_t in {-1, 1}. The points p_t are fixed before the data; the d + 1 numbers
of q are all there is to learn, within a ball. So few numbers cost few nats, and the bound of the class says
something of the layer that training finds. It learns what can be said by where to look: conjunctions, disjunctions, majorities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.predictors.certificate import object_of
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.reference import Law
from boundcalc.predictors.statements.base import positive_count, real

if TYPE_CHECKING:
    from boundcalc.setting import Setting

_SLACK = 1e-9
"""By how much radii and margins are drawn wider than real numbers need: float64 sums of rows err by less than 1e-12."""
_REPEL_STEPS = 200
_MOST_BITS = 256
"""Up to so many points repel each other all the way; more of them for fewer steps."""


@lru_cache(maxsize=16)
def positions(count: int, width: int) -> Array:
    """Points of the sphere that have repelled each other, from a drawn start.

    Products, sums, roots and quotients of float64 in a fixed order: the same bits on every machine.
    """
    p = Law((count, width), "sphere", 1.0).draw(f"boundcalc positions {count} {width}")
    steps = _REPEL_STEPS if count <= _MOST_BITS else max(10, _REPEL_STEPS * _MOST_BITS**2 // count**2)
    for step in range(steps):
        left = 1 - step / steps
        near = np.zeros((count, count))
        for column in p.T:
            near += column[:, None] * column[None, :]
        near = 1 / (1.02 - near + 0.6 * left)
        np.fill_diagonal(near, 0.0)
        for _ in range(4):
            near = near * near
        near /= near.max()
        push = np.zeros_like(p)
        for place in range(count):
            push += near[place][:, None] * p[place]
        p = p - 0.15 * left * push / np.abs(push).max()
        squares = np.zeros(count)
        for column in p.T:
            squares += column * column
        p = p / np.sqrt(squares)[:, None]
    p.setflags(write=False)
    return p


@dataclass(frozen=True, slots=True)
class PoolingClass:
    """A class of such layers, fixed before the data, with what its bound is asked for.

    Attributes:
        bits: T.
        width: d, dimensions of the points.
        within: ball of the query.
        read: c, what the pooled bit is multiplied with.
        margin: gamma.
        seen: whether the share of margins at most gamma is read off the examples, and paid for; else it is 0.
    """

    bits: int
    width: int
    within: float
    read: float = 1.1
    margin: float = 1.0
    seen: bool = False

    def setting(self, n: int, delta: float, errors: int = 0) -> Setting:
        """The class as the calculus knows it."""
        from boundcalc.setting import Architecture, Attention, Budget, Norms, Pool, Sample, Setting

        layers = (Attention(self.width + 1, d_value=1, qk="fixed"), Pool("cls"))
        read = Budget(op=self.read, distance=Budget(op=0.0))
        norms = Norms(budgets={"q": Budget(op=self.within), "W_V": read})
        radius = math.sqrt(2) * (1 + _SLACK)
        seen = {"train_error": _share_of(errors, n), "measured": ("train_error",)} if self.seen else {}
        sample = Sample(n_train=n, delta=delta, margin=self.margin, **seen)
        return Setting(Architecture(seq_len=self.bits, input_radius=radius, layers=layers), norms, sample)

    def to_json(self) -> dict[str, Any]:
        """As a certificate lists it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PoolingClass:
        """Read strictly."""
        raw = object_of("a class", data, tuple(cls.__slots__))
        if not isinstance(raw["seen"], bool):
            raise CertificateError(f"seen is true or false, got {raw['seen']!r}")
        numbers = {name: real(name, raw[name]) for name in ("within", "read", "margin")}
        if min(numbers.values()) <= 0:
            raise CertificateError(f"within, read and margin of a class are positive, got {numbers}")
        bits, width = (positive_count(name, raw[name]) for name in ("bits", "width"))
        if max(bits, width) > _MOST:
            raise CertificateError(f"a class of {bits} bits and {width} dimensions: at most {_MOST} are read")
        return cls(bits, width, seen=raw["seen"], **numbers)


_MOST = 2**14


def _share_of(errors: int, n: int) -> float:
    """The least float that is no smaller than errors / n."""
    share = errors / n
    return share if Fraction(share) >= Fraction(errors, n) else math.nextafter(share, 1.0)


@dataclass(frozen=True, slots=True)
class PoolingNetwork:
    """The layer as a function of its query."""

    bits: int
    width: int
    read: float = 1.1

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines it, as JSON."""
        return {"kind": "pooling", "bits": self.bits, "width": self.width, "read": self.read}

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> PoolingNetwork:
        """The layer of a certificate."""
        raw = object_of("the recipe", recipe, ("kind", "bits", "width", "read"))
        if raw["kind"] != "pooling":
            raise CertificateError(f"a recipe of kind {raw['kind']!r} makes no pooling layer")
        return cls(
            positive_count("bits", raw["bits"]), positive_count("width", raw["width"]), real("read", raw["read"])
        )

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, as JSON."""
        return {"numpy": np.__version__}

    @property
    def checkpoint(self) -> None:
        """Nothing is relative to given weights."""
        return None

    def outputs(self, q: Array, x: Array) -> tuple[Array, Array]:
        """What it says of rows of signs; and the gradients by the query."""
        p = positions(self.bits, self.width)
        scores = p @ q[:-1] + q[-1] * x
        a = np.exp(scores - scores.max(axis=1, keepdims=True))
        a /= a.sum(axis=1, keepdims=True)
        f = (a * x).sum(axis=1)
        pull = a * (x - f[:, None])
        return self.read * f, self.read * np.concatenate([pull @ p, (pull * x).sum(axis=1)[:, None]], axis=1)

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        """How far the right answer is ahead."""
        x, y = signs(examples, self.bits)
        parts = [slice(at, at + 4096) for at in range(0, len(y), 4096)]
        return np.concatenate([y[part] * self.outputs(weights["q"], x[part])[0] for part in parts])

    def belongs(self, weights: Mapping[str, Array], cls: PoolingClass) -> None:
        """Refuse weights that are no member of the class."""
        from flint import arb

        from boundcalc.base.intervals import certainly_le

        if (cls.bits, cls.width, cls.read) != (self.bits, self.width, self.read):
            raise CertificateError("the network is not of the class the proof is about")
        q = weights["q"]
        if q.shape != (self.width + 1,) or not np.isfinite(q).all():
            raise CertificateError(f"the query has {self.width + 1} finite numbers, got shape {q.shape}")
        square = sum((arb(float(value)) ** 2 for value in q), arb(0))
        if not certainly_le(square, arb(cls.within) ** 2):
            raise CertificateError(f"the query is longer than the {cls.within:g} of its class")


def signs(examples: Data, bits: int | None = None) -> tuple[Array, Array]:
    """Rows of bits and their answers as -1 and 1; anything else is refused."""
    x, y = examples.x, examples.y
    if x.ndim != 2 or y.ndim != 1 or not np.isin(x, (0, 1)).all() or not np.isin(y, (0, 1)).all():
        raise InvalidSetting(
            "norms trains a layer made for rows of bits with two answers, which these examples are not"
        )
    if bits is not None and x.shape[1] != bits:
        raise InvalidSetting(f"rows of {x.shape[1]} bits, the layer reads {bits}")
    return 2.0 * x - 1, 2.0 * y - 1


def margin_errors(network: PoolingNetwork, weights: Mapping[str, Array], data: Data, margin: float) -> int:
    """How many margins are at most gamma, with room for what floats lose."""
    return int((network.scores(weights, data) <= margin * (1 + _SLACK)).sum())
