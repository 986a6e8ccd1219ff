"""What would make the bounds of a setting say something, one change at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from boundcalc.base.errors import NoSolution
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.solve import solve
from boundcalc.setting import Setting


def needs(setting: Setting) -> dict[str, float | None]:
    """What would make the bounds say something: m, and the factor that every norm would have to shrink by."""
    out: dict[str, float | None] = {}
    for quantity in ("gap", "risk"):
        try:
            out[f"m_{quantity}"] = solve(setting, "m", math.exp(-VACUOUS_MARGIN), quantity=quantity).value
        except NoSolution:
            out[f"m_{quantity}"] = None
        out[f"norm_factor_{quantity}"] = _norm_factor(setting, quantity)
    return out


def _norm_factor(setting: Setting, quantity: str) -> float | None:
    """The largest power of 2^(1/8) by which all norms may be multiplied for the bound to say something.

    Not so far down that no network of the class has the margin any more: such a bound would speak of none.
    """

    def scaled(eighths: int) -> Desk:
        return Desk(replace(setting, norms=setting.norms.scaled(2.0 ** (-eighths / 8))))

    def says(eighths: int) -> bool:
        value = scaled(eighths).value("best")
        return not (value.vacuous if quantity == "gap" else value.risk_vacuous)

    def most(low: int, high: int, holds: Callable[[int], bool]) -> int:
        """The last place that holds, after `low`, which does, and before `high`, which does not."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    if says(0):
        return 1.0
    last = most(0, 8 * 40, lambda eighths: scaled(eighths).risk_refusal is None)
    if last == 0 or not says(last):
        return None
    return 2.0 ** (-(most(0, last, lambda eighths: not says(eighths)) + 1) / 8)
