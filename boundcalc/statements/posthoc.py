"""P1: budgets read off trained weights, rounded up to grids fixed in advance and paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import SIZES, place_of
from boundcalc.statements.strategies import GHOSTS, STRATEGIES, risk_candidates

if TYPE_CHECKING:
    from boundcalc.proof.certificate import Certificate

_GRID_BASE = 2.0**-4
_GRID_RATIO = 2.0**0.125
"""The grid fixed in advance: 1/16, 1/16 * 2^(1/8), ...; smaller budgets are rounded up to 1/16."""

_TOP = 1e300
_MOST_CANDIDATES = 10**6

SCHATTEN_POWERS = tuple(i / 10 for i in range(1, 21))
"""The Schatten powers one may choose among after training."""


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


class _Item(NamedTuple):
    """One budget that was rounded: where it is, and how many steps up its grid (of a rank, 0, 1, 2, ...: the rank)."""

    key: str
    field: str
    steps: int


def round_up(setting: Setting, norms: Norms) -> Norms:
    """Every budget on its grid; a kind of which every matrix was measured has one budget for all: the largest.

    What is paid for depends on which norms were measured, never on their values: that is what makes P1 a union bound.
    Places depend on the keys of the record, their items on which limits each budget sets. A Schatten sum alone has
    values that decide whether there is an item: tied budgets of two powers have none in common. So the power is one of
    the `SCHATTEN_POWERS` or "they differ", one alternative more, and is paid for either way (`_differing`).
    """
    joined = {name: reduce(Budget.join, budgets) for name, budgets in _tied(setting, norms).items()}
    rounded = {key: budget.map(_on_grid, _sum_on_grid) for key, budget in joined.items()}
    knob = None if norms.C is None else _on_grid(norms.C)
    return Norms(knob, rounded)


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
    given = {place_of(key) for key in norms.budgets}
    partly: set[str] = set()
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        for each in weight.all:
            kind, block = each.kind, each.block
            wide = (kind, None, None) in given or (block is not None and (kind, block, None) in given)
            if not wide and not (each.heads and all((kind, block, head) in given for head in range(each.heads))):
                partly.add(kind)
    return frozenset(kind for kind, _, _ in given) - partly


def _on_grid(value: float) -> float:
    return grid_value(_grid_steps(value))


def _sum_on_grid(p: float, total: float) -> float:
    if p not in SCHATTEN_POWERS:
        raise InvalidSetting(f"a Schatten power chosen after training must be one of 0.1, 0.2, ..., 2; got {p}")
    return _on_grid(total)


def _items(norms: Norms) -> Iterator[_Item]:
    if norms.C is not None:
        yield _Item("", "C", _steps_of(norms.C, "C"))
    for key, budget in norms.budgets.items():
        yield from _budget_items(key, budget)


def _budget_items(key: str, budget: Budget) -> Iterator[_Item]:
    for name in SIZES:
        value = getattr(budget, name)
        if value is not None:
            yield _Item(key, name, _steps_of(value, f"{key}.{name}"))
    if budget.rank is not None:
        yield _Item(key, "rank", budget.rank)
    if budget.schatten is not None:
        p, total = budget.schatten
        if p not in SCHATTEN_POWERS:
            raise CertificateError(f"{key}: the Schatten power {p} is not among those fixed in advance")
        yield _Item(key, "schatten", _steps_of(total, f"{key}.schatten"))
    if budget.distance is not None:
        yield from _budget_items(f"{key}.distance", budget.distance)


def _steps_of(value: float, where: str) -> int:
    steps = _grid_steps(value)
    if grid_value(steps) != value:
        raise CertificateError(f"{where} = {value!r} is not on the grid that was fixed in advance")
    return steps


def norms_cost(ns: NumberSystem, norms: Norms, differing: int = 0) -> Number:
    """What budgets on their grids, and the powers chosen for them, add to log(1/delta).

    `differing` counts tied Schatten sums that have no power in common: that is one of the outcomes paid for.
    """
    items = list(_items(norms))
    steps = [item.steps for item in items]
    powers = differing + sum(item.field == "schatten" for item in items)
    return union_cost(ns, steps, [False] * len(steps)) + powers * ns.log(ns.number(len(SCHATTEN_POWERS) + 1))


def margin_steps(margin: float) -> int:
    """The k of the margin grid 2^-k, k any whole number, fixed in advance: the largest grid value up to the margin."""
    return 1 - math.frexp(margin)[1]


def margin_down(margin: float) -> float:
    """A margin rounded down to its grid; no training example errs at the smaller margin that does not at the larger."""
    return math.ldexp(1.0, -margin_steps(margin))


def pay(setting: Setting) -> tuple[Setting, Mapping[str, Any] | None]:
    """A setting whose measured numbers were rounded to their grids, and the record of what was measured."""
    norms, sample = setting.norms, setting.sample
    record: dict[str, Any] = {}
    if norms.measured:
        record |= norms.to_json()
        norms = round_up(setting, norms)
    if sample.measured:
        record["sample"] = {name: getattr(sample, name) for name in sample.measured}
        if "train_error" in sample.measured:
            record["sample"]["candidates"] = risk_candidates(setting)
        margin = margin_down(sample.margin) if "margin" in sample.measured else sample.margin
        sample = replace(sample, margin=margin, measured=())
    return (replace(setting, norms=norms, sample=sample), record) if record else (setting, None)


def posthoc_cost(ns: NumberSystem, certificate: Certificate) -> Number:
    """What a certificate must add to log(1/delta); refuses budgets below what was measured or off their grid."""
    setting, measured = certificate.setting, certificate.measured
    if setting.norms.measured:
        raise CertificateError("budgets read off trained weights without P1: that number is a proxy, not a bound")
    if setting.sample.measured:
        raise CertificateError("a margin or training error seen after training, without P1: that is no bound")
    if measured is None:
        return ns.number(0)
    if not isinstance(measured, Mapping):
        raise CertificateError(f"the record of what was measured is an object, got {measured!r:.80}")
    record = dict(measured)
    if "sample" in record:
        _check_sample(certificate, record.pop("sample"))
    if record:
        _check_norms(setting, record)
    return union(ns, setting, measured)


def union_cost(ns: NumberSystem, steps: Sequence[int], two_sided: Sequence[bool]) -> Number:
    """P1: added to log(1/delta) for budgets k_j steps up their grids: sum log((k+1)(k+2)), + log 1.5 if two-sided.

    The weights 1/((k+1)(k+2)) sum to 1 over k >= 0; over all integers, with |k|, they sum to 3/2.
    """
    total = ns.number(0)
    for k, both in zip(steps, two_sided, strict=True):
        total = total + ns.log(ns.number((abs(k) + 1) * (abs(k) + 2)))
        if both:
            total = total + ns.log(ns.number(3) / 2)
    return total


def union(ns: NumberSystem, paid: Setting, measured: Mapping[str, Any]) -> Number:
    """What numbers on their grids add to log(1/delta), given the record of which were measured."""
    cost = ns.number(0)
    if set(measured) - {"sample"}:
        record = Norms.from_json({key: value for key, value in measured.items() if key != "sample"})
        differing = sum(_differing(budgets) for budgets in _tied(paid, record).values())
        cost = cost + norms_cost(ns, paid.norms, differing)
    seen = measured.get("sample", {})
    if "margin" in seen:
        steps = margin_steps(paid.sample.margin)
        cost = cost + union_cost(ns, [steps], [True])
    if "train_error" in seen:
        cost = cost + ns.log(ns.number(seen["candidates"]))
    failure, delta = float(measured.get("failure", 0.0)), paid.sample.delta
    if failure:
        if not failure < delta:
            raise CertificateError(f"norms that fail with chance {failure:g} leave nothing of delta = {delta:g}")
        cost = cost - ns.log(1 - ns.number(failure) / ns.number(delta))
    return cost


def _check_sample(certificate: Certificate, seen: object) -> None:
    """The margin is on its grid and not above what was measured; what the training error chose was paid for."""
    sample = certificate.setting.sample
    if not isinstance(seen, Mapping) or not seen or set(seen) - {"margin", "train_error", "candidates"}:
        raise CertificateError('what was measured on the sample is "margin" or "train_error"')
    if ("train_error" in seen) != ("candidates" in seen):
        raise CertificateError("a measured training error says how many candidates it chose among, and only it does")
    for name, value in seen.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CertificateError(f"the measured {name} must be a number, got {value!r:.80}")
    if "margin" in seen:
        if margin_down(sample.margin) != sample.margin:
            raise CertificateError(f"the margin {sample.margin!r} is not on the grid that was fixed in advance")
        if not sample.margin <= seen["margin"]:
            raise CertificateError(f"the margin {sample.margin!r} is above the measured {seen['margin']!r}")
    if "train_error" in seen:
        if not sample.train_error >= seen["train_error"]:
            measured = seen["train_error"]
            raise CertificateError(f"the training error {sample.train_error!r} is below the measured {measured!r}")
        count, least = seen["candidates"], risk_candidates(certificate.setting)
        if not isinstance(count, int) or not least <= count <= _MOST_CANDIDATES:
            need = f"a whole number from {least} to {_MOST_CANDIDATES}"
            raise CertificateError(f"the candidates a training error chose among are {need}, got {count!r:.80}")
        if STRATEGIES[certificate.strategy].quantity == "risk" and certificate.alpha not in GHOSTS:
            raise CertificateError(f"alpha = {certificate.alpha} is not among the choices that were paid for")


def _check_norms(setting: Setting, record: Mapping[str, Any]) -> None:
    """The budgets are those that P1 makes of the record, or larger ones on the same grids.

    Budgets that were measured may not be left out: which of them are paid for may not depend on their values.
    """
    try:
        measured = Norms.from_json(record)
        least = round_up(setting, measured)
    except InvalidSetting as error:
        raise CertificateError(f"the record of what was measured is not valid: {error}") from None
    norms = setting.norms
    for key in {**least.budgets, **norms.budgets}:
        if key not in least.budgets or key not in norms.budgets:
            raise CertificateError(f"{key} has a budget and no measurement, or a measurement and no budget")
        _check_above(key, norms.budgets[key], least.budgets[key])
    if (norms.C is None) != (least.C is None) or (norms.C or 0.0) < (least.C or 0.0):
        raise CertificateError(f"the knob C = {norms.C} is below the measured {measured.C}")


def _check_above(key: str, given: Budget, least: Budget) -> None:
    """The same limits are set, and each is at least what was measured."""
    for name in (*SIZES, "rank"):
        _check_limit(f"{key}.{name}", getattr(given, name), getattr(least, name))
    if (given.schatten and given.schatten[0]) != (least.schatten and least.schatten[0]):
        raise CertificateError(f"{key}: the Schatten budget {given.schatten} is not of the power that was measured")
    if given.schatten is not None and least.schatten is not None:
        _check_limit(f"{key}.schatten", given.schatten[1], least.schatten[1])
    if (given.distance is None) != (least.distance is None):
        raise CertificateError(f"{key}: a distance from a reference has a budget or was measured, not both")
    if given.distance is not None and least.distance is not None:
        _check_above(f"{key}.distance", given.distance, least.distance)


def _check_limit(where: str, given: float | None, least: float | None) -> None:
    if (given is None) != (least is None):
        raise CertificateError(f"{where} has a budget and no measurement, or a measurement and no budget")
    if given is not None and least is not None and given < least:
        raise CertificateError(f"{where} = {given} is below the measured {least}")
