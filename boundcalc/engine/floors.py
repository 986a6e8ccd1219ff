"""The search for the best floor of a setting. Not trusted: a checker re-derives the number from the construction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from operator import sub
from typing import Any, NamedTuple, TypeVar

from boundcalc.base.numbers import FLOAT
from boundcalc.proof.floor import Floor, check_floor
from boundcalc.setting import Setting
from boundcalc.statements.floors import A, B, C, D, E, N
from boundcalc.statements.floors.base import Construction, Room, refusal
from boundcalc.statements.floors.counting import LEAST_PAIRS, drop, errs, gap_floor

WAYS = {"gap": ("F1", "F2", "F3"), "errors": ("F1-errors", "F3-errors"), "risk": ("R1",)}
"""Statements that give a floor of each quantity: of the gap of ramp losses, of errors less ramp losses, and of the
risk."""
_MOST_DIRECTIONS = 1024
_FEW_CELLS = 40
_TILTS = tuple(k / 20 for k in range(3, 16))
_SHARES = (0.55, 0.7, 0.85)
_AROUND = (0.8, 0.88, 0.94, 1.0, 1.06, 1.14, 1.25)
"""Parts of 1 - eta that are tried around the middle of the ramp."""
_HALVINGS = 16
_NEAR = 0.8
"""Constructions that begin further below the best are left."""
_STEEP = 1.2
"""Scores above which constructions with several columns are tried, and weights on a sphere are not."""


_Of = TypeVar("_Of", bound=str)


class Candidate(NamedTuple):
    """A floor that the search found, in floats: a construction and the statement that counts it."""

    value: float
    construction: Construction
    by: str


def best_floor(setting: Setting, of: str = "gap", room: Room | None = None) -> Candidate | None:
    """The largest floor that the search finds; None where no construction is about the setting.

    Args:
        setting: what is bounded.
        of: "gap" (ramp losses on the law less on the sample), "errors" (errors on the law less ramp losses on the
            sample) or "risk" (errors on the law, at margin training error 0).
        room: of the setting, where another floor of it was searched for.
    """
    if refusal(setting) is not None:
        return None
    room = room or Room(FLOAT, setting)
    candidates: list[Candidate] = []
    for by in WAYS[of]:
        if by == "F2":
            starts = _spheres(room)
        elif by.startswith("F3"):  # of what the others found
            starts = [candidate.construction for candidate in candidates]
        else:
            starts = _starts(room)
        candidates += _best_of(room, by, starts)
        if of == "gap" and by == "F1" and not setting.architecture.residual and _steep(room):
            candidates += (candidate._replace(by=by) for candidate in _best_of(room, "F1-errors", _starts(room)))
    return max(candidates, key=lambda candidate: candidate.value, default=None)


def floor_of(setting: Setting, of: str = "gap") -> Floor | None:
    """The largest floor that the search finds, as the checker derives it; None where there is none above 0."""
    return floors_of(setting, (of,)).get(of)


def floors_of(setting: Setting, quantities: Iterable[_Of]) -> dict[_Of, Floor]:
    """The floors of several quantities, where there are any."""
    room, floors = Room(FLOAT, setting), dict[_Of, Floor]()
    for of in quantities:
        candidate = best_floor(setting, of, room)
        if candidate is not None and candidate.value > 0:
            floor = check_floor(setting, candidate.construction, candidate.by)
            floors |= {of: floor} if floor.value > 0 else {}
    return floors


def too_few_samples(setting: Setting, target: float, most: int) -> Floor | None:
    """A floor above a target at the largest m that the search finds, up to `most`; None where there is none."""
    low, high = 0, most
    while high - low > max(1, low // 100):
        middle = round((max(low, 1) * high) ** 0.5) if low else min(most, 8)
        if middle <= low or middle >= high:
            break
        candidate = best_floor(setting.but(n_train=middle))
        low, high = (middle, high) if candidate is not None and candidate.value > target else (low, middle)
    if not low:
        return None
    floor = floor_of(setting.but(n_train=low))
    return floor if floor is not None and floor.value > target else None


def _best_of(room: Room, by: str, starts: Iterable[Construction]) -> Iterator[Candidate]:
    """The best of every construction, counted one way."""
    best: dict[type[Construction], Candidate] = {}
    for start in starts:
        candidate = _judged(room, start, by, centred=not by.startswith("F3"))
        if candidate is not None and (type(start) not in best or candidate.value > best[type(start)].value):
            best[type(start)] = candidate
    most = max((candidate.value for candidate in best.values()), default=0.0)
    for candidate in best.values():
        if candidate.value < _NEAR * most:
            continue
        refined = _refined(room, candidate)
        if by == "F2":
            refined = refined._replace(value=gap_floor(room, refined.construction, by) or 0.0)
        yield refined


def _steep(room: Room) -> bool:
    return room.scores(1, 2) * room.radius**2 > _STEEP


def _starts(room: Room) -> Iterator[Construction]:
    """A coarse grid of every construction; what `_centred` sets is left at its middle."""
    a = room.setting.architecture
    if a.residual:
        most = a.vocabulary or a.d_patch
        yield from (N(max(2, most >> k)) for k in range(most.bit_length() - 1))
        return
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
        return
    yield from (D(k, n, p, a, half) for (k, n), p, a in product(columns, _SHARES, _SHARES))
    for part, share in product((1, 2, 5, 12), (0.1, 0.14, 0.2, 0.3)):
        keys = max(1, round(share * room.seq_len))
        yield E(max(1, (room.d - 1) // part), room.seq_len - 2 * keys, keys, 0.995)


def _spheres(room: Room) -> Iterator[Construction]:
    """Where F2 begins: even numbers of pairs."""
    if room.setting.architecture.residual or _steep(room):
        return
    most = min(room.d - 1, _MOST_DIRECTIONS) // 2 * 2
    if most >= LEAST_PAIRS:
        yield B(min(most, 128), 0.4)
        yield A(min(most, 128), room.seq_len // 2)


def _judged(room: Room, start: Construction, by: str, *, centred: bool = True) -> Candidate | None:
    """A construction, perhaps with its offset set, and its floor; None also where floats do not reach that far."""
    if start.unfit(room) is not None:
        return None
    try:
        if centred:
            start = _centred(room, start, errors=by in ("F1-errors", "F3-errors", "R1"))
        if by == "R1":
            value = start.cells(room) / room.setting.sample.n_train if errs(room, start, strictly=True) else None
        else:
            value = gap_floor(room, start, by, _FEW_CELLS)
    except OverflowError:
        return None
    return None if value is None or not math.isfinite(value) else Candidate(value, start, by)


@lru_cache(maxsize=1 << 12)
def _centred(room: Room, start: Construction, *, errors: bool) -> Construction:
    """The offset at which both values lie around the middle of the ramp, or (errors) the lower one is 0."""

    def too_high(construction: Construction) -> bool:
        low = construction.output(room, -1)
        return low > 0 if errors else low + construction.output(room, 1) > room.gamma

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
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if too_high(replace(start, eta=middle)) else (least, middle)
        around = [replace(start, eta=1 - (1 - most) * part) for part in _AROUND]
        return max(around, key=lambda construction: sub(*drop(room, construction)))
    return start


def _refined(room: Room, best: Candidate) -> Candidate:
    """Coordinate search around a candidate, by steps that halve."""
    step, of_spheres = 0.2, best.by == "F2"
    while step > (0.03 if of_spheres else 0.006):
        moved = False
        for neighbour in _neighbours(best.construction, step, of_spheres):
            other = _judged(room, neighbour, best.by, centred=not of_spheres)
            if other is not None and other.value > best.value:
                best, moved = other, True
        if not moved:
            step /= 2
    return best


def _neighbours(construction: Construction, step: float, of_spheres: bool) -> Iterator[Construction]:
    fields: dict[str, Any] = vars(construction)
    kept = {"eta", "queries"} if of_spheres else {"plus", "eta", "queries"}
    for name, way in product(fields.keys() - kept, (-1, 1)):
        value = fields[name]
        if isinstance(value, float):
            yield replace(construction, **{name: value + way * step / 2})  # type: ignore[type-var]
            continue
        if of_spheres:
            by = step * value if name == "n" else step * value / 8
            moved = value + 2 * way * max(1, round(by / 2))
        else:
            moved = value + way * max(1, round(step * value))
        if isinstance(construction, E) and name == "keys":
            yield replace(construction, keys=moved, queries=construction.queries + 2 * (value - moved))
        elif isinstance(construction, C | D) and name == "k":
            yield replace(construction, k=moved, n=construction.n + value - moved)
        else:
            yield replace(construction, **{name: moved})  # type: ignore[type-var]
