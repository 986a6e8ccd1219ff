"""The checker of G15's premise: that a network, from its stored weights, answers as a rule wherever the rule answers.

A proof is a tree. It cuts the inputs by a bit until slopes of lines below the hidden units show the answer. Everything
else is derived here: the tables, the domain, B1 and B2 on every leaf. The parts of a cut cover what is cut, so a wrong
tree can make the proof fail, never succeed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.base.schema import Count
from boundcalc.predictors.rules._hidden import least, offset, phi
from boundcalc.predictors.rules.code import Fixed, Rule
from boundcalc.predictors.rules.heads import HeadsOn, Inputs
from boundcalc.predictors.rules.tables import BallTables, absolute, beside

_Ends = tuple[arb, arb]
"""The least and the largest value of something, at most and at least."""


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

    low: Count
    high: Count
    tree: Node | None

    @property
    def leaves(self) -> list[tuple[Fixed, Leaf | None]]:
        """What leads to each leaf, and the leaf."""
        return list(_leaves(self.tree, {}))


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


def prove(tables: BallTables, rule: Rule, proof: Proof) -> Proved:
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
    for fixed, leaf in proof.leaves:
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
    a, width, normalised = tables.architecture, tables.units.ncols(), tables.centre.ncols()
    if len(leaf.slopes) != width or any(not 0 <= h < a.heads for h in leaf.heads):
        raise CertificateError("a leaf has one slope per hidden unit, and names heads of the network")
    ranges = _read_ranges(tables, inputs, leaf.heads)
    if not math.isfinite(leaf.scale) or not all(end.is_finite() for ends in ranges for end in ends):
        return -math.inf
    scale = _first_scale(tables, ranges[width : width + normalised])
    total, z = sign * tables.k_0[0, 0], list[tuple[float, float]]()
    units = zip(tables.zeta.entries(), tables.g.entries(), leaf.slopes, ranges[:width], strict=True)
    for zeta, g, slope, ends in units:
        low, high = _scaled(scale, *ends)
        z.append((lower_float(zeta + low), upper_float(zeta + high)))
        total = total + offset(a.activation, sign * g, slope, *z[-1]) + arb(slope) * zeta
    near, bent = arb(leaf.scale), sign * tables.scaled + tables.units * arb_mat([[slope] for slope in leaf.slopes])
    against, up, down = _most(tables, inputs, [-(sign * tables.straight + near * bent), bent, -bent])
    # s t - near t is bilinear in the scale s and t = <bent, r>, so it is least at a corner
    total = total + least([(s - near) * t for s in scale for t in (up, -down)]) - against
    if normalised and not bool(total > 0):
        return -math.inf
    residual = ranges[len(ranges) - normalised :]
    if tables.post:
        residual = [_scaled(scale, *ends) for ends in residual]
    total = tables.scale_of_square(_output_square(tables, residual, z)) * total + sign * tables.last[0, 0]
    return lower_float(total) if total.is_finite() else -math.inf


def _read_ranges(tables: BallTables, inputs: Inputs, exact: Sequence[int]) -> list[_Ends]:
    """Bounds of <w, r> for every column w that is read: of some heads column by column, of others from a box."""
    heads, exact = tables.heads, sorted(set(exact))
    count, _, width = heads.values.shape
    axes = np.broadcast_to(np.concatenate([np.eye(width), -np.eye(width)]), (count, 2 * width, width))
    box = HeadsOn(heads, [inputs]).bounds(axes, np.zeros(axes.shape[:2]))
    box[exact] = 0
    up, down = (arb_mat(1, count * width, half.ravel().tolist()) for half in np.split(box, 2, 1))
    at = tables.rho * tables.read + (up - down) * tables.through * arb(0.5)
    spread = (up + down) * absolute(tables.through) * arb(0.5)
    low, high = at - spread, at + spread
    for h in exact:
        bounds = HeadsOn(heads[[h]], [inputs]).bounds(*(part[[h]] for part in tables.both_ways))
        up, down = (arb_mat([half.tolist()]) for half in np.split(bounds[0], 2))
        low, high = low - down, high + up
    return list(zip(low.entries(), high.entries(), strict=True))


def _most(tables: BallTables, inputs: Inputs, columns: Sequence[arb_mat]) -> list[arb]:
    """Proved upper bounds of <w, r> for some columns w."""
    w = beside(*columns)
    bounds = HeadsOn(tables.heads, [inputs]).bounds(*tables.directions(w)).T.tolist()
    starts = (tables.rho * w).entries()
    return [sum(map(arb, of_heads), start) for start, of_heads in zip(starts, bounds, strict=True)]


def _scaled(scale: Sequence[arb], low: arb, high: arb) -> _Ends:
    """Bounds of s t for a scale s and low <= t <= high."""
    return least([s * low for s in scale]), -least([-s * high for s in scale])


def _first_scale(tables: BallTables, box: Sequence[_Ends]) -> list[arb]:
    """The least and the largest scale of the first normalisation, from a box around r C."""
    smallest = [least([a * a, b * b]) for a, b in box if bool(a > 0) or bool(b < 0)]
    return [tables.scale_of_square(square) for square in (_largest_square(box), sum(smallest, arb(0)))]


def _largest_square(box: Sequence[_Ends]) -> arb:
    return sum((arb.max(a * a, b * b) for a, b in box), arb(0))


def _output_square(tables: BallTables, residual: Sequence[_Ends], z: Sequence[tuple[float, float]]) -> arb:
    """At least |y C|^2, y the row before the read-out."""
    name, ends = tables.architecture.activation, list[_Ends]()
    for a, b in z:
        at = [phi(name, arb(a)), phi(name, arb(b))]
        monotone = name == "relu" or a >= -0.75 or b <= -0.76  # GELU falls, then rises, and is above -0.17
        ends.append((arb.min(*at) if monotone else arb(-0.17), arb.max(*at)))
    middle, half = (arb_mat([[(b + way * a) / 2 for a, b in ends]]) for way in (1, -1))
    moved, spread = middle * tables.second + tables.shift, half * absolute(tables.second)
    sums = zip(residual, moved.entries(), spread.entries(), strict=True)
    return _largest_square([(low + at - around, high + at + around) for (low, high), at, around in sums])


def _leaves(tree: Node | None, fixed: Fixed) -> Iterator[tuple[Fixed, Leaf | None]]:
    if isinstance(tree, Bit):
        for bit, part in enumerate(tree.parts):
            if fixed.get(tree.index, bit) == bit:
                yield from _leaves(part, {**fixed, tree.index: bit})
    else:
        yield fixed, tree if isinstance(tree, Leaf) else None
