"""`solve`: how many samples are needed, how long a sequence or how large a norm is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from boundcalc.engine.evaluate import BoundValue, evaluate
from boundcalc.errors import InvalidSetting, NoSolution
from boundcalc.setting import Setting
from boundcalc.setting.validate import choice

Variable = Literal["m", "T", "C", "depth", "gamma", "delta"]
Quantity = Literal["gap", "risk"]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A variable one can solve for: its name in `Setting.but`, where to look, and whether more of it helps."""

    field: str
    low: float
    high: float
    whole: bool
    more_helps: bool


AXES: dict[str, _Axis] = {
    "m": _Axis("n_train", 1, 1e18, True, True),
    "T": _Axis("seq_len", 1, 1e18, True, False),
    "C": _Axis("C", 1e-9, 1e9, False, False),
    "depth": _Axis("depth", 1, 4096, True, False),
    "gamma": _Axis("margin", 1e-12, 1e12, False, True),
    "delta": _Axis("delta", 1e-300, 1 - 1e-12, False, True),
}
"""What can be solved for: the least m, gamma or delta, the greatest T, C or depth."""

_TOLERANCE = {True: 0.0, False: 1e-4}
_SIGNIFICANT = 4


@dataclass(frozen=True, slots=True)
class Solution:
    """The extreme value of a variable at which a bound still meets its target, with that bound.

    `at_end`: every value in the range searched meets the target.
    """

    variable: str
    target: float
    quantity: Quantity
    value: float
    bound: BoundValue
    at_end: bool = False

    @property
    def direction(self) -> str:
        """Whether the value is the smallest or the largest."""
        return "smallest" if AXES[self.variable].more_helps else "largest"


def solve(
    setting: Setting,
    variable: Variable,
    target: float,
    *,
    bound: str = "best",
    quantity: Quantity = "gap",
    digits: int = _SIGNIFICANT,
) -> Solution:
    """The smallest m, gamma or delta (the largest T, C or depth) whose checked bound is at most the target.

    Whole numbers above 10^digits are found to that many digits, rounded to the safe side: the returned bound is checked
    at the returned value. Raises `NoSolution` when even the end of the range is not enough.
    """
    axis = AXES[choice("variable", variable, AXES)]
    choice("quantity", quantity, ("gap", "risk"))
    if not 0 < target < 1:
        raise InvalidSetting(f"target must lie in (0, 1), got {target!r}")

    def at(x: float) -> BoundValue:
        return evaluate(_change(setting, variable, axis, x), bound)

    def excess(value: BoundValue) -> float:
        """Positive where the bound misses the target."""
        return (value.log10 if quantity == "gap" else value.log_risk / math.log(10)) - math.log10(target)

    easy, hard = (axis.high, axis.low) if axis.more_helps else (axis.low, axis.high)
    easiest = at(easy)
    if excess(easiest) > 0:
        reached = easiest.gap if quantity == "gap" else easiest.risk
        raise NoSolution(
            f"no {variable} gives a {quantity} of at most {target:g}: even at {variable} = {easy:g} the bound is {reached:.4g}"
        )
    start = min(max(_start(setting, variable), axis.low), axis.high)
    return _search(Solution(variable, target, quantity, easy, easiest), at, excess, axis, start, hard, digits)


def _search(
    found: Solution,
    at: Callable[[float], BoundValue],
    excess: Callable[[BoundValue], float],
    axis: _Axis,
    start: float,
    hard: float,
    digits: int,
) -> Solution:
    """Widens a bracket from the setting's own value, then narrows it by regula falsi in logs."""
    sign = 1.0 if axis.more_helps else -1.0
    x, good, bad = start, (found.value, found.bound, -math.inf), (hard, math.inf)
    step = 1.0
    for _ in range(80):
        value = at(x)
        miss = excess(value)
        if miss <= 0:
            good = (x, value, miss)
            if x == hard:
                return Solution(found.variable, found.target, found.quantity, x, value, at_end=True)
        else:
            bad = (x, miss)
        if _settled(good[0], bad[0], axis, digits):
            break
        x = _next(good, bad, axis, sign, step, x, miss, hard, digits)
        step *= 1.6
    return Solution(found.variable, found.target, found.quantity, good[0], good[1])


def _settled(good: float, bad: float, axis: _Axis, digits: int) -> bool:
    if axis.whole and abs(good - bad) <= max(1.0, 10.0 ** (math.floor(math.log10(good)) - digits + 1) * 1.0000001):
        return True
    return abs(math.log(good / bad)) < (1e-12 if axis.whole else 10.0**-digits)


def _next(
    good: tuple[float, BoundValue, float],
    bad: tuple[float, float],
    axis: _Axis,
    sign: float,
    step: float,
    x: float,
    miss: float,
    hard: float,
    digits: int,
) -> float:
    """The next value to try: outward while one side is open, else between, leaning where the bound says."""
    if math.isinf(bad[1]) or math.isinf(good[2]):
        outward = math.log(x) + sign * (0.1 + step * abs(miss) * 2.3) * (1 if miss > 0 else -1)
        new = math.exp(min(max(outward, math.log(axis.low)), math.log(axis.high)))
        if miss <= 0 and (new - hard) * sign <= 0:
            new = hard
    else:
        share = bad[1] / (bad[1] - good[2]) if good[2] < 0 else 0.5
        share = min(0.98, max(0.02, share + (0.004 if share < 0.996 else 0.0)))
        new = math.exp(math.log(bad[0]) + share * math.log(good[0] / bad[0]))
    if axis.whole:
        unit = 10.0 ** max(0, math.floor(math.log10(max(new, 1.0))) - digits + 1)
        new = round(new / unit) * unit
        inner = sorted((good[0], bad[0]))
        if not math.isinf(bad[1]) and not math.isinf(good[2]):
            new = (
                min(max(new, inner[0] + unit), inner[1] - unit)
                if inner[1] - inner[0] > 2 * unit
                else round(sum(inner) / 2)
            )
        new = float(max(axis.low, new))
    return new


def _start(setting: Setting, variable: str) -> float:
    return {
        "m": float(setting.sample.n_train),
        "T": float(setting.architecture.seq_len),
        "C": setting.norms.C or 1.0,
        "depth": float(setting.architecture.depth),
        "gamma": setting.sample.margin,
        "delta": setting.sample.delta,
    }[variable]


def _change(setting: Setting, variable: str, axis: _Axis, x: float) -> Setting:
    if variable == "C" and setting.norms.budgets:
        raise InvalidSetting("C can be solved for only where it is the one norm: the norms file gives others")
    if variable == "depth" and setting.architecture.layers is not None:
        raise InvalidSetting("depth cannot be solved for where the layers are listed one by one")
    return setting.but(**{axis.field: round(x) if axis.whole else x})  # type: ignore[arg-type]
