"""Construction D, any depth: several score columns, every row asks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.system import Number
from boundcalc.statements.floors.base import Construction, Member, Room, pooled, share, side, whole
from boundcalc.statements.floors.c import column, score_entries, value_entries


@dataclass(frozen=True)
class D(Construction):
    """Cell (i, j): rows p e_i +- q (a e_j + b e_v), p^2 + q^2 = a^2 + b^2 = 1, `plus` of them with +."""

    name: ClassVar[str] = "D"
    title: ClassVar[str] = "several score columns, every row asks"
    k: int
    n: int
    p: float
    a: float
    plus: int

    def problem(self, room: Room) -> str | None:
        return (
            whole("k", self.k, 1, room.d - 2)
            or whole("n", self.n, 1, room.d - 1 - self.k)
            or share("p", self.p)
            or share("a", self.a)
            or whole("plus", self.plus, 0, room.seq_len)
        )

    def cells(self, room: Room) -> int:
        return self.k * self.n

    def output(self, room: Room, sign: int) -> Number:
        ns = room.ns
        q, k = side(room, self.p), ns.number(self.k)
        reach = ns.number(self.p) * q * ns.number(self.a) * room.scores(self.k, self.n) * room.radius**2
        s = sign * reach / (k * ns.sqrt(ns.number(self.n)))
        length, value = column(room, self.a, self.k)
        g = pooled(room, ns.number(self.plus), ns.number(room.seq_len - self.plus), 0, s)
        return room.chain(room.radius * q * length * g, value)

    def member(self, room: Room, signs: Sequence[float]) -> Member:
        r, q, b = float(room.radius), math.sqrt(1 - self.p**2), math.sqrt(1 - self.a**2)
        last, minus = room.d - 1, room.seq_len - self.plus

        def row(i: int, j: int, sign: int) -> list[tuple[int, float]]:
            return [(i, r * self.p), (self.n + j, sign * r * q * self.a), (last, sign * r * q * b)]

        inputs = [[(self.plus, row(i, j, 1)), (minus, row(i, j, -1))] for i in range(self.n) for j in range(self.k)]
        return Member(score_entries(room, self.k, self.n, signs), value_entries(room, self.a, self.k, self.n), inputs)
