"""Constructions A to E: networks of style `edelman` that take a high or a low value on every cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.numbers import Number
from boundcalc.statements.floors.base import Construction, Curve, Room, share, whole


def side(room: Room, value: Number | float) -> Number:
    """sqrt(1 - value^2)."""
    return room.ns.sqrt(room.ns.maximum(room.ns.number(0), 1 - room.ns.number(value) ** 2))


def pooled(room: Room, plus: Number, minus: Number, beside: int, s: Number, weight: Number | float = 1) -> Number:
    """(T_+ e^s - weight T_- e^-s)/(T_+ e^s + T_- e^-s + beside): the mean of values 1, -weight and 0 under softmax."""
    up, down = plus * room.ns.exp(s), minus * room.ns.exp(-s)
    return (up - weight * down) / (up + down + beside)


@dataclass(frozen=True)
class A(Construction):
    """Depth 1, cell i: the row that is read is e_i, `plus` rows are e_d, others -e_d; one score column."""

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

    def output(self, room: Room, sign: int) -> Number:
        reach = room.scores(1, self.n) * room.radius**2
        return self._of_score(room, sign * reach / room.ns.sqrt(room.ns.number(self.n)))

    def sphere(self, room: Room) -> Curve | None:
        if room.budget("W_QK", 0).two_one_t is not None or room.budget("W_QK", 0).one_one is not None:
            return None
        steep = room.steepness(room.one("W_V", 0)) * room.radius
        return Curve(self.n, lambda score: self._of_score(room, score), steep, room.scores(1, self.n) * room.radius**2)

    def _of_score(self, room: Room, s: Number) -> Number:
        plus, minus = room.ns.number(self.plus), room.ns.number(room.seq_len - 1 - self.plus)
        return room.chain(room.radius * pooled(room, plus, minus, 1, s), room.one("W_V", 0))


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

    def value(self, room: Room) -> Number:
        """The factor of the value column."""
        return room.column(room.ns.number(self.tilt) + side(room, self.tilt) * room.ns.sqrt(room.ns.number(self.n)))

    def output(self, room: Room, sign: int) -> Number:
        square, root = room.ns.number(self.tilt) ** 2, room.ns.sqrt(room.ns.number(self.n))
        return room.chain(room.radius * (square + (1 - square) * sign / root), self.value(room))

    def sphere(self, room: Room) -> Curve:
        value, square = self.value(room), room.ns.number(self.tilt) ** 2
        slope = room.steepness(value) * room.radius * (1 - square)

        def output(weight: Number) -> Number:
            return room.chain(room.radius * (square + (1 - square) * weight), value)

        return Curve(self.n, output, slope, room.ns.number(1))


class _Columns(Construction):
    """k score columns of n queries; values along the mean of the k keys a e_j + b e_v, a^2 + b^2 = 1."""

    k: int
    n: int
    a: float
    plus: int

    def problem(self, room: Room) -> str | None:
        return whole("k", self.k, 1, room.d - 2) or whole("n", self.n, 1, room.d - 1 - self.k) or share("a", self.a)

    def cells(self, room: Room) -> int:
        return self.k * self.n

    def column(self, room: Room) -> tuple[Number, Number]:
        """The value of a key along the unit column (a/k, ..., a/k, b), normalised, and the column's factor."""
        a, b = room.ns.number(self.a), side(room, self.a)
        length = room.ns.sqrt(a**2 / self.k + b**2)
        return length, room.column((a + b) / length)

    def _mean(self, room: Room, sign: int, query: Number, key: Number, alone: int) -> Number:
        """The output where rows have so much of a query and of a key, but for the `alone` rows without a key."""
        ns = room.ns
        reach = query * key * ns.number(self.a) * room.scores(self.k, self.n) * room.radius**2
        s = sign * reach / (ns.number(self.k) * ns.sqrt(ns.number(self.n)))
        mean = pooled(room, ns.number(self.plus), ns.number(room.seq_len - alone - self.plus), alone, s)
        length, value = self.column(room)
        return room.chain(room.radius * key * length * mean, value)


@dataclass(frozen=True)
class C(_Columns):
    """Depth 1, cell (i, j): the row that is read is e_i, `plus` rows are a e_j + b e_v, others the negative."""

    name: ClassVar[str] = "C"
    title: ClassVar[str] = "several score columns, read at the first row"
    k: int
    n: int
    a: float
    plus: int

    def problem(self, room: Room) -> str | None:
        if room.depth != 1 or room.mean:
            return "construction C is about one block read at its first row"
        return super().problem(room) or whole("plus", self.plus, 0, room.seq_len - 1)

    def output(self, room: Room, sign: int) -> Number:
        one = room.ns.number(1)
        return self._mean(room, sign, one, one, 1)


@dataclass(frozen=True)
class D(_Columns):
    """Cell (i, j): rows p e_i +- q (a e_j + b e_v), p^2 + q^2 = 1, `plus` of them with +."""

    name: ClassVar[str] = "D"
    title: ClassVar[str] = "several score columns, every row asks"
    k: int
    n: int
    p: float
    a: float
    plus: int

    def problem(self, room: Room) -> str | None:
        return super().problem(room) or share("p", self.p) or whole("plus", self.plus, 0, room.seq_len)

    def output(self, room: Room, sign: int) -> Number:
        return self._mean(room, sign, room.ns.number(self.p), side(room, self.p), 0)


@dataclass(frozen=True)
class E(Construction):
    """Depth 2 or more, nearly d^2 cells, as every coordinate is a query and a key.

    Cell (i, j), i != j: `queries` rows e_i, `keys` rows (e_j + e_d)/sqrt(2) and as many -(e_j + eta e_d)/sqrt(2).
    """

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
