"""Construction E, depth 2 or more: nearly d^2 cells, as every coordinate is a query and a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.system import Number
from boundcalc.statements.floors.base import ROOT_HALF, Construction, Member, Room, pooled, share, whole


@dataclass(frozen=True)
class E(Construction):
    """Cell (i, j), i != j: `queries` rows e_i, `keys` rows (e_j + e_d)/sqrt(2) and as many -(e_j + eta e_d)/sqrt(2)."""

    name: ClassVar[str] = "E"
    title: ClassVar[str] = "every coordinate is a query and a key"
    k: int
    queries: int
    keys: int
    eta: float

    def problem(self, room: Room) -> str | None:
        if room.depth < 2:
            return "construction E is about two blocks or more"
        wrong = (
            whole("k", self.k, 1, room.d - 1)
            or whole("queries", self.queries, 1, room.seq_len)
            or whole("keys", self.keys, 1, room.seq_len)
            or share("eta", self.eta)
        )
        if wrong is None and self.queries + 2 * self.keys != room.seq_len:
            return f"queries and twice the keys are all {room.seq_len} rows"
        return wrong

    def cells(self, room: Room) -> int:
        return self.k * (room.d - 2)

    def output(self, room: Room, sign: int) -> Number:
        return self._with_keys(room, sign, sign)

    def furthest(self, room: Room, sign: int) -> Number:
        return self._with_keys(room, sign, -sign)

    def _with_keys(self, room: Room, sign: int, worst: int) -> Number:
        """The output where key rows are the worst for a sign."""
        ns = room.ns
        n, half, r = room.d - 2, ns.sqrt(ns.number(1) / 2), room.radius
        s = half * room.scores(self.k, n, n + 1) * r**2 / (self.k * ns.sqrt(ns.number(n)))
        eta, keys, value = ns.number(self.eta), ns.number(self.keys), room.one("W_V", 0)
        of_queries = r * half * pooled(room, keys, keys, self.queries, sign * s, eta)
        ends = [r * half * keys * (1 - eta) / (2 * keys + self.queries * ns.exp(way * s)) for way in (1, -1)]
        of_keys = room.worst(ends, worst)
        both = self.queries * room.layer(0, of_queries, value) + 2 * self.keys * room.layer(0, of_keys, value)
        return room.rest(room.layer(1, both / room.seq_len), 2)

    def member(self, room: Room, signs: Sequence[float]) -> Member:
        n, last, r = room.d - 2, room.d - 1, float(room.radius)
        entry = float(room.scores(self.k, n, n + 1) * room.temperature) / (self.k * math.sqrt(n))
        places = [(i, j) for j in range(self.k) for i in range(room.d - 1) if i != j]
        scores = [(i, j, sign * entry) for (i, j), sign in zip(places, signs, strict=True)]
        inputs = [
            [
                (self.queries, [(i, r)]),
                (self.keys, [(j, r * ROOT_HALF), (last, r * ROOT_HALF)]),
                (self.keys, [(j, -r * ROOT_HALF), (last, -r * ROOT_HALF * self.eta)]),
            ]
            for i, j in places
        ]
        return Member(scores, [(last, float(room.one("W_V", 0)))], inputs)
