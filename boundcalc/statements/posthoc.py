"""P1: budgets read off trained weights, rounded up to grids fixed in advance and corrected for by a union bound.

The correction depends on which norms were measured, never on their values: that is what makes P1 a union bound. The set
of grid points that are summed over follows from the keys of the record and from which limits each budget sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import Annotated

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.schema import check_fields
from boundcalc.base.validate import size
from boundcalc.layers.base import weights_of
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.norms import SIZES, place_of
from boundcalc.statements.strategies import risk_candidates

_GRID_BASE = 2.0**-4
_GRID_RATIO = 2.0**0.125
"""The grid fixed in advance: 1/16, 1/16 * 2^(1/8), ...; smaller budgets are rounded up to 1/16."""

_TOP = 1e300
_MOST_CANDIDATES = 10**6


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _TOP:
        raise InvalidSetting(f"{name} must be a number of size at most {_TOP:g}, got {value!r:.80}")
    return value


Finite = Annotated[float, _finite]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured on the sample: the margin, or a training error that chose among so many certificates."""

    margin: Finite | None = None
    train_error: Finite | None = None
    candidates: Annotated[int, partial(size, most=_MOST_CANDIDATES)] | None = None

    def __post_init__(self) -> None:
        check_fields(self, "the measured ")
        if (self.train_error is None) != (self.candidates is None):
            raise InvalidSetting("'candidates' belongs to a measured training error, and to it alone")
        if self.margin is None and self.train_error is None:
            raise InvalidSetting('what was measured on the sample is "margin" or "train_error"')

    def left_out(self) -> list[str]:
        """What was not measured."""
        return [f.name for f in fields(self) if getattr(self, f.name) is None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was read off before it was chosen: norms of trained weights, numbers of the sample."""

    norms: Norms | None = None
    sample: Seen | None = None

    def __post_init__(self) -> None:
        if self.norms is not None and not (isinstance(self.norms, Norms) and self.norms.measured):
            raise InvalidSetting("looked_at.norms are measured norms: measured must be true")
        if self.norms is self.sample is None:
            raise InvalidSetting("what was looked at are norms or numbers of the sample")


def correct_for_selection(setting: Setting) -> tuple[Setting, Measured | None]:
    """A setting whose measured numbers were rounded to their grids, and the record of what was measured."""
    norms, sample, seen = setting.norms, setting.sample, None
    if not (norms.measured or sample.measured):
        return setting, None
    if sample.measured:
        numbers = {name: getattr(sample, name) for name in sample.measured}
        seen = Seen(**numbers, candidates=risk_candidates(setting) if "train_error" in numbers else None)
        margin = sample.margin if seen.margin is None else margin_down(sample.margin)
        sample = replace(sample, margin=margin, measured=())
    record = Measured(norms if norms.measured else None, seen)
    return replace(setting, norms=_round_up(setting, norms) if norms.measured else norms, sample=sample), record


# -- grids


def _grid_value(steps: int) -> float:
    """The value of a grid point, to which a measured norm is rounded up; the grid is these floats, exactly."""
    return _GRID_BASE * _GRID_RATIO**steps


def _grid_steps(value: float) -> int:
    """The least k with value <= _grid_value(k)."""
    if value > _TOP:
        raise InvalidSetting(f"a norm of {value:g} is beyond the grid of budgets, which ends at {_TOP:g}")
    steps = max(0, math.ceil(math.log(value / _GRID_BASE) / math.log(_GRID_RATIO)) - 1) if value > 0 else 0
    while _grid_value(steps) < value:
        steps += 1
    return steps


def _on_grid(value: float) -> float:
    return _grid_value(_grid_steps(value))


def _margin_steps(margin: float) -> int:
    """The k of the margin grid 2^-k, k any whole number, fixed in advance: the largest grid value up to the margin."""
    return 1 - math.frexp(margin)[1]


def margin_down(margin: float) -> float:
    """A margin rounded down to its grid; no training example errs at the smaller margin that does not at the larger."""
    return math.ldexp(1.0, -_margin_steps(margin))


def _round_up(setting: Setting, norms: Norms) -> Norms:
    """Every budget on its grid; a kind of which every matrix was measured has one budget for all: the largest.

    That is a kind with a budget of its own for every block and head: where one is missing, none may stand for it.
    """
    places, partly = {place_of(key) for key in norms.budgets}, set[str]()
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        for part in weight.all:
            wide = {(part.kind, None, None), (part.kind, part.block, None)} & places
            if not wide and not (part.heads and all((part.kind, part.block, i) in places for i in range(part.heads))):
                partly.add(part.kind)
    together: dict[str, list[Budget]] = {}
    for key, budget in norms.budgets.items():
        kind = place_of(key)[0]
        together.setdefault(key if kind in partly else kind, []).append(budget)
    budgets = {key: reduce(Budget.join, equals).map(_on_grid) for key, equals in together.items()}
    return Norms(None if norms.C is None else _on_grid(norms.C), budgets)


def _limits(norms: Norms) -> dict[tuple[str, str], float]:
    """Every limit that norms set, by place and field; the knob at "the knob"."""
    knob = {} if norms.C is None else {("the knob", "C"): norms.C}
    return knob | dict(entry for key, budget in norms.budgets.items() for entry in _limits_of(key, budget))


def _limits_of(key: str, budget: Budget) -> Iterator[tuple[tuple[str, str], float]]:
    for name in (*SIZES, "rank"):
        if getattr(budget, name) is not None:
            yield (key, name), getattr(budget, name)
    if budget.distance is not None:
        yield from _limits_of(f"{key}.distance", budget.distance)


# -- the union bound


def _steps_cost(ns: NumberSystem, k: int, *, two_sided: bool = False) -> Number:
    """P1: added to log(1/delta) for a budget k steps up its grid: log((k+1)(k+2)), + log 1.5 if two-sided.

    The weights 1/((k+1)(k+2)) sum to 1 over k >= 0; over all integers, with |k|, they sum to 3/2.
    """
    cost = ns.log(ns.number((abs(k) + 1) * (abs(k) + 2)))
    return cost + ns.log(ns.number(3) / 2) if two_sided else cost


def posthoc_cost(ns: NumberSystem, setting: Setting, measured: Measured | None) -> Number:
    """What a certificate must add to log(1/delta); refuses budgets below what was measured or off their grid."""
    if setting.norms.measured:
        raise CertificateError("budgets read off trained weights without P1: that number is a proxy, not a bound")
    if setting.sample.measured:
        raise CertificateError("a margin or training error read off after training, without P1: that is no bound")
    cost = ns.number(0)
    if measured is None:
        return cost
    if not isinstance(measured, Measured):
        raise CertificateError(f"the record of what was measured is a Measured, got {measured!r:.80}")
    if measured.norms is not None:
        cost = cost + _norms_cost(ns, setting, measured.norms)
    if measured.sample is not None:
        cost = cost + _sample_cost(ns, setting, measured.sample)
    return cost


def _sample_cost(ns: NumberSystem, setting: Setting, seen: Seen) -> Number:
    """The margin is on its grid and not above what was measured; what the training error chose was corrected for."""
    sample, cost = setting.sample, ns.number(0)
    if seen.margin is not None:
        if margin_down(sample.margin) != sample.margin:
            raise CertificateError(f"the margin {sample.margin!r} is not on the grid that was fixed in advance")
        if not sample.margin <= seen.margin:
            raise CertificateError(f"the margin {sample.margin!r} is above the measured {seen.margin!r}")
        cost = cost + _steps_cost(ns, _margin_steps(sample.margin), two_sided=True)
    if seen.train_error is not None and seen.candidates is not None:
        least = risk_candidates(setting)
        if not sample.train_error >= seen.train_error:
            raise CertificateError(f"the training error {sample.train_error!r} is below the measured one")
        if seen.candidates < least:
            raise CertificateError(f"a training error chose among {least} candidates at least, got {seen.candidates}")
        cost = cost + ns.log(ns.number(seen.candidates))
    return cost


def _norms_cost(ns: NumberSystem, setting: Setting, measured: Norms) -> Number:
    """The budgets are those that P1 makes of the record, or larger ones on the same grids.

    Budgets that were measured may not be left out: which of them are corrected for may not depend on their values.
    """
    try:
        least, limits = _limits(_round_up(setting, measured)), _limits(setting.norms)
    except InvalidSetting as error:
        raise CertificateError(f"the record of what was measured is not valid: {error}") from None
    if not measured.failure < setting.sample.delta:
        raise CertificateError(f"norms that fail with chance {measured.failure:g} leave nothing of delta")
    cost = -ns.log(1 - ns.number(measured.failure) / ns.number(setting.sample.delta))
    for place in least.keys() | limits.keys():
        where = ".".join(place)
        if place not in limits or place not in least:
            raise CertificateError(f"{where} has a budget and no measurement, or was measured and has no budget")
        if limits[place] < least[place]:
            raise CertificateError(f"{where} = {limits[place]} is below the measured {least[place]}")
    for (key, name), value in limits.items():
        step = int(value) if name == "rank" else _grid_steps(value)
        if name != "rank" and _grid_value(step) != value:
            raise CertificateError(f"{key}.{name} = {value!r} is not on the grid that was fixed in advance")
        cost = cost + _steps_cost(ns, step)
    return cost
