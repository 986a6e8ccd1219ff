"""P1 in 50 digits: the cost of numbers that were read off the data, and that they are those which are corrected for."""

import math
from collections.abc import Mapping, Sequence

from ._certificate import Certificate
from ._numbers import MP, Real, demand, num
from ._setting import Budget, Norms, Setting, kind_and_block, placed, trained

_WAYS = 3
"""Bounds of the risk that a training error may choose among: of the gap, G3, G11."""


def price(certificate: Certificate) -> Real:
    """What P1 adds to log(1/delta)."""
    setting, looked, sample = certificate.setting, certificate.looked, certificate.setting.sample
    demand(not setting.norms.measured and not sample.measured, "measured numbers without P1 are no bound")
    total = num(0)
    if looked.norms is not None:
        failure, delta = num(looked.norms.failure), num(sample.delta)
        demand(failure < delta, "norms fail with more chance than delta")
        total += _norms_price(setting, looked.norms) - MP.log(1 - failure / delta)
    seen = looked.sample
    if "margin" in seen:
        fraction, k = math.frexp(sample.margin)
        demand(fraction == 0.5 and sample.margin <= seen["margin"], "the margin is not rounded down to 2^-k")
        k = abs(1 - k)
        total += MP.log((k + 1) * (k + 2)) + MP.log(num(3) / 2)
    if "train_error" in seen:
        demand(sample.train_error >= seen["train_error"], "the training error is below the measured one")
        ways = _WAYS + (setting.bits is not None)  # G13 is one more
        demand(seen["candidates"] >= ways, f"the candidates a training error chose among are at least {ways}")
        total += MP.log(seen["candidates"])
    return total


def _norms_price(setting: Setting, measured: Norms) -> Real:
    """The price of the numbers of a setting, which are at least those measured, and as many."""
    norms, tied = setting.norms, _tied(setting, measured)
    demand(norms.budgets.keys() == tied.keys(), "a budget was not measured, or a measured one has no budget")
    total = _budget_price("the knob", Budget(op=norms.C), [Budget(op=measured.C)])
    return sum((_budget_price(key, budget, tied[key]) for key, budget in norms.budgets.items()), start=total)


def _tied(setting: Setting, measured: Norms) -> Mapping[str, Sequence[Budget]]:
    """What is measured, by place; a kind of which every matrix was measured has one place for all."""
    budgets, partly = measured.budgets, set[str]()
    for weight in trained(setting.stages):
        heads = [placed(weight.kind, weight.block, head) in budgets for head in range(weight.heads)]
        wide = weight.kind in budgets or placed(weight.kind, weight.block) in budgets
        partly |= set() if wide or (heads and all(heads)) else {weight.kind}
    tied: dict[str, list[Budget]] = {}
    for key, budget in budgets.items():
        kind = kind_and_block(key)[0]
        tied.setdefault(key if kind in partly else kind, []).append(budget)
    return tied


def _budget_price(where: str, budget: Budget, measured: Sequence[Budget]) -> Real:
    """The price of one budget: every limit that all have which it stands for, at least as large as any."""
    common = frozenset.intersection(*(other.limits for other in measured))
    demand(budget.limits == common, f"the limits of {where} are not those measured")
    total = num(0)
    for name in budget.limits - {"distance"}:
        mine, *theirs = (getattr(other, name) for other in (budget, *measured))
        demand(mine >= max(theirs), f"{where}.{name} is below what was measured")
        total += MP.log((mine + 1) * (mine + 2)) if name == "rank" else _steps_price(mine)
    if budget.distance is not None:
        total += _budget_price(f"{where}.distance", budget.distance, [other.distance for other in measured])
    return total


def _steps_price(size: float) -> Real:
    """log((k+1)(k+2)) for a number k steps up the grid 1/16, 1/16 * 2^(1/8), ..., which is of these floats exactly."""
    k = round(8 * math.log2(16 * size)) if 0 < size < 1e300 else -1
    demand(k >= 0 and size == 2.0**-4 * (2.0**0.125) ** k, f"{size!r} is not on the grid fixed in advance")
    return MP.log((k + 1) * (k + 2))
