"""The networks of a floor, as weights: what the constructions of docs/theory.md say, with inputs for every cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from boundcalc.base.numbers import FLOAT
from boundcalc.proof.floor import Floor
from boundcalc.statements.floors import A, B, C, D, E, N
from boundcalc.statements.floors._residual import gain, stored
from boundcalc.statements.floors.base import Construction, Room
from boundcalc.testing._drawing import Array, Parameters
from tests.soundness.network import Network

Rows = Sequence[tuple[int, Sequence[tuple[int, float]]]]
"""Input rows as (how many, [(coordinate, value)]); the first coordinate is negated in the cell's partner (F2, F3)."""
HALF = math.sqrt(0.5)


def members_of(floor: Floor, signs: Sequence[float]) -> tuple[Parameters, list[Array]]:
    """The network of a choice of signs (by F2 of a vector of length sqrt(n)), and its rows or tokens for each cell.

    By F2 and F3 all cells + stand before all cells -.
    """
    a, room = floor.setting.architecture, Room(FLOAT, floor.setting)
    build = _residual if isinstance(floor.construction, N) else _edelman
    weights, cells = build(room, floor.construction, signs)
    inputs: list[Array] = []
    for rows in cells:
        x = np.zeros((a.seq_len, a.vocabulary or a.d_patch or a.d))
        start = 0
        for count, entries in rows:
            for coordinate, value in entries:
                x[start : start + count, coordinate] = value
            start += count
        inputs.append(x.argmax(axis=1) if a.vocabulary else x)
    if floor.by in ("F2", "F3", "F3-errors"):
        turned = [rows[0][1][0][0] for rows in cells]
        inputs += [x * np.where(np.arange(x.shape[1]) == i, -1, 1) for i, x in zip(turned, inputs, strict=True)]
    return weights, inputs


def _edelman(room: Room, construction: Construction, signs: Sequence[float]) -> tuple[Parameters, list[Rows]]:
    """A to E: W_1, later W_V and the read-out have the one entry (1, 1), later W_QK are 0."""
    last, r, T = room.d - 1, float(room.radius), room.seq_len
    weights = Network.of(room.setting).zeros()
    for (kind, block, head), array in weights.items():
        if kind in ("W_1", "readout") or (kind == "W_V" and block and not head):
            array[0, 0] = room.one(kind, block)
    scores, values = weights["W_QK", 0, 0], weights["W_V", 0, 0][:, 0]
    match construction:
        case A(n, plus):
            scores[:n, last] = np.array(signs) * float(room.scores(1, n) * room.temperature) / math.sqrt(n)
            values[last] = room.one("W_V", 0)
            beside = (plus, [(last, r)]), (T - 1 - plus, [(last, -r)])
            return weights, [[(1, [(i, r)]), *beside] for i in range(n)]
        case B(n, tilt):
            across, value = math.sqrt(1 - tilt**2), float(construction.value(room))
            values[:n], values[last] = np.array(signs) * value * across / math.sqrt(n), value * tilt
            return weights, [[(T, [(i, r * across), (last, r * tilt)])] for i in range(n)]
        case C(k, n, share, plus) | D(k, n, _, share, plus):
            b = math.sqrt(1 - share**2)
            length, value = (float(each) for each in construction.column(room))
            values[n : n + k], values[last] = value * share / k / length, value * b / length
            entry = float(room.scores(k, n) * room.temperature) / (k * math.sqrt(n))
            scores[:n, n : n + k] = entry * np.reshape(signs, (n, k))
            p = construction.p if isinstance(construction, D) else 0.0
            q = math.sqrt(1 - p**2)

            def key(i: int, j: int, sign: int) -> list[tuple[int, float]]:
                return [(i, r * p), (n + j, sign * r * q * share), (last, sign * r * q * b)]

            cells: list[Rows] = []
            for i in range(n):
                for j in range(k):
                    alone = [(1, [(i, r)])] if isinstance(construction, C) else []
                    cells.append([*alone, (plus, key(i, j, 1)), (T - len(alone) - plus, key(i, j, -1))])
            return weights, cells
        case E(k, queries, keys, eta):
            entry = float(room.scores(k, room.d - 2, last) * room.temperature) / (k * math.sqrt(room.d - 2))
            places = [(i, j) for j in range(k) for i in range(last) if i != j]
            for (i, j), sign in zip(places, signs, strict=True):
                scores[i, j] = sign * entry
            values[last] = room.one("W_V", 0)
            up, down = r * HALF, -r * HALF
            return weights, [
                [(queries, [(i, r)]), (keys, [(j, up), (last, up)]), (keys, [(j, down), (last, down * eta)])]
                for i, j in places
            ]
    raise AssertionError(construction)


def _residual(room: Room, construction: Construction, signs: Sequence[float]) -> tuple[Parameters, list[Rows]]:
    """N: gains as large as they may be, four maps with the entry (1, 1), the signs in the table; all else is 0."""
    assert isinstance(construction, N)
    a, n = room.setting.architecture, construction.n
    weights = Network.of(room.setting).zeros()
    for (kind, block, head), array in weights.items():
        if kind.endswith(".gain"):
            array[...] = gain(room, kind, block)
        elif kind in ("W_V", "W_O", "W_pool", "readout") and not head:
            array[0, 0] = stored(room, room.one(kind, block))
    table = weights["embedding" if a.vocabulary else "W_patch", None, None]
    table[:n, 0] = np.array(signs) * float(construction.entry(room))
    size = 1.0 if a.vocabulary else float(room.radius)
    return weights, [[(a.seq_len, [(i, size)])] for i in range(n)]
