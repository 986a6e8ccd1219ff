"""What the statements about layers say, and what they are told: radius, Lipschitz factor, and the maps to be covered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting.layer import Layer
from boundcalc.statements.targets import MatrixNorms, Points, Target
from boundcalc.statements.weights import Weights


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
    """What composition needs to know of one layer."""

    radius: Number
    lipschitz: Number
    slots: tuple[Slot, ...] = ()
    uses: tuple[str, ...] = ()


PUBLISHED = frozenset({"L1", "L7"})
"""The statements of L whose published constants differ from ours."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a layer stands.

    Attributes:
        weights: the budgets, in some number system.
        radius: largest l2 norm of an input row.
        rows: rows of its output that are used, per sample.
        seq_len: T.
        published: statements ("L1", "L7") whose published constants are taken instead of the sharp ones (PUB).
        width: of the input rows, where it is known.
    """

    weights: Weights
    radius: Number
    rows: int
    seq_len: int
    published: frozenset[str] = frozenset()
    width: int | None = None

    @property
    def ns(self) -> NumberSystem:
        """The number system."""
        return self.weights.ns


@dataclass(frozen=True, slots=True)
class End:
    """What is before the last layer of a network, in intervals (G0e).

    Attributes:
        weights: the budgets.
        classes: numbers that the network puts out.
        radius: the longest row that reaches the layer.
        margin: the largest margin of what reaches it.
    """

    weights: Weights
    classes: int
    radius: Callable[[], Number]
    margin: Callable[[], Number]


Values = Mapping[str, Number]
"""What a statement says, by name."""


@dataclass(frozen=True, slots=True)
class Said:
    """A numbered statement about a class of layers, as a value, and why it cannot be used on something, or None."""

    value: Callable[..., Number | Values]
    applies: Callable[..., Refusal | None] | None = None


@dataclass(frozen=True, slots=True)
class LayerRule:
    """All that proofs know of one class of layers.

    Only the facts must be said. What is left out is not supposed: the sharper statement is not used where the class stands.

    Attributes:
        layer: the class.
        facts: radius, Lipschitz factor and what must be covered, of a layer where it stands.
        noise: whether G11 was proved for a layer with the options it has.
        reach: the longest row behind a layer, in intervals, which may be below the radius of the facts (G0e).
        margin: the largest margin of a network that ends with a layer, in intervals; None where only radii are known (G0e).
        along: the operator norm of A where every output row is a mean of rows rho x A with 0 < rho <= 1; None elsewhere (G0e).
        positive: whether no entry of its output is negative, or larger than the entry of its input (G0e).
        split: the largest (|p_+| |q_-|)^(1/2) over output rows p and q, of which p is read on some columns and q on the
            others; None where only the radius is known (G0e).
        idle: whether a layer does nothing to rows no longer than so, an interval (A6).
        says: the numbered statements about the class, by name.
    """

    layer: type[Layer]
    facts: Callable[[Any, Context], Facts]
    noise: Callable[[Any], bool] | None = None
    reach: Callable[[Any, Context], Number] | None = None
    margin: Callable[[Any, End], Number | None] | None = None
    along: Callable[[Any, Context], Number | None] | None = None
    positive: Callable[[Any], bool] | None = None
    split: Callable[[Any, Context], Number | None] | None = None
    idle: Callable[[Any, Number], bool] | None = None
    says: Callable[[], Mapping[str, Said]] | None = None


def largest_margin(ns: NumberSystem, radius: Number, classes: int) -> Number:
    """G0e: the largest margin of an output no longer than `radius`: R, for K > 1 classes R sqrt(K/(K-1))."""
    if classes == 1:
        return radius
    return radius * ns.sqrt(ns.number(classes) / ns.number(classes - 1))


def halved(ns: NumberSystem, norms: MatrixNorms) -> Number:
    """G0e: the largest (|W_+| |W_-|)^(1/2) where columns are shared out: |W|_F / sqrt 2, or |W|_(2,1) / 2."""
    return ns.minimum(norms.fro / ns.sqrt(ns.number(2)), norms.two_one / 2)


def vector_target(ns: NumberSystem, kind: str, size: int, norm: Number, radius: Number | None = None) -> Target:
    """Target of an offset (T8) or of a gain (T9)."""
    norms = MatrixNorms(norm, norm, norm, norm, norm, norm, 1)
    return Target(
        "gain" if kind == "gain" else "vector", 1, size, ns.number(1) if radius is None else radius, norms, Points(0, 1)
    )


def offset_slot(kind: str, sensitivity: Number, size: int, norm: Number, at: Context) -> Slot:
    """An offset to be covered (T8)."""
    return Slot(kind, sensitivity, (Member(1, (vector_target(at.ns, "vector", size, norm),)),))


def slots_of(fact: Facts) -> dict[str, Slot]:
    """What must be covered, by name."""
    return {slot.kind: slot for slot in fact.slots}


def total(values: Sequence[Number]) -> Number:
    """The sum, in any number system."""
    added = values[0]
    for value in values[1:]:
        added = added + value
    return added
