"""The search for the best floor of a setting. Not trusted: a checker re-derives the number from the construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.numbers import FLOAT
from boundcalc.proof.floor import Floor, check_floor
from boundcalc.setting import Setting
from boundcalc.statements.floors import A, B, C, D, E
from boundcalc.statements.floors.base import Construction, Room, refusal
from boundcalc.statements.floors.counting import drop, gap_floor

if TYPE_CHECKING:
    import numpy as np

_MOST_DIRECTIONS = 1024
_FEW_CELLS = 40
_TILTS = tuple(k / 20 for k in range(3, 16))
_SHARES = (0.55, 0.65, 0.75, 0.85)


_AROUND = (0.8, 0.88, 0.94, 1.0, 1.06, 1.14, 1.25)
"""Parts of 1 - eta that are tried around the middle of the ramp."""
_STEEP = 1.2
"""Scores above which constructions with several columns are tried, and weights on a sphere are not."""


class Candidate(NamedTuple):
    """A floor that the search found, in floats: a construction and the statement that counts it."""

    value: float
    construction: Construction
    by: str


def best_floor(setting: Setting, *, errors: bool = False) -> Candidate | None:
    """The largest floor of the gap that the search finds; None where no construction is about the setting.

    Args:
        setting: what is bounded.
        errors: whether the gap is of errors on the law less ramp losses on the sample, instead of ramp losses on both.
    """
    if refusal(setting) is not None:
        return None
    room = Room(FLOAT, setting)
    by = "F1-errors" if errors else "F1"
    found = [each for start in _starts(room) if (each := _judged(room, start, by)) is not None]
    if not found:
        return None
    best = _refined(room, max(found, key=lambda each: each.value))
    spheres = (
        [] if errors or _steep(room) else [each for each in (_sphere(room, A), _sphere(room, B)) if each is not None]
    )
    return max((best, *spheres), key=lambda each: each.value)


def too_few_samples(setting: Setting, target: float, most: int) -> Floor | None:
    """A floor above a target at the largest m that the search finds, up to `most`; None where there is none."""
    low, high = 0, most
    while high - low > max(1, low // 100):
        middle = round((max(low, 1) * high) ** 0.5) if low else min(most, 8)
        if middle <= low or middle >= high:
            break
        found = best_floor(setting.but(n_train=middle))
        low, high = (middle, high) if found is not None and found.value > target else (low, middle)
    if not low:
        return None
    floor = floor_of(setting.but(n_train=low))
    return floor if floor is not None and floor.value > target else None


def _steep(room: Room) -> bool:
    return room.scores(1, 2) * room.radius**2 > _STEEP


def floor_of(setting: Setting, *, errors: bool = False) -> Floor | None:
    """The largest floor of the gap that was found, as the checker derives it; None where there is none above 0."""
    found = best_floor(setting, errors=errors)
    if found is None or found.value <= 0:
        return None
    floor = check_floor(setting, found.construction, found.by)
    return floor if floor.value > 0 else None


def _starts(room: Room) -> Iterator[Construction]:
    """A coarse grid of every construction; what `_centred` sets is left at its middle."""
    most = min(room.d - 1, _MOST_DIRECTIONS)
    sizes = sorted({n for n in (2, 3, 5, 8, 13, 21, 34, 63, 128, 256, 512, most) if 2 <= n <= most})
    half = room.seq_len // 2
    for n, tilt in product(sizes, _TILTS):
        yield B(n, tilt)
    if not _steep(room):
        yield from (A(n, half) for n in sizes)
        return
    columns = [(k, min(room.d - 1 - k, _MOST_DIRECTIONS)) for k in (1, 2, 4, 7, 12) if room.d - 1 - k >= 1]
    if room.depth == 1 and not room.mean:
        yield from (C(k, n, a, half) for (k, n), a in product(columns, _SHARES))
    yield from (D(k, n, p, a, half) for (k, n), p, a in product(columns, _SHARES, _SHARES))
    for part, share in product((1, 2, 5, 12), (0.1, 0.14, 0.2, 0.3)):
        keys = max(1, round(share * room.seq_len))
        yield E(max(1, (room.d - 1) // part), room.seq_len - 2 * keys, keys, 0.995)


def _judged(room: Room, start: Construction, by: str) -> Candidate | None:
    """A construction with its offset set, and its floor."""
    if start.problem(room) is not None:
        return None
    centred = _centred(room, start, errors=by == "F1-errors")
    value = gap_floor(room, centred, by)
    return None if value is None else Candidate(value, centred, by)


def _centred(room: Room, start: Construction, *, errors: bool) -> Construction:
    """The offset at which both values lie around the middle of the ramp, or (errors) the lower one is 0."""

    def too_high(each: Construction) -> bool:
        low = each.output(room, -1)
        return low > 0 if errors else low + each.output(room, 1) > room.gamma

    if isinstance(start, A | C | D):
        low, high = 0, room.seq_len - (0 if isinstance(start, D) else 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if too_high(replace(start, plus=middle)) else (middle, high)
        return replace(start, plus=low)
    if isinstance(start, E):
        if errors:
            return replace(start, eta=1.0)
        least, most = 0.0, 1.0
        for _ in range(30):
            middle = (least + most) / 2
            least, most = (middle, most) if too_high(replace(start, eta=middle)) else (least, middle)
        around = [replace(start, eta=1 - (1 - most) * part) for part in _AROUND]
        return max(around, key=lambda each: _drop(room, each))
    return start


def _drop(room: Room, each: Construction) -> float:
    high, low, _ = drop(room, each)
    return high - low


def _refined(room: Room, best: Candidate) -> Candidate:
    """Coordinate search around a candidate, by steps that halve."""
    step = 0.2
    while step > 0.006:
        moved = False
        for each in _neighbours(best.construction, step):
            other = _judged(room, each, best.by)
            if other is not None and other.value > best.value:
                best, moved = other, True
        if not moved:
            step /= 2
    return best


def _neighbours(construction: Construction, step: float) -> Iterator[Construction]:
    fields: dict[str, Any] = vars(construction)
    for name, way in product(fields.keys() - {"plus", "eta", "queries"}, (-1, 1)):
        value = fields[name]
        if isinstance(value, float):
            yield replace(construction, **{name: value + way * step / 2})  # type: ignore[type-var]
            continue
        moved = value + way * max(1, round(step * value))
        if isinstance(construction, E) and name == "keys":
            yield replace(construction, keys=moved, queries=construction.queries + 2 * (value - moved))
        elif isinstance(construction, C | D) and name == "k":
            yield replace(construction, k=moved, n=construction.n + value - moved)
        else:
            yield replace(construction, **{name: moved})  # type: ignore[type-var]


def _sphere(room: Room, kind: type[A] | type[B]) -> Candidate | None:
    """F2, the offset chosen by lower sums of few cells."""
    n = min(room.d - 1, _MOST_DIRECTIONS)
    if n < 4 or (kind is A and (room.depth > 1 or room.mean)):
        return None
    grid: list[Construction] = [B(n, 0.29 + k / 50) for k in range(12)]
    if kind is A:
        start = _centred(room, A(n, room.seq_len // 2), errors=False)
        steps = {round(room.seq_len * k / 40) for k in range(-4, 9)}
        grid = [A(n, plus) for each in steps if 0 <= (plus := vars(start)["plus"] + each) < room.seq_len]
    rough = [(value, each) for each in grid if (value := gap_floor(room, each, "F2", _FEW_CELLS)) is not None]
    if not rough:
        return None
    best = max(rough, key=lambda each: each[0])[1]
    value = gap_floor(room, best, "F2")
    return None if value is None else Candidate(value, best, "F2")


def members_of(floor: Floor, signs: Sequence[int]) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The network of a choice of signs, and the inputs of all cells.

    Args:
        floor: a floor by F1.
        signs: +1 or -1 for every cell.

    Returns:
        Weights by place ("W_QK[0]" has an axis of heads), and for each cell its T rows.
    """
    import numpy as np

    a = floor.setting.architecture
    room = Room(FLOAT, floor.setting)
    member = floor.construction.member(room, signs)
    weights: dict[str, np.ndarray] = {"readout": np.zeros((a.d, 1))}
    for block in range(a.depth):
        for kind in ("W_QK", "W_V"):
            weights[f"{kind}[{block}]"] = np.zeros((a.heads, a.d, a.d))
        weights[f"W_1[{block}]"] = np.zeros((a.d, a.d))
        weights[f"W_1[{block}]"][0, 0] = room.one("W_1", block)
        weights[f"W_V[{block}]"][0, 0, 0] = room.one("W_V", block) if block else 0.0
    weights["readout"][0, 0] = room.one("readout")
    for query, key, value in member.scores:
        weights["W_QK[0]"][0, query, key] = value
    for coordinate, value in member.values:
        weights["W_V[0]"][0, coordinate, 0] = value
    inputs: list[np.ndarray] = []
    for rows in member.inputs:
        x = np.zeros((a.seq_len, a.d))
        start = 0
        for count, entries in rows:
            for coordinate, value in entries:
                x[start : start + count, coordinate] = value
            start += count
        inputs.append(x)
    return weights, inputs
