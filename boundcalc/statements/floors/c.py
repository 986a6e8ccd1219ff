"""Construction C, depth 1: several score columns, read at the first row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.system import Number
from boundcalc.statements.floors.base import Construction, Member, Room, pooled, share, side, whole


@dataclass(frozen=True)
class C(Construction):
    """Cell (i, j): the read row is e_i, `plus` rows are a e_j + b e_v, others the negative, a^2 + b^2 = 1."""

    name: ClassVar[str] = "C"
    title: ClassVar[str] = "several score columns, read at the first row"
    k: int
    n: int
    a: float
    plus: int

    def problem(self, room: Room) -> str | None:
        if room.depth != 1 or room.mean:
            return "construction C is about one block read at its first row"
        return (
            whole("k", self.k, 1, room.d - 2)
            or whole("n", self.n, 1, room.d - 1 - self.k)
            or share("a", self.a)
            or whole("plus", self.plus, 0, room.seq_len - 1)
        )

    def cells(self, room: Room) -> int:
        return self.k * self.n

    def output(self, room: Room, sign: int) -> Number:
        ns = room.ns
        a, k = ns.number(self.a), ns.number(self.k)
        s = sign * a * room.scores(self.k, self.n) * room.radius**2 / (k * ns.sqrt(ns.number(self.n)))
        length, value = column(room, self.a, self.k)
        g = pooled(room, ns.number(self.plus), ns.number(room.seq_len - 1 - self.plus), 1, s)
        return room.chain(room.radius * length * g, value)

    def member(self, room: Room, signs: Sequence[float]) -> Member:
        b, r, minus = math.sqrt(1 - self.a**2), float(room.radius), room.seq_len - 1 - self.plus
        last = room.d - 1
        inputs = [
            [
                (1, [(i, r)]),
                (self.plus, [(self.n + j, r * self.a), (last, r * b)]),
                (minus, [(self.n + j, -r * self.a), (last, -r * b)]),
            ]
            for i in range(self.n)
            for j in range(self.k)
        ]
        return Member(score_entries(room, self.k, self.n, signs), value_entries(room, self.a, self.k, self.n), inputs)


def column(room: Room, a: float, k: int) -> tuple[Number, Number]:
    """The value of a row a e_j + b e_v along the unit column (a/k, ..., a/k, b), normalised.

    And the column's factor.
    """
    ns = room.ns
    b, along = side(room, a), ns.number(a)
    length = ns.sqrt(along**2 / k + b**2)
    return length, room.column((along + b) / length)


def score_entries(room: Room, k: int, n: int, signs: Sequence[float]) -> list[tuple[int, int, float]]:
    """K columns of n entries, with the sign of cell (i, j) at i k + j."""
    entry = float(room.scores(k, n) * room.temperature) / (k * math.sqrt(n))
    return [(i, n + j, signs[i * k + j] * entry) for i in range(n) for j in range(k)]


def value_entries(room: Room, a: float, k: int, n: int) -> list[tuple[int, float]]:
    """The value column of C and D."""
    length, value = (float(each) for each in column(room, a, k))
    return [*((n + j, value * a / k / length) for j in range(k)), (room.d - 1, value * math.sqrt(1 - a**2) / length)]
