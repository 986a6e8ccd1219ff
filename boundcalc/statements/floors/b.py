"""Construction B, any depth: without attention, the value column has a sign for every direction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.system import Number
from boundcalc.statements.floors.base import Construction, Member, Room, share, side, whole


@dataclass(frozen=True)
class B(Construction):
    """Cell i: every row is `tilt` e_d + sqrt(1 - tilt^2) e_i; the value column is the same with s/sqrt(N) for e_i."""

    name: ClassVar[str] = "B"
    title: ClassVar[str] = "one value column, no attention"
    n: int
    tilt: float

    def problem(self, room: Room) -> str | None:
        return whole("n", self.n, 2, room.d - 1) or share("tilt", self.tilt)

    def cells(self, room: Room) -> int:
        return self.n

    def _value(self, room: Room) -> Number:
        across = side(room, self.tilt)
        return room.column(room.ns.number(self.tilt) + across * room.ns.sqrt(room.ns.number(self.n)))

    def _outputs(self, room: Room) -> Callable[[Number], Number]:
        value, tilt, across = self._value(room), room.ns.number(self.tilt) ** 2, side(room, self.tilt) ** 2
        return lambda w: room.chain(room.radius * (tilt + across * w), value)

    def output(self, room: Room, sign: int) -> Number:
        return self._outputs(room)(sign / room.ns.sqrt(room.ns.number(self.n)))

    def sphere(self, room: Room) -> tuple[int, Callable[[Number], Number], Number, Number] | None:
        steep = room.steepness(self._value(room)) * room.radius * side(room, self.tilt) ** 2
        return self.n, self._outputs(room), steep, room.ns.number(1)

    def member(self, room: Room, signs: Sequence[float]) -> Member:
        across, value = math.sqrt(1 - self.tilt**2), float(self._value(room))
        last, r = room.d - 1, float(room.radius)
        column = [(i, sign * value * across / math.sqrt(self.n)) for i, sign in enumerate(signs)]
        inputs = [[(room.seq_len, [(i, r * across), (last, r * self.tilt)])] for i in range(self.n)]
        return Member([], [*column, (last, value * self.tilt)], inputs)
