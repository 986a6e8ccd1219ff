"""P1: budgets read off trained weights, rounded up to grids fixed in advance and corrected for by a union bound.

The correction depends on which norms were measured, never on their values: that is what makes P1 a union bound. The set
of grid points that are summed over follows from the keys of the record and from which limits each budget sets. Only a
Schatten power could depend on values, as tied budgets of two powers have none in common. So the power is one of the
`SCHATTEN_POWERS` or "they differ", one alternative more, and is counted either way (`_differing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Annotated

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.schema import check_fields
from boundcalc.base.system import Number, NumberSystem
from boundcalc.base.validate import size
from boundcalc.layers.base import weights_of
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.norms import SIZES, place_of
from boundcalc.statements.strategies import risk_candidates

if TYPE_CHECKING:
    from boundcalc.proof.certificate import Certificate

_GRID_BASE = 2.0**-4
_GRID_RATIO = 2.0**0.125
"""The grid fixed in advance: 1/16, 1/16 * 2^(1/8), ...; smaller budgets are rounded up to 1/16."""

_TOP = 1e300
_MOST_CANDIDATES = 10**6

SCHATTEN_POWERS = tuple(i / 10 for i in range(1, 21))
"""The Schatten powers one may choose among after training."""


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _TOP:
        raise InvalidSetting(f"{name} must be a number of size at most {_TOP:g}, got {value!r:.80}")
    return value


_Finite = Annotated[float, _finite]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured on the sample: the margin, or a training error that chose among so many certificates."""

    margin: _Finite | None = None
    train_error: _Finite | None = None
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


def correct_for_selection(setting: Setting) -> tuple[Setting, Measured | None]:
    """A setting whose measured numbers were rounded to their grids, and the record of what was measured."""
    norms, sample = setting.norms, setting.sample
    if not (norms.measured or sample.measured):
        return setting, None
    seen = None
    if sample.measured:
        numbers = {name: getattr(sample, name) for name in sample.measured}
        count = risk_candidates(setting) if "train_error" in numbers else None
        seen = Seen(**numbers, candidates=count)
        margin = margin_down(sample.margin) if seen.margin is not None else sample.margin
        sample = replace(sample, margin=margin, measured=())
    record = Measured(norms if norms.measured else None, seen)
    rounded = round_up(setting, norms) if norms.measured else norms
    return replace(setting, norms=rounded, sample=sample), record


# -- grids


def grid_value(steps: int) -> float:
    """The grid is these floats, exactly."""
    return _GRID_BASE * _GRID_RATIO**steps


def _grid_steps(value: float) -> int:
    """The least k with value <= grid_value(k)."""
    if value > _TOP:
        raise InvalidSetting(f"a norm of {value:g} is beyond the grid of budgets, which ends at {_TOP:g}")
    steps = max(0, math.ceil(math.log(value / _GRID_BASE) / math.log(_GRID_RATIO)) - 1) if value > 0 else 0
    while grid_value(steps) < value:
        steps += 1
    return steps


def _on_grid(value: float) -> float:
    return grid_value(_grid_steps(value))


def _sum_on_grid(p: float, total: float) -> float:
    if p not in SCHATTEN_POWERS:
        raise InvalidSetting(f"a Schatten power chosen after training must be one of 0.1, 0.2, ..., 2; got {p}")
    return _on_grid(total)


def margin_steps(margin: float) -> int:
    """The k of the margin grid 2^-k, k any whole number, fixed in advance: the largest grid value up to the margin."""
    return 1 - math.frexp(margin)[1]


def margin_down(margin: float) -> float:
    """A margin rounded down to its grid; no training example errs at the smaller margin that does not at the larger."""
    return math.ldexp(1.0, -margin_steps(margin))


def round_up(setting: Setting, norms: Norms) -> Norms:
    """Every budget on its grid; a kind of which every matrix was measured has one budget for all: the largest."""
    joined = {name: reduce(Budget.join, budgets) for name, budgets in _tied(setting, norms).items()}
    rounded = {key: budget.map(_on_grid, _sum_on_grid) for key, budget in joined.items()}
    return Norms(None if norms.C is None else _on_grid(norms.C), rounded)


def _tied(setting: Setting, norms: Norms) -> dict[str, list[Budget]]:
    """What is measured, by the place that will have one budget for all of it."""
    tied = _wholly_measured(setting, norms)
    together: dict[str, list[Budget]] = {}
    for key, budget in norms.budgets.items():
        kind = place_of(key)[0]
        together.setdefault(kind if kind in tied else key, []).append(budget)
    return together


def _differing(budgets: Sequence[Budget]) -> int:
    """Schatten sums that all of some tied budgets have, of powers that differ (their distances counted too)."""
    powers = [None if budget.schatten is None else budget.schatten[0] for budget in budgets]
    distances = [budget.distance for budget in budgets if budget.distance is not None]
    inner = _differing(distances) if len(distances) == len(budgets) else 0
    return inner + (None not in powers and len(set(powers)) > 1)


def _wholly_measured(setting: Setting, norms: Norms) -> frozenset[str]:
    """The kinds with a budget of their own for every block and head: where one is missing, none may stand for it."""
    places = {place_of(key) for key in norms.budgets}
    partly: set[str] = set()
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        for part in weight.all:
            kind, block = part.kind, part.block
            wide = (kind, None, None) in places or (block is not None and (kind, block, None) in places)
            if not wide and not (part.heads and all((kind, block, head) in places for head in range(part.heads))):
                partly.add(kind)
    return frozenset(kind for kind, _, _ in places) - partly


