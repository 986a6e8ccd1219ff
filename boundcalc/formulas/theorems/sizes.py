"""The least size at which a theorem that is not about a setting meets a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.rounding import short, up
from boundcalc.base.value import Value
from boundcalc.formulas.theorems.theorem import Theorem

_SOLVED = ("L", "m")
"""Inputs that more of makes a bound smaller."""
_MOST = 10**18
_NEAR = 1e-4


class Size(NamedTuple):
    """The least input size at which a bound meets a target, and the bound there."""

    value: int
    bound: Value


def least_size(theorem: Theorem, variable: str, target: float, given: Mapping[str, float]) -> Size:
    """Found by doubling and halving, to four digits; the bound is checked at what is returned."""
    needed = [name for part in theorem.needed for name in part]
    if variable not in needed or variable not in _SOLVED:
        can = [name for name in _SOLVED if name in needed]
        instead = f"solve for {' or '.join(can)}" if can else "it has no input size: eval gives its value"
        raise InvalidSetting(f"{theorem.name} cannot be solved for {variable}: {instead}")
    if not target > 0:
        raise InvalidSetting(f"target must be above 0, got {target:g}")

    def at(size: int) -> Value:
        return min(theorem.values(**{**given, variable: size}), key=lambda bound: bound.value)

    always = at(1).always
    if always is not None and target >= always:
        raise InvalidSetting(f"{theorem.name} bounds what is at most {always:g} anyway: give a target below that")
    low, high = 0, 1
    while (bound := at(high)).value > target:
        low, high = high, high * 4
        if high > _MOST:
            raise NoSolution(
                f"no {variable} up to {short(_MOST)} gives {theorem.name} of at most {target:g}: even there it is "
                f"{up(at(_MOST).value)}"
            )
    while high - low > max(1, _NEAR * high):
        middle = (low + high) // 2
        found = at(middle)
        if found.value <= target:
            high, bound = middle, found
        else:
            low = middle
    return Size(high, bound)
