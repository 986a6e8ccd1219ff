"""The networks that floors count, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.base import weights_of
from boundcalc.proof.floor import Floor
from boundcalc.setting.norms import place_named
from boundcalc.statements.floors import N
from boundcalc.statements.floors.base import Room


def members_of(floor: Floor, signs: Sequence[float]) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The network of a choice of signs, and the inputs of all cells.

    Args:
        floor: which construction.
        signs: +1 or -1 for every cell (by F3 every pair); by F2 a vector of length sqrt(n).

    Returns:
        Weights by place ("W_QK[0]" has an axis of heads), and for each cell its T rows or tokens; by F2 and F3 all
        cells + before all -.
    """
    a, construction = floor.setting.architecture, floor.construction
    room = Room(FLOAT, floor.setting)
    member = construction.member(room, signs)
    weights = _arrays_of_tokens(room, construction) if isinstance(construction, N) else _arrays_of_rows(room)
    for query, key, value in member.scores:
        weights["W_QK[0]"][0, query, key] = value
    table = next((name for name in ("embedding", "W_patch") if name in weights), None)
    for coordinate, value in member.values:
        weights[table or "W_V[0]"][(coordinate, 0) if table else (0, coordinate, 0)] = value
    inputs: list[np.ndarray] = []
    for rows in member.inputs:
        x = np.zeros((a.seq_len, a.vocabulary or a.d_patch or a.d))
        start = 0
        for count, entries in rows:
            for coordinate, value in entries:
                x[start : start + count, coordinate] = value
            start += count
        inputs.append(x.argmax(axis=1) if a.vocabulary else x)
    if floor.by in ("F2", "F3", "F3-errors"):
        turned = [rows[0][1][0][0] for rows in member.inputs]
        inputs += [x * np.where(np.arange(x.shape[1]) == i, -1, 1) for i, x in zip(turned, inputs, strict=True)]
    return weights, inputs


def _arrays_of_rows(room: Room) -> dict[str, np.ndarray]:
    """What A to E have in common."""
    a = room.setting.architecture
    weights: dict[str, np.ndarray] = {"readout": np.zeros((a.d, 1))}
    for block in range(a.depth):
        for kind in ("W_QK", "W_V"):
            weights[f"{kind}[{block}]"] = np.zeros((a.heads, a.d, a.d))
        weights[f"W_1[{block}]"] = np.zeros((a.d, a.d))
        weights[f"W_1[{block}]"][0, 0] = room.one("W_1", block)
        weights[f"W_V[{block}]"][0, 0, 0] = room.one("W_V", block) if block else 0.0
    weights["readout"][0, 0] = room.one("readout")
    return weights


def _arrays_of_tokens(room: Room, construction: N) -> dict[str, np.ndarray]:
    """What all members of N have in common."""
    a = room.setting.architecture
    weights: dict[str, np.ndarray] = {}
    for weight in weights_of(a.stages, a.seq_len):
        for part in weight.all:
            shape = (part.copies, *part.shape) if part.heads else part.shape
            weights[place_named(part.kind, part.block)] = array = np.zeros(shape)
            entry = construction.weight(room, part.kind, part.block)
            array[... if part.role == "gain" else (0,) * array.ndim] = entry
    return weights
