"""The checker of G15's premise: that a network, from its stored weights, answers as a rule wherever the rule answers.

A proof is a list of leaves: a pattern of the bits read, further fixed positions, slopes of lines below the hidden units.
Everything else is derived here: the tables, the window, that leaves and removed cubes cover all inputs, B1 and B2 on every
leaf. A wrong leaf can make the proof fail, never succeed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import lower_float
from boundcalc.predictors.certificate import object_of
from boundcalc.predictors.rules.code import Cube, Rule
from boundcalc.predictors.rules.hidden import ends, offsets
from boundcalc.predictors.rules.support import HeadOn, Inputs, heads_on, transposed
from boundcalc.predictors.rules.tables import Tables
from boundcalc.predictors.statements.base import real

_MOST_NODES = 100_000


@dataclass(frozen=True)
class Leaf:
    """Inputs on which one bound decides the answer.

    Attributes:
        cube: which inputs.
        slopes: of a line below every hidden unit; any numbers.
        heads: heads whose effect on the hidden layer is bounded unit by unit, not by a box; any of them.
    """

    cube: Cube
    slopes: tuple[float, ...]
    heads: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {**self.cube.to_json(), "heads": list(self.heads), "slopes": list(self.slopes)}

    @classmethod
    def from_json(cls, data: object) -> Leaf:
        """Read strictly."""
        raw = dict(object_of("a leaf", data, ("pattern", "positions", "values", "heads", "slopes")))
        heads, slopes = raw.pop("heads"), raw.pop("slopes")
        if not isinstance(heads, list) or any(not isinstance(h, int) or isinstance(h, bool) for h in heads):
            raise CertificateError("the heads of a leaf are a list of whole numbers")
        if not isinstance(slopes, list):
            raise CertificateError("the slopes of a leaf are a list of numbers")
        return cls(Cube.from_json(raw), tuple(real("a slope", slope) for slope in slopes), tuple(heads))


@dataclass(frozen=True)
class Proof:
    """Leaves for all inputs with `low` to `high` ones among the bits that the rule does not read."""

    low: int
    high: int
    leaves: tuple[Leaf, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {"ones": [self.low, self.high], "leaves": [leaf.to_json() for leaf in self.leaves]}

    @classmethod
    def from_json(cls, data: object) -> Proof:
        """Read strictly."""
        raw = object_of("a proof", data, ("ones", "leaves"))
        ones, leaves = raw["ones"], raw["leaves"]
        if (
            not isinstance(ones, list)
            or len(ones) != 2
            or any(not isinstance(k, int) or isinstance(k, bool) for k in ones)
        ):
            raise CertificateError(f"ones of a proof are the least and the largest number, got {ones!r}")
        if not isinstance(leaves, list):
            raise CertificateError("the leaves of a proof are a list")
        return cls(ones[0], ones[1], tuple(Leaf.from_json(leaf) for leaf in leaves))


@dataclass(frozen=True)
class Proved:
    """What was proved.

    Attributes:
        margin: |f| is at least this wherever the rule answers within the proof's numbers of ones.
        everywhere: whether these are all inputs.
        values: proved least values of +-f, one per leaf.
    """

    margin: float
    everywhere: bool
    values: tuple[float, ...]


def prove(tables: Tables, rule: Rule, proof: Proof, *, progress: Callable[[str], None] | None = None) -> Proved:
    """Show that the network answers as the rule does wherever the rule answers; raise `CertificateError` if it is not shown."""
    if tables.shape.T != rule.T:
        raise CertificateError(f"the rule is of {rule.T} bits, the network of {tables.shape.T}")
    low, high = rule.ones
    if proof.low > low or proof.high < high:
        raise CertificateError(
            f"the proof is for {proof.low} to {proof.high} ones, the rule answers from {low} to {high}"
        )
    refuse_gaps(rule, proof)
    values: list[float] = []
    for number, leaf in enumerate(proof.leaves, 1):
        if progress is not None:
            progress(f"leaf {number} of {len(proof.leaves)}")
        answer = rule.table[rule.patterns.index(leaf.cube.pattern)]
        inputs = inputs_of(rule, leaf.cube, proof.low, proof.high)
        if inputs.empty:
            continue
        value = least_value(tables, leaf, 1 if answer else -1, inputs)
        if not (value > 0 and math.isfinite(value)):
            pattern = "".join(map(str, leaf.cube.pattern))
            raise CertificateError(f"not shown that the network answers {answer} where the bits read are {pattern}")
        values.append(value)
    if not values or not all(value > 0 and math.isfinite(value) for value in values):
        raise CertificateError("the proof has no leaf with an input, or one that shows nothing")
    everywhere = not rule.removed and proof.low <= 0 and proof.high >= rule.T - len(rule.positions)
    return Proved(min(values), everywhere, tuple(values))


def inputs_of(rule: Rule, cube: Cube, low: int, high: int) -> Inputs:
    """The inputs in a cube with low to high ones among the bits not read."""
    fixed = (*zip(rule.positions, cube.pattern, strict=True), *zip(cube.positions, cube.values, strict=True))
    shown = sum(cube.values)
    return Inputs(rule.T, tuple(fixed), low - shown, high - shown)


def refuse_gaps(rule: Rule, proof: Proof) -> None:
    """Leaves and removed cubes cover every pattern with all values of all other positions."""
    for leaf in proof.leaves:
        rule.check_cube(leaf.cube)
    for pattern in rule.patterns:
        cubes = [leaf.cube for leaf in proof.leaves if leaf.cube.pattern == pattern]
        cubes += [cube for cube in rule.removed if cube.pattern == pattern]
        if not covers(dict(zip(cube.positions, cube.values, strict=True)) for cube in cubes):
            text = "".join(map(str, pattern))
            raise CertificateError(f"the leaves leave out inputs whose bits read are {text}")


def covers(cubes: Iterable[Mapping[int, int]]) -> bool:
    """Whether every assignment lies in one of the cubes (positions with their values), by branching on positions."""
    stack, nodes = [list(cubes)], 0
    while stack:
        known = stack.pop()
        nodes += 1
        if nodes > _MOST_NODES:
            raise CertificateError("the leaves are too many to see whether they cover all inputs")
        if any(not cube for cube in known):
            continue
        if not known:
            return False
        position = next(iter(min(known, key=len)))
        for bit in (0, 1):
            fitting = (cube for cube in known if cube.get(position, bit) == bit)
            stack.append([{t: c for t, c in cube.items() if t != position} for cube in fitting])
    return True


def least_value(tables: Tables, leaf: Leaf, sign: int, inputs: Inputs) -> float:
    """A number that sign times f is at least on all the inputs (B2); minus infinity where nothing is shown."""
    n = tables.shape
    if len(leaf.slopes) != n.d_ff or any(not 0 <= h < n.heads for h in leaf.heads):
        raise CertificateError("a leaf has one slope per hidden unit, and names heads of the network")
    heads = heads_on(tables, inputs)
    low, high = _hidden_range(tables, heads, leaf.heads)
    g = [sign * each for each in tables.g]
    total = sum(offsets(n.activation, g, leaf.slopes, low, high), sign * tables.c_0)
    total = sum((arb(a) * zeta for a, zeta in zip(leaf.slopes, tables.zeta, strict=True)), total)
    column = arb_mat(n.d_ff, 1, list(leaf.slopes))
    for head in heads:
        through = (arb_mat(head.table.hidden) * column).entries()
        direction = [-(sign * u + w) for u, w in zip(head.table.out, through, strict=True)]
        total = total - head.bounds([direction])[0]
    return lower_float(total) if total.is_finite() else -math.inf


def _hidden_range(tables: Tables, heads: Sequence[HeadOn], exact: Sequence[int]) -> tuple[list[float], list[float]]:
    """Floats below and above every z_j."""
    width = tables.shape.d_ff
    middle, up, down = list(tables.zeta), [arb(0)] * width, [arb(0)] * width
    for head in heads:
        matrix = head.table.hidden
        if head.index in exact:
            rows = transposed(matrix)
            most = head.bounds([*rows, *([-entry for entry in row] for row in rows)])
            up = [a + b for a, b in zip(up, most[:width], strict=True)]
            down = [a + b for a, b in zip(down, most[width:], strict=True)]
            continue
        centre, radius = head.box()
        at = (arb_mat([centre]) * arb_mat(matrix)).entries()
        spread = (arb_mat([radius]) * arb_mat([[abs(entry) for entry in row] for row in matrix])).entries()
        middle = [a + b for a, b in zip(middle, at, strict=True)]
        up = [a + b for a, b in zip(up, spread, strict=True)]
        down = [a + b for a, b in zip(down, spread, strict=True)]
    return ends(middle, down, up)