def _limits(norms: Norms) -> dict[tuple[str, str, float | None], float]:
    """Every limit that norms set, by place, field and Schatten power; the knob at "the knob"."""
    knob = {} if norms.C is None else {("the knob", "C", None): norms.C}
    return knob | dict(entry for key, budget in norms.budgets.items() for entry in _limits_of(key, budget))


def _limits_of(key: str, budget: Budget) -> Iterator[tuple[tuple[str, str, float | None], float]]:
    for name in (*SIZES, "rank"):
        if getattr(budget, name) is not None:
            yield (key, name, None), getattr(budget, name)
    if budget.schatten is not None:
        yield (key, "schatten", budget.schatten[0]), budget.schatten[1]
    if budget.distance is not None:
        yield from _limits_of(f"{key}.distance", budget.distance)


# -- the union bound


def union_cost(ns: NumberSystem, steps: Sequence[int], two_sided: Sequence[bool]) -> Number:
    """P1: added to log(1/delta) for budgets k_j steps up their grids: sum log((k+1)(k+2)), + log 1.5 if two-sided.

    The weights 1/((k+1)(k+2)) sum to 1 over k >= 0; over all integers, with |k|, they sum to 3/2.
    """
    total = sum(two_sided) * ns.log(ns.number(3) / 2)
    for k in steps:
        total = total + ns.log(ns.number((abs(k) + 1) * (abs(k) + 2)))
    return total


def norms_cost(ns: NumberSystem, norms: Norms, differing: int = 0) -> Number:
    """What budgets on their grids, and the powers chosen for them, add to log(1/delta).

    `differing` counts tied Schatten sums that have no power in common: that is one of the outcomes counted.
    """
    steps: list[int] = []
    for (key, name, power), value in _limits(norms).items():
        step = int(value) if name == "rank" else _grid_steps(value)
        if name != "rank" and grid_value(step) != value:
            raise CertificateError(f"{key}.{name} = {value!r} is not on the grid that was fixed in advance")
        if power not in (None, *SCHATTEN_POWERS):
            raise CertificateError(f"{key}: the Schatten power {power} is not among those fixed in advance")
        differing += power is not None
        steps.append(step)
    return union_cost(ns, steps, [False] * len(steps)) + differing * ns.log(ns.number(len(SCHATTEN_POWERS) + 1))


def union(ns: NumberSystem, paid: Setting, measured: Measured) -> Number:
    """What numbers on their grids add to log(1/delta), given the record of which were measured."""
    cost, norms, seen = ns.number(0), measured.norms, measured.sample
    if norms is not None:
        differing = sum(_differing(budgets) for budgets in _tied(paid, norms).values())
        cost = cost + norms_cost(ns, paid.norms, differing)
        delta = paid.sample.delta
        if norms.failure:
            if not norms.failure < delta:
                raise CertificateError(
                    f"norms that fail with chance {norms.failure:g} leave nothing of delta = {delta:g}"
                )
            cost = cost - ns.log(1 - ns.number(norms.failure) / ns.number(delta))
    if seen is not None and seen.margin is not None:
        cost = cost + union_cost(ns, [margin_steps(paid.sample.margin)], [True])
    if seen is not None and seen.candidates is not None:
        cost = cost + ns.log(ns.number(seen.candidates))
    return cost


# -- its check


def posthoc_cost(ns: NumberSystem, certificate: Certificate) -> Number:
    """What a certificate must add to log(1/delta); refuses budgets below what was measured or off their grid."""
    setting, measured = certificate.setting, certificate.measured
    if setting.norms.measured:
        raise CertificateError("budgets read off trained weights without P1: that number is a proxy, not a bound")
    if setting.sample.measured:
        raise CertificateError("a margin or training error read off after training, without P1: that is no bound")
    if measured is None:
        return ns.number(0)
    if not isinstance(measured, Measured) or not isinstance(measured.sample, Seen | None):
        raise CertificateError(f"the record of what was measured is a Measured, got {measured!r:.80}")
    if measured.sample is not None:
        _check_sample(certificate, measured.sample)
    if measured.norms is not None:
        _check_norms(setting, measured.norms)
    return union(ns, setting, measured)


def _check_sample(certificate: Certificate, seen: Seen) -> None:
    """The margin is on its grid and not above what was measured; what the training error chose was corrected for."""
    sample = certificate.setting.sample
    if seen.margin is not None:
        if margin_down(sample.margin) != sample.margin:
            raise CertificateError(f"the margin {sample.margin!r} is not on the grid that was fixed in advance")
        if not sample.margin <= seen.margin:
            raise CertificateError(f"the margin {sample.margin!r} is above the measured {seen.margin!r}")
    if seen.train_error is not None and seen.candidates is not None:
        if not sample.train_error >= seen.train_error:
            raise CertificateError(
                f"the training error {sample.train_error!r} is below the measured {seen.train_error!r}"
            )
        least = risk_candidates(certificate.setting)
        if seen.candidates < least:
            raise CertificateError(f"a training error chose among {least} candidates at least, got {seen.candidates}")


def _check_norms(setting: Setting, measured: Norms) -> None:
    """The budgets are those that P1 makes of the record, or larger ones on the same grids.

    Budgets that were measured may not be left out: which of them are corrected for may not depend on their values.
    """
    try:
        least = _limits(round_up(setting, measured))
    except InvalidSetting as error:
        raise CertificateError(f"the record of what was measured is not valid: {error}") from None
    limits = _limits(setting.norms)
    for place in {**least, **limits}:
        key, name, power = place
        where = f"{key}.{name}" + ("" if power is None else f" of power {power}")
        if place not in limits or place not in least:
            raise CertificateError(f"{where} has a budget and no measurement, or was measured and has no budget")
        if limits[place] < least[place]:
            raise CertificateError(f"{where} = {limits[place]} is below the measured {least[place]}")
