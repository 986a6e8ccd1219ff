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
from boundcalc.predictors.rules._heads import Directions, HeadOn, Inputs
from boundcalc.predictors.rules._hidden import least, offset, phi
from boundcalc.predictors.rules._rounding import float32_error
from boundcalc.predictors.rules.code import Fixed, Rule
from boundcalc.predictors.rules.tables import Tables


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
        scale: about what the first normalisation multiplies with.
    """

    label: ClassVar[str] = "leaf"
    slopes: tuple[float, ...]
    heads: tuple[int, ...]
    scale: float = 1.0


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


def prove(tables: Tables, rule: Rule, proof: Proof, *, progress: Callable[[str], None] | None = None) -> Proved:
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
        inputs, answers = inputs_of(rule.T, fixed, proof.low, proof.high), rule.answers_on(fixed) - {-1}
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
    return Proved(min(values), everywhere, tuple(values), float32_error(tables.architecture, tables.weights))


def inputs_of(T: int, fixed: Fixed, low: int, high: int) -> Inputs:
    """The inputs that show these bits, with low to high ones in all."""
    shown = sum(fixed.values())
    return Inputs(T, tuple(fixed.items()), low - shown, high - shown)


def least_value(tables: Tables, leaf: Leaf, sign: int, inputs: Inputs) -> float:
    """A number that sign times f is at least on all the inputs (B2); -inf: nothing is shown."""
    a, width = tables.architecture, len(tables.zeta)
    if len(leaf.slopes) != width or any(not 0 <= h < a.heads for h in leaf.heads):
        raise CertificateError("a leaf has one slope per hidden unit, and names heads of the network")
    if tables.centre is None and leaf.scale != 1:
        raise CertificateError("a leaf of a network without normalisation has the scale 1")
    heads = [HeadOn(table, inputs) for table in tables.heads]
    low, high = _read_range(tables, heads, leaf.heads)
    if not all(end.is_finite() for end in (*low, *high)):
        return -math.inf
    scale = _first_scale(tables, low[width:], high[width:])
    total, z = sign * tables.k_0, list[tuple[float, float]]()
    for j, (g, slope, zeta) in enumerate(zip(tables.g, leaf.slopes, tables.zeta, strict=True)):
        z.append(
            (
                lower_float(zeta + least([s * low[j] for s in scale])),
                upper_float(zeta - least([-s * high[j] for s in scale])),
            )
        )
        total = total + offset(a.activation, sign * g, slope, *z[j]) + arb(slope) * zeta
    bent = sign * tables.scaled + tables.units * arb_mat([[slope] for slope in leaf.slopes])
    if tables.centre is None:
        total = total - _most(tables, heads, [-(sign * tables.straight + bent)])[0]
        return _lower_float(total + sign * tables.last)
    if not math.isfinite(leaf.scale):
        return -math.inf
    near = arb(leaf.scale)
    against, up, down = _most(tables, heads, [-(sign * tables.straight + near * bent), bent, -bent])
    # s t - near t is bilinear in the scale s and t = <bent, r>, so it is least at a corner
    total = total + least([(s - near) * t for s in scale for t in (up, -down)]) - against
    if not bool(total > 0):
        return -math.inf
    square = _output_square(tables, low[width:], high[width:], scale, z)
    return _lower_float(tables.scale_of_square(square) * total + sign * tables.last)


def _lower_float(total: arb) -> float:
    return lower_float(total) if total.is_finite() else -math.inf


def _most(tables: Tables, heads: Sequence[HeadOn], columns: Sequence[arb_mat]) -> list[arb]:
    """Proved upper bounds of <w, r> for some columns w."""
    sums = [(tables.rho * w)[0, 0] for w in columns]
    for head in heads:
        bounds = head.bounds(Directions([(head.table.out * w).entries() for w in columns]))
        sums = [a + b for a, b in zip(sums, bounds.tolist(), strict=True)]
    return sums


def _read_range(tables: Tables, heads: Sequence[HeadOn], exact: Sequence[int]) -> tuple[list[arb], list[arb]]:
    """Bounds of <w, r> for every column w that is read: of some heads column by column, of others from a box."""
    low = high = (tables.rho * tables.read).entries()
    for h, (head, through) in enumerate(zip(heads, tables.through, strict=True)):
        if h in exact:
            up, down = np.split(head.bounds(tables.both_ways[h]), 2)
            ups, downs = up.tolist(), (-down).tolist()
        else:
            middle, half = head.box(tables.axes)
            at, spread = (arb_mat([middle]) * through).entries(), (arb_mat([half]) * tables.sizes[h]).entries()
            ups = [a + b for a, b in zip(at, spread, strict=True)]
            downs = [a - b for a, b in zip(at, spread, strict=True)]
        low, high = [a + b for a, b in zip(low, downs, strict=True)], [a + b for a, b in zip(high, ups, strict=True)]
    return low, high


def _first_scale(tables: Tables, low: Sequence[arb], high: Sequence[arb]) -> list[arb]:
    """The least and the largest scale of the first normalisation, from a box around C r."""
    if tables.centre is None:
        return [arb(1)]
    box = list(zip(low, high, strict=True))
    smallest = [least([a * a, b * b]) for a, b in box if bool(a > 0) or bool(b < 0)]
    return [tables.scale_of_square(square) for square in (_largest_square(box), sum(smallest, arb(0)))]


def _largest_square(box: Sequence[tuple[arb, arb]]) -> arb:
    return sum((arb.max(a * a, b * b) for a, b in box), arb(0))


def _output_square(
    tables: Tables, low: Sequence[arb], high: Sequence[arb], scale: Sequence[arb], z: Sequence[tuple[float, float]]
) -> arb:
    """At least |C y|^2, y the row behind the hidden layer: C takes a vector in a box to C y, and C only shortens."""
    w_2, b_2, residual = tables.behind
    name = tables.architecture.activation
    ends: list[tuple[arb, arb]] = []
    for a, b in z:
        at = [phi(name, arb(a)), phi(name, arb(b))]
        monotone = name == "relu" or a >= -0.75 or b <= -0.76  # GELU falls, then rises, and is above -0.17
        ends.append((arb.min(*at) if monotone else arb(-0.17), arb.max(*at)))
    box: list[tuple[arb, arb]] = []
    for i, column in enumerate(w_2.transpose().tolist()):
        lower, upper = low[i] + b_2[i], high[i] + b_2[i]
        if residual is not None:
            corners = [residual[0][i] * s * c for s in scale for c in (low[i], high[i])]
            lower = least(corners) + b_2[i] + residual[1][i]
            upper = b_2[i] + residual[1][i] - least([-c for c in corners])
        for w, (bottom, top) in zip(column, ends, strict=True):
            lower, upper = lower + arb.min(w * bottom, w * top), upper + arb.max(w * bottom, w * top)
        box.append((lower, upper))
    return _largest_square(box)


def _leaves(tree: Node | None, fixed: Fixed) -> Iterator[tuple[Fixed, Leaf | None]]:
    if isinstance(tree, Bit):
        for bit, part in enumerate(tree.parts):
            if fixed.get(tree.index, bit) == bit:
                yield from _leaves(part, {**fixed, tree.index: bit})
    else:
        yield fixed, tree if isinstance(tree, Leaf) else None
