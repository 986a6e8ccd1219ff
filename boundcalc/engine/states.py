"""What a witness is made of: two rows of different labels behind some layers, and the weights chosen so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from flint import arb

from boundcalc.statements.floors.base import Pattern

ZERO = arb(0)
SIZES = ("op", "fro", "two_one", "two_one_t", "one_one")

Row = tuple[arb, arb, arb]
"""The first and the second coordinate of each copy, and each of all other entries."""
Shape = tuple[int, int, int, int]
"""The entries of a map of two coordinates, row by row."""

INPUTS: Sequence[Shape] = ((1, 0, -1, 0), (1, -1, -1, 1), (1, 0, 0, 1))
"""The two inputs: opposite on one axis, or on two of different signs; or one axis each."""
SHAPES: Sequence[Shape] = ((0, 0, 0, 0), (1, 0, 0, 0), (1, -1, 0, 0), *INPUTS)
"""Maps of two coordinates: of the first or of the difference onto one axis or two of different signs; of both; and
zero."""


class Entry(NamedTuple):
    """Non-zero entries of a weight, and those chosen before.

    Attributes:
        before: the entries of the weight chosen before, if any.
        kind: of the weight, with its block and head (None: all).
        shape: the map of two coordinates.
        factor: by which it is multiplied.
        starts: the rows at which copies of the coordinates begin.
    """

    before: Entry | None
    kind: str
    block: int | None
    head: int | None
    shape: Shape
    factor: arb
    starts: tuple[int, ...] = (0,)


class State(NamedTuple):
    """The rows that two inputs of different labels have behind some layers.

    Attributes:
        rows: a row of each input.
        width: entries of a row.
        size: coordinates that are not like all others, in each copy: 1 or 2.
        starts: where copies of the coordinates begin.
        last: the last of the weights so far.
        start: which coordinates the inputs have.
        own_row: whether the row that will be read is still 0 in every input, unlike the others.
        alone: whether rows that are not read differ from the one that is.
    """

    rows: tuple[Row, Row]
    width: int
    size: int
    starts: tuple[int, ...] = (0,)
    last: Entry | None = None
    start: Shape = (1, 0, 0, 1)
    own_row: bool = False
    alone: bool = False

    def judged(self) -> tuple[str, float]:
        """How the label is written, and about the largest margin that a linear map of norm 1 makes of it.

        The margin is the distance of 0 from the segment between the row of one input and the other's times -1.
        """
        entries = [float(entry) for row in self.rows for entry in row[:2]]
        if not any(entries):
            return "zero", 0.0
        largest = max(map(abs, entries))
        a, b, c, d = [entry / largest for entry in entries]
        x, y = -c - a, -d - b
        length = x * x + y * y
        share = min(1.0, max(0.0, -(a * x + b * y) / length)) if length > 0 else 0.0
        apart = math.hypot(a + share * x, b + share * y)
        kind = "axis" if b == d == 0 else "pair" if abs(a + b) + abs(c + d) <= 1e-12 * apart else "both"
        return kind, apart * largest * math.sqrt(len(self.starts))

    @property
    def others(self) -> int:
        """How many entries are like all others."""
        return self.width - self.size * len(self.starts)

    def sums(self, row: Row) -> tuple[arb, arb]:
        """Of the entries of a row, and of their squares."""
        a, b, rest = row
        copies = len(self.starts)
        return copies * (a + b) + self.others * rest, copies * (a * a + b * b) + self.others * rest * rest


def best(states: Iterable[State]) -> list[State]:
    """Of every way to write the label the state with the largest margin."""
    best: dict[str, tuple[float, State]] = {}
    for state in states:
        if all([entry.is_finite() for row in state.rows for entry in row]):
            kind, apart = state.judged()
            if kind not in best or apart > best[kind][0]:
                best[kind] = apart, state
    return [state for _, state in best.values()]


@cache
def pattern_of(shape: Shape, copies: int) -> Pattern:
    """The norms of a map that reads so many copies of two coordinates."""
    a, b, c, d = shape
    root = arb(copies).sqrt()
    fro = root * arb(a * a + b * b + c * c + d * d).sqrt()
    columns = arb(a * a + c * c).sqrt() + arb(b * b + d * d).sqrt()
    rows = arb(a * a + b * b).sqrt() + arb(c * c + d * d).sqrt()
    rank = 1 if a * d == b * c else 2
    ones = arb(copies * (abs(a) + abs(b) + abs(c) + abs(d)))
    return Pattern(fro if rank == 1 else root, fro, root * columns, copies * rows, ones, rank)
