"""The checker of G15's premise: that a network, from its stored weights, answers as a rule wherever the rule answers.

A proof is a tree. It cuts the inputs by a bit until slopes of lines below the hidden units show the answer. Everything
else is derived here: the tables, the domain, B1 and B2 on every leaf. The parts of a cut cover what is cut, so a wrong
tree can make the proof fail, never succeed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.base.schema import write
from boundcalc.predictors._statements import read_as
from boundcalc.predictors.rules._hidden import offset
from boundcalc.predictors.rules.code import Fixed, Rule
from boundcalc.predictors.rules.heads import HeadsOn, Inputs
from boundcalc.predictors.rules.tables import BallTables


class Node:
    """Of a proof's tree."""

    TAG: ClassVar[str] = "kind"
    KINDS: ClassVar[dict[str, type[Node]]] = {}


@dataclass(frozen=True)
class Leaf(Node):
    """Inputs on which one bound decides the answer. None of its numbers is trusted.

    Attributes:
        slopes: of a line below every hidden unit.
        heads: heads whose effect on the hidden layer is bounded unit by unit, not by a box.
    """

    label: ClassVar[str] = "leaf"
    slopes: tuple[float, ...]
    heads: tuple[int, ...]


@dataclass(frozen=True)
class Bit(Node):
    """A cut: inputs with bit 0, and with bit 1. A part that is None has inputs that the rule does not answer."""

    label: ClassVar[str] = "bit"
    index: int
    parts: tuple[Node | None, Node | None]


Node.KINDS |= {"leaf": Leaf, "bit": Bit}


@dataclass(frozen=True)
class Proof:
    """A tree for all inputs with `low` to `high` ones."""

    low: int
    high: int
    tree: Node | None

    @property
    def leaves(self) -> list[tuple[Fixed, Leaf | None]]:
        """What leads to each leaf, and the leaf."""
        return list(_leaves(self.tree, {}))

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return write(self, complete=True)

    @classmethod
    def from_json(cls, data: object) -> Proof:
        """Read strictly."""
        return read_as(cls, "a proof", data)


@dataclass(frozen=True)
class Proved:
    """What was proved.

    Attributes:
        margin: |f| is at least this wherever the rule answers within the proof's numbers of ones.
        everywhere: whether these are all inputs.
        values: proved least values of +-f, one per leaf with an input.
        rounding: a float32 pass falls at most this far below them; None where this is not known.
    """

    margin: float
    everywhere: bool
    values: tuple[float, ...]
    rounding: float | None = None


def prove(tables: BallTables, rule: Rule, proof: Proof, *, progress: Callable[[str], None] | None = None) -> Proved:
    """What the proof shows of the network.

    Raises `CertificateError` where it does not show that it follows the rule.
    """
    if rule.T != tables.T:
        raise CertificateError(f"the rule is of {rule.T} bits, the network of {tables.T}")
    low, high = rule.ones
    if proof.low > low or proof.high < high:
        raise CertificateError(
            f"the proof is for {proof.low} to {proof.high} ones, the rule answers from {low} to {high}"
        )
    values: list[float] = []
    leaves = proof.leaves
    for number, (fixed, leaf) in enumerate(leaves, 1):
        if progress is not None:
            progress(f"leaf {number} of {len(leaves)}")
        if any(not 0 <= t < rule.T for t in fixed):
            raise CertificateError("a proof cuts bits of the input")
        inputs, answers = Inputs(rule.T, fixed, proof.low, proof.high), rule.answers_on(fixed) - {-1}
        if inputs.empty or not answers:
            continue
        if leaf is None or len(answers) > 1:
            raise CertificateError(
                f"the proof leaves out inputs that show {dict(fixed)}, or does not tell their answers apart"
            )
        value = least_value(tables, leaf, 1 if 1 in answers else -1, inputs)
        if not (value > 0 and math.isfinite(value)):
            raise CertificateError(
                f"not shown that the network answers {answers.pop()} on inputs that show {dict(fixed)}"
            )
        values.append(value)
    if not values:
        raise CertificateError("the proof has no leaf with an input")
    everywhere = not rule.silent and proof.low <= 0 and proof.high >= rule.T
    return Proved(min(values), everywhere, tuple(values), tables.rounding)


def least_value(tables: BallTables, leaf: Leaf, sign: int, inputs: Inputs) -> float:
    """A number that sign times f is at least on all the inputs (B2); -inf: nothing is shown."""
    a = tables.architecture
    if len(leaf.slopes) != tables.units.ncols() or any(not 0 <= h < a.heads for h in leaf.heads):
        raise CertificateError("a leaf has one slope per hidden unit, and names heads of the network")
    total, ranges = sign * tables.k_0[0, 0], _ranges(tables, inputs, sorted(set(leaf.heads)))
    units = zip(tables.zeta.entries(), tables.g.entries(), leaf.slopes, ranges, strict=True)
    for zeta, g, slope, (low, high) in units:
        z = lower_float(zeta + low), upper_float(zeta + high)
        total += offset(a.activation, sign * g, slope, *z) + arb(slope) * zeta
    against = -(sign * tables.readout + tables.units * arb_mat([[slope] for slope in leaf.slopes]))
    bounds = HeadsOn(tables.heads, [inputs]).bounds(*tables.directions(against))
    total -= sum(map(arb, bounds[:, 0].tolist()), (tables.rho * against)[0, 0])
    return lower_float(total) if total.is_finite() else -math.inf


def _ranges(tables: BallTables, inputs: Inputs, exact: Sequence[int]) -> Iterator[tuple[arb, arb]]:
    """Bounds of <w, r> for every hidden unit's w: of some heads unit by unit, of others from a box."""
    heads = tables.heads
    count, _, width = heads.values.shape
    axes = np.broadcast_to(np.concatenate([np.eye(width), -np.eye(width)]), (count, 2 * width, width))
    box = HeadsOn(heads, [inputs]).bounds(axes, np.zeros(axes.shape[:2]))
    box[exact] = 0
    up, down = (arb_mat(1, count * width, half.ravel().tolist()) for half in np.split(box, 2, 1))
    through = tables.through
    at = tables.rho * tables.units + (up - down) * through * arb(0.5)
    spread = (up + down) * arb_mat([[abs(entry) for entry in row] for row in through.tolist()]) * arb(0.5)
    low, high = at - spread, at + spread
    for h in exact:
        bounds = HeadsOn(heads[[h]], [inputs]).bounds(*(part[[h]] for part in tables.both_ways))
        up, down = (arb_mat([half.tolist()]) for half in np.split(bounds[0], 2))
        low, high = low - down, high + up
    return zip(low.entries(), high.entries(), strict=True)


def _leaves(tree: Node | None, fixed: Fixed) -> Iterator[tuple[Fixed, Leaf | None]]:
    if isinstance(tree, Bit):
        for bit, part in enumerate(tree.parts):
            if fixed.get(tree.index, bit) == bit:
                yield from _leaves(part, {**fixed, tree.index: bit})
    else:
        yield fixed, tree if isinstance(tree, Leaf) else None
