"""What a proof needs of a layer: how far rows reach, how much it stretches errors, which maps it covers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from boundcalc.base.numbers import Number, NumberSystem

if TYPE_CHECKING:
    from boundcalc.layers.base import Weight
    from boundcalc.statements.weights import Weights

Kind = Literal["map", "score", "query", "key", "vector", "gain", "table", "numbers", "pooled", "summed"]


@dataclass(frozen=True, slots=True)
class Points:
    """How many distinct points m samples can show: per_sample * m, at most `cap`."""

    per_sample: int
    cap: int | None = None

    def count(self, samples: Any) -> Any:
        """Points among so many samples."""
        shown = self.per_sample * samples
        return shown if self.cap is None else min(shown, self.cap)


@dataclass(frozen=True, slots=True)
class MatrixNorms:
    """Every norm of one matrix, the unset ones derived from the set ones (A5)."""

    op: Number
    fro: Number
    two_one: Number
    two_one_t: Number
    one_one: Number
    nuclear: Number
    rank: int

    @classmethod
    def all(cls, size: Number, rank: int = 1) -> MatrixNorms:
        """A matrix whose norms are all at most one number: a vector, or a table of which only the rows are known."""
        return cls(size, size, size, size, size, size, rank)


@dataclass(frozen=True, slots=True)
class Target:
    """A class {x -> xW} of maps R^d -> R^k on points of norm at most `radius`.

    kind "map": any matrix; "score", "query", "key": the three ways to see a bilinear score (S1, S2), with
    the product of both radii; "vector": an offset (one point); "gain": a diagonal; "table": independent rows;
    "numbers": each by itself; "pooled": a table seen through averages of its rows, columns perhaps through different
    ones; "summed": a hidden layer seen through the sum of its units, where the spread of noise is larger by `extra` and
    the noise that one point sees is at most `most` (V4).
    """

    kind: Kind
    d: int
    k: int
    radius: Number
    norms: MatrixNorms
    points: Points
    extra: Number | None = None
    most: Number | None = None

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.d * self.k


@dataclass(frozen=True, slots=True)
class Member:
    """One of the equal or similar maps of a slot (a head), and the ways it can be covered."""

    multiplicity: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Maps of one kind in one layer, all covered to the same eps.

    Attributes:
        kind: name of the matrix.
        sensitivity: error of the layer's output per eps.
        members: the maps.
        cap: error of the layer's output however wrong the maps are.
        saturates: whether an error of e, to first order, is at most cap tanh(e / cap) (S5).
    """

    kind: str
    sensitivity: Number
    members: tuple[Member, ...]
    cap: Number | None = None
    saturates: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What composition needs to know of one layer; `uses` names the statements that say so."""

    radius: Number
    lipschitz: Number
    slots: tuple[Slot, ...] = ()
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """Where a layer stands.

    Attributes:
        weights: the budgets, in some number system.
        radius: largest l2 norm of an input row.
        rows: rows of its output that are used, per sample.
        seq_len: T.
        published: whether L1 and L7 have their published constants instead of the sharp ones (PUB).
    """

    weights: Weights
    radius: Number
    rows: int
    seq_len: int
    published: bool = False

    @property
    def ns(self) -> NumberSystem:
        """The number system."""
        return self.weights.ns

    def size(self, weight: Weight, head: int | None = None) -> Number:
        """|W|_op of a matrix, the length of an offset, the largest gain, the longest row of a table."""
        return self.weights.read(weight, head)[0]

    def target(
        self, weight: Weight, head: int | None = None, radius: Number | None = None, points: int | None = None
    ) -> Target:
        """What is covered of a weight: a matrix on the rows that are used, unless points are given; T8, T9, T10."""
        _, norms = self.weights.read(weight, head)
        if weight.role == "matrix":
            d, k = weight.shape
            length = self.radius if radius is None else radius
            return Target("map", d, k, length, norms, Points(self.rows if points is None else points))
        one = self.ns.number(1)
        if weight.role in ("table", "rows"):
            rows, d = weight.shape
            return Target("table", rows, d, one, norms, Points(self.seq_len, rows))
        kind: Kind = "gain" if weight.role == "gain" else "vector"
        length = one if radius is None or kind == "vector" else radius
        return Target(kind, 1, math.prod(weight.shape), length, norms, Points(0, 1))

    def slot(
        self,
        weight: Weight,
        sensitivity: Number = 1,
        *,
        head: int | None = None,
        radius: Number | None = None,
        points: int | None = None,
    ) -> Slot:
        """A slot of one map."""
        return one_slot(weight.kind, self.ns.number(1) * sensitivity, self.target(weight, head, radius, points))


def one_slot(kind: str, sensitivity: Number, *targets: Target) -> Slot:
    """A slot of one map, with the ways it can be covered."""
    return Slot(kind, sensitivity, (Member(1, targets),))
