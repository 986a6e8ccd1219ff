"""Construction A, depth 1: the row that is read tells positive from negative rows by its own coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.system import Number
from boundcalc.statements.floors.base import Construction, Member, Room, pooled, whole


@dataclass(frozen=True)
class A(Construction):
    """Cell i: the read row is e_i, `plus` rows are e_d, others -e_d; W_QK = c w e_d^T, W_V = c e_d e_1^T."""

    name: ClassVar[str] = "A"
    title: ClassVar[str] = "one score column, read at the first row"
    n: int
    plus: int

    def problem(self, room: Room) -> str | None:
        if room.depth != 1 or room.mean:
            return "construction A is about one block read at its first row"
        return whole("n", self.n, 2, room.d - 1) or whole("plus", self.plus, 0, room.seq_len - 1)

    def cells(self, room: Room) -> int:
        return self.n

    def _of_score(self, room: Room, s: Number) -> Number:
        g = pooled(room, room.ns.number(self.plus), room.ns.number(room.seq_len - 1 - self.plus), 1, s)
        return room.chain(room.radius * g, room.one("W_V", 0))

    def output(self, room: Room, sign: int) -> Number:
        reach = room.scores(1, self.n) * room.radius**2
        return self._of_score(room, sign * reach / room.ns.sqrt(room.ns.number(self.n)))

    def sphere(self, room: Room) -> tuple[int, Callable[[Number], Number], Number, Number] | None:
        if room.budget("W_QK", 0).two_one_t is not None or room.budget("W_QK", 0).one_one is not None:
            return None
        reach = room.scores(1, self.n) * room.radius**2
        steep = room.steepness(room.one("W_V", 0)) * room.radius
        return self.n, lambda w: self._of_score(room, w), steep, reach

    def member(self, room: Room, signs: Sequence[float]) -> Member:
        last, entry = room.d - 1, float(room.scores(1, self.n) * room.temperature) / math.sqrt(self.n)
        r, minus = float(room.radius), room.seq_len - 1 - self.plus
        scores = [(i, last, sign * entry) for i, sign in enumerate(signs)]
        inputs = [[(1, [(i, r)]), (self.plus, [(last, r)]), (minus, [(last, -r)])] for i in range(self.n)]
        return Member(scores, [(last, float(room.one("W_V", 0)))], inputs)
