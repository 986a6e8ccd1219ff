"""Checked points for the page: bounds and floors at a grid of settings, and what each proves at other settings.

One proof holds for more than the setting that it was checked at. The covers of a chain serve every sample and every
margin: at m' samples and a margin gamma' >= gamma its value is first r + (links r + last) gamma/gamma' + deviation r
with r = sqrt(m/m'), where `first` is the link from the loss' own range. A bound by Gaussian comparison is
links r gamma/gamma' + deviation r or less at every m' >= m. The members behind a floor by F1 count at every m'; a floor
by F2 falls no faster than 1/sqrt(m). The page evaluates these formulas, and takes the best point that is worse in all
other letters.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from boundcalc.base.errors import BoundcalcError, Refusal
from boundcalc.base.intervals import INTERVAL, lower_float, upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator, evaluate
from boundcalc.engine.floors import best_floor
from boundcalc.lab.explore._content import FIELDS, SETTING, at, letters
from boundcalc.proof.floor import Floor, check_floor
from boundcalc.setting import Setting
from boundcalc.statements.floors import B, Construction
from boundcalc.statements.floors.base import Room
from boundcalc.statements.floors.counting import drop, gap_floor

Point = dict[str, Any]
Values = Mapping[str, float]
_Counted = tuple[Construction, str]
"""A construction, and the statement that counts its members."""

_SHALLOW, _DEEP, _DEEPEST = (1, 2, 3, 4), (6, 8, 12), (16, 24)
_ALL = (*_SHALLOW, *_DEEP, *_DEEPEST)
COMPARED: tuple[Mapping[str, Sequence[float]], ...] = (
    {"depth": (1,), "C": (0.1, 0.2, 0.5, 0.75, 1)},
    {"depth": (2, 3), "C": (0.2, 0.5, 0.75, 1)},
    {"depth": (4, *_DEEP, *_DEEPEST), "C": (0.5, 0.75)},
    {"depth": _ALL, "C": (0.2, 0.5), "heads": (2,)},
    {"depth": _ALL, "C": (0.2,), "heads": (4,)},
    {"depth": _ALL, "C": (0.1,), "heads": (8,)},
)
"""Where Gaussian comparison is checked, at 100 sequences: other C gain less than 5%, or covers are better (if heads C
> 1)."""
COVERED: tuple[Mapping[str, Any], ...] = (
    {"depth": _SHALLOW, "C": (1, 2, 5), "size": ((64, 1), (64, 4), (64, 16), (256, 1), (1024, 1), (1024, 16))}
    | {"gamma": (0.02, 0.1, 0.5, 2)},
    {"depth": _ALL, "C": (0.1, 0.2, 0.5), "size": ((1024, 16),), "gamma": (0.05,)},
    {"depth": _SHALLOW, "C": (1, 2, 5), "size": ((4096, 16),), "gamma": (0.1,)},
    {"depth": _SHALLOW, "C": (20,), "size": ((64, 1), (1024, 16)), "gamma": (0.02,)},
    {"depth": _DEEP, "C": (1, 2, 5), "size": ((64, 1), (64, 16), (1024, 1), (1024, 16)), "gamma": (0.05,)},
    {"depth": _DEEP, "C": (1,), "size": ((64, 1), (1024, 1)), "gamma": (0.5,)},
    {"depth": _DEEPEST, "C": (1, 2, 5), "size": ((64, 1), (1024, 16)), "gamma": (0.05,)},
)
"""Where covers are checked, at the longest sequences; `size` is d and heads. In deep networks gamma matters little."""
FLOORED: Mapping[str, Sequence[float]] = {
    "depth": _ALL,
    "C": (0.1, 0.2, 0.5, 1, 2, 5),
    "gamma": (0.12, 0.5, 2),
    "T": (16, 512),
}
"""Where floors are checked, at width 64."""
SEARCHED: tuple[Mapping[str, Sequence[float]], ...] = (
    {"depth": (1,), "C": (1,), "gamma": (0.12, 0.5, 2), "T": (16, 512), "m": (1e4,)},
    {"depth": (1, 2), "C": (2,), "gamma": (0.12, 0.5, 2), "T": (16, 512), "m": (1e4,)},
    {"depth": (1, 2), "C": (5,), "gamma": (0.12,), "T": (16, 512), "m": (1e4,)},
    {"depth": (3, 4), "C": (2,), "gamma": (0.12, 0.5), "T": (16, 512), "m": (1e4,)},
    {"depth": (1,), "C": (0.5,), "gamma": (0.12, 0.5), "T": (16,), "m": (1e4,)},
    {"depth": (1,), "C": (0.5, 1), "gamma": (0.12, 0.5), "T": (16,), "m": (1e8,)},
)
"""Where constructions are looked for; of all that are found the best is taken everywhere."""
_NO_RISK = Refusal("the page", "a risk bound", "the gap alone")
_LONGEST = 2.0**16
_MANY = 1e11
_GOAL = 0.75
"""Covers are searched for very many samples, and for so many that the gap is about this."""
_NEAR, _MIDDLE, _FAR = 1e4, 1e6, (1e5, 1e6, 1e8)
"""Samples at which floors are counted: by F1 at the first number, by F3 at the first two, by F2 at the others."""
_FEW_CELLS, _LEAST = 40, 1e-8
"""Steps of sums where constructions are compared, and floors that are of no use."""


def checked(setting: Setting) -> Point:
    """The best bound and floor at one setting."""
    point: Point = {"at": letters(setting)}
    try:
        bound = evaluate(setting)
    except BoundcalcError:
        return point
    return point | of_bound(bound) | of_floor(bound.floor)


def of_bound(bound: BoundValue) -> Point:
    """The bound of a point, unless it is trivial: value, strategy, terms and how weight matrices share links."""
    if bound.trivial:
        return {}
    parts = bound.breakdown
    sizes = {term.formula: upper_float(term.value) for term in parts.terms}
    deviation = sum(size for formula, size in sizes.items() if "delta" in formula)
    point: Point = {"gap": 10**bound.log10, "strategy": bound.strategy, "pieces": dict(bound.of("gap").shares)}
    if bound.strategy == "chain":
        first = upper_float(parts.levels[0].link) if parts.levels[0].link is not None else 0.0
        return point | {"terms": [first, sizes["sum of links"] - first, sizes["2 e_J"], deviation]}
    if bound.strategy.startswith("comparison"):
        return point | {"terms": [0.0, sum(sizes.values()) - deviation, 0.0, deviation]}
    return point


def of_floor(floor: Floor | None) -> Point:
    """What a point says of its floor: its value, and what the page needs to count it at another m.

    By F1 the drop of the loss and the number of cells; by F2 or F3, which fall no faster than 1/sqrt(m), the value
    alone.
    """
    if floor is None:
        return {}
    if floor.by != "F1":
        return {"floor": floor.value, "members": [floor.value] if floor.by in ("F2", "F3") else []}
    high, low = drop(Room(INTERVAL, floor.setting), floor.construction)
    cells = floor.construction.cells(Room(INTERVAL, floor.setting))
    return {"floor": floor.value, "members": [lower_float(high - low), cells]}


def grid(progress: Callable[[int, int], None] = lambda done, total: None) -> list[Point]:
    """Checked points for a page without an engine: of a grid, and of the setting that the page starts with."""
    proofs = [partial(_compared, values) for axes in COMPARED for values in _products(axes)]
    proofs += [partial(_covered, values) for axes in COVERED for values in _products(axes)]
    searched, floored = [values for axes in SEARCHED for values in _products(axes)], list(_products(FLOORED))
    counter, total = itertools.count(1), len(proofs) + len(searched) + len(floored)
    points, constructions = [checked(SETTING)], {T: set[_Counted]() for T in FLOORED["T"]}
    with ProcessPoolExecutor() as workers:

        def results(jobs: Iterable[Callable[[], Any]]) -> Iterator[Any]:
            for result in workers.map(operator.call, jobs, chunksize=8):
                progress(next(counter), total)
                yield result

        for some in results(proofs):
            points += some
        for values, best in zip(searched, results(partial(_searched, values) for values in searched), strict=True):
            constructions[values["T"]] |= best
        for some in results(partial(_floored, values, constructions[values["T"]]) for values in floored):
            points += some
    return points


def _products(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _compared(values: Values) -> list[Point]:
    """The bound by Gaussian comparison, whatever d and T; none where it does not apply."""
    there = at({**values, "m": 100, "gamma": 0.12, "T": _LONGEST, "d": FIELDS["d"].most})
    try:
        return [{"at": letters(there)} | of_bound(_gap(Evaluator(there, lambda _: _NO_RISK), "comparison", there))]
    except BoundcalcError:
        return []


def _gap(evaluator: Evaluator, policy: str, setting: Setting) -> BoundValue:
    """The checked gap bound of one policy, without the others and the risk."""
    search = evaluator.search(policy).with_samples(setting.sample.n_train)
    return evaluator.value(policy, search, risks=False)


def _covered(values: Mapping[str, Any]) -> list[Point]:
    """Bounds by covers for two numbers of samples, from one search."""
    d, heads = values["size"]
    places = {name: value for name, value in values.items() if name != "size"}
    there = at(places | {"d": d, "heads": heads, "T": _LONGEST, "m": _MANY})
    evaluator = Evaluator(there, lambda _: _NO_RISK)
    try:
        many = _gap(evaluator, "T-free", there)
        if many.trivial:
            return []
        fewer = there.but(n_train=round(min(_MANY, _MANY * (10**many.log10 / _GOAL) ** 2)))
        bounds = [(there, many), (fewer, _gap(evaluator, "T-free", fewer))]
    except BoundcalcError:
        return []
    return [{"at": letters(place)} | of_bound(bound) for place, bound in bounds]


def _searched(values: Values) -> set[_Counted]:
    """The construction of the best floor somewhere, and which statement counts it on the page."""
    floor = best_floor(at({**values, "d": 64}))
    return set() if floor is None or floor.value <= 0 else {(floor.construction, floor.by.replace("F3", "F1"))}


def _floored(values: Values, candidates: Iterable[_Counted]) -> list[Point]:
    """The best floor by F1; at the shortest T those of inputs without attention too, which are floors for every T."""
    points = _best_floor(values, [one for one, by in candidates if by == "F1"], "F1", _NEAR)
    if values["T"] == FLOORED["T"][0]:
        everywhere: list[Point] = []
        far = _FAR if values["C"] <= 1 and values["gamma"] <= 1 else ()
        for by, way, sizes in (("F1", "F1", (_NEAR,)), ("F3", "F1", (_NEAR, _MIDDLE)), ("F2", "F2", far)):
            plain = [one for one, counted in candidates if counted == way and isinstance(one, B)]
            everywhere += [point for m in sizes for point in _best_floor(values, plain, by, m)]
        points += [point | {"at": point["at"] | {"T": 1.0}} for point in everywhere]
    return points


def _best_floor(values: Values, tried: Sequence[Construction], by: str, m: float) -> list[Point]:
    """The floor of the best of some constructions, if there is one."""
    there = at({**values, "d": 64, "m": m})
    room = Room(FLOAT, there)
    fit = [option for option in tried if option.problem(room) is None]
    worth = [(gap_floor(room, option, by, _FEW_CELLS) or 0.0, repr(option), option) for option in fit]
    value, _, construction = max(worth, default=(0.0, "", None))
    if construction is None or value < _LEAST:
        return []
    return [{"at": letters(there)} | of_floor(check_floor(there, construction, by))]


def packed(points: Iterable[Point]) -> dict[str, Any]:
    """Points as columns, numbers rounded to the safe side: most of a page is these."""
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    for point in points:
        if "gap" not in point and "floor" not in point:
            continue
        largest = sorted(point.get("pieces", {}).items(), key=lambda piece: -piece[1])[:12]
        rows.append(
            [
                *(point["at"][letter] for letter in FIELDS),
                _rounded(point.get("gap"), up=True),
                _rounded(point.get("floor"), up=False),
                names.setdefault(point["strategy"], len(names)) if "strategy" in point else None,
                [_rounded(term, up=True) for term in point.get("terms", ())],
                [[names.setdefault(name, len(names)), round(share, 3)] for name, share in largest],
                [_rounded(value, up=False) for value in point.get("members", ())],
            ]
        )
    return {"rows": rows, "names": list(names)}


def _rounded(value: float | None, *, up: bool) -> float | None:
    """Eleven digits, up or down: what is shown differs from what was checked by less than 1e-9 of it."""
    if not value:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 10)
    return float(f"{(math.ceil if up else math.floor)(value / unit) * unit:.11g}")
