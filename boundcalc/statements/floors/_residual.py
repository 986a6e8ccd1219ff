"""Construction N, residual styles of any depth: every token, or every direction of a patch, has a label of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.numbers import Number
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import Layer
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.layernorm import LayerNorm
from boundcalc.layers.linear import Linear
from boundcalc.layers.rows import Activation, Ball, Residual
from boundcalc.statements.floors.base import Construction, Pattern, Room, whole

_POWERS = range(15, -15, -1)
"""Stored weights of 16 bits or more are 0 or plus or minus a power of two with such an exponent."""


@dataclass(frozen=True)
class N(Construction):
    """Input i: token i (a patch along axis i) in every row.

    Its sign is the first entry of row i of the table (of W_patch).
    """

    name: ClassVar[str] = "N"
    title: ClassVar[str] = "every token or direction has a label of its own"
    residual: ClassVar[bool] = True
    n: int

    def problem(self, room: Room) -> str | None:
        a = room.setting.architecture
        return whole("n", self.n, 2, a.vocabulary or a.d_patch)

    def cells(self, room: Room) -> int:
        return self.n

    def mirrored(self, room: Room) -> bool:
        """Patches may be negated, tokens not."""
        return not room.setting.architecture.vocabulary

    def output(self, room: Room, sign: int) -> Number:
        """All that acts on the row is odd, so that the outputs of both signs are opposite."""
        return sign * self._behind(room, room.setting.architecture.stages, (room.ns.number(0),) * 2)[0]

    def _behind(self, room: Room, layers: Sequence[Layer], row: tuple[Number, Number]) -> tuple[Number, Number]:
        """The first entry of every row behind some layers, and each other entry; maps have the entry (1, 1) alone."""
        zero = room.ns.number(0)
        for layer in layers:
            match layer:
                case Embedding(vocabulary=tokens) if tokens:
                    row = self.entry(room), zero
                case Linear(kind="W_patch"):
                    row = room.radius * self.entry(room), zero
                case Linear():
                    row = row[0] * stored(room, room.one(layer.kind, layer.block)), zero
                case Attention():
                    row = row[0] * stored(room, room.one("W_V", layer.block)), zero
                case LayerNorm():
                    row = _normalised(room, layer, row)
                case Ball():
                    length = room.ns.maximum(room.ns.number(layer.radius), _length(room, row))
                    row = row[0] * layer.radius / length, row[1] * layer.radius / length
                case Activation(name="tanh"):
                    up = -2 * row[0]
                    row = -room.ns.expm1(up) / (1 + room.ns.exp(up)), zero
                case Residual(branch=branch) if any(isinstance(part, Attention) for part in branch):
                    row = row[0] + self._behind(room, branch, row)[0], row[1]
                case _:
                    pass  # every row is alike, and other branches are 0
        return row

    def entry(self, room: Room) -> Number:
        """The first entry of each of the n rows of the first map."""
        ns, budget = room.ns, room.setting.norms.find(self._first(room))
        root = ns.sqrt(ns.number(self.n))
        entry = Pattern(root, root, root, ns.number(self.n), ns.number(self.n), 1).scale(ns, budget)
        return stored(room, entry if budget.row is None else ns.minimum(entry, ns.number(budget.row)))

    def _first(self, room: Room) -> str:
        return "embedding" if room.setting.architecture.vocabulary else "W_patch"


def stored(room: Room, factor: Number) -> Number:
    """A weight that can be stored, at most a factor: the power of two below it, where weights are of so many bits."""
    if room.setting.architecture.bits is None:
        return factor
    below = (power for e in _POWERS if bool((power := room.ns.number(2.0**e)) <= factor))
    return next(below, room.ns.number(0))


def gain(room: Room, kind: str, block: int | None) -> Number:
    """The entries of a gain."""
    return stored(room, room.ns.number(room.setting.norms.find(kind, block).sup or 0.0))


def _length(room: Room, row: tuple[Number, Number]) -> Number:
    return room.ns.sqrt(row[0] * row[0] + (room.d - 1) * row[1] * row[1])


def _normalised(room: Room, layer: LayerNorm, row: tuple[Number, Number]) -> tuple[Number, Number]:
    ns, d = room.ns, room.ns.number(layer.d)
    if layer.centred:
        apart = row[0] - row[1]
        row = apart * (d - 1) / d, -apart / d
    length = _length(room, row)
    factor = gain(room, f"{layer.kind}.gain", layer.block) / ns.sqrt(length * length / d + ns.number(layer.eps))
    return row[0] * factor, row[1] * factor
