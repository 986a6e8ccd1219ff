"""Where a monotone function of log x changes sign."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class Axis(NamedTuple):
    """A variable one can solve for: its name in `Setting.but`, where to look, and whether more of it helps."""

    field: str
    low: float
    high: float
    whole: bool
    more_helps: bool
    stride: float = math.inf
    """The longest step, in logs, where a trial costs more the farther out it is."""


_WIDENINGS = 60
_STRETCH = 1.2
"""How much longer each further step outward is: where a bound hardly moves, the end of the range is still reached."""
_NARROWINGS = 60


class Crossing:
    """Finds where a monotone function of log x changes sign: widen, then narrow (Illinois)."""

    def __init__(self, axis: Axis, digits: int) -> None:
        self.axis = axis
        self.digits = digits
        self.easy, self.hard = (axis.high, axis.low) if axis.more_helps else (axis.low, axis.high)

    def run(self, start: float, miss_at: Callable[[float], float], least_step: float = 0.3) -> float | None:
        """The value nearest the hard end that does not miss, rounded to the safe side; None where all miss.

        `least_step`: the shortest first step outward, in logs: short where the start is thought to be near.
        """
        x = self._rounded(min(max(start, self.axis.low), self.axis.high))
        miss = miss_at(x)
        outward = self.easy if miss > 0 else self.hard
        step = math.copysign(1.0, outward - x)
        for i in range(_WIDENINGS):
            if x == outward:
                return None if miss > 0 else x
            length = min((least_step + 2.2 * min(abs(miss), 40.0)) * _STRETCH**i, self.axis.stride)
            new = self._rounded(self._clamped(math.log(x) + step * length))
            if new == x:
                new = self._rounded(x + step * self._unit(x))
            if new == x:
                new = outward
            there = miss_at(new)
            if (there > 0) != (miss > 0):
                good, bad = ((new, there), (x, miss)) if there <= 0 else ((x, miss), (new, there))
                return self._narrow(good, bad, miss_at)
            x, miss = new, there
        return None if miss > 0 else x

    def _narrow(self, good: tuple[float, float], bad: tuple[float, float], miss_at: Callable[[float], float]) -> float:
        (x, low), (y, high) = good, bad
        before: bool | None = None
        for _ in range(_NARROWINGS):
            if abs(x - y) <= self._unit(x) * 1.01:
                break
            share = high / (high - low) if low < 0 else 0.5
            middle = math.exp(math.log(y) + min(0.95, max(0.05, share)) * math.log(x / y))
            middle = self._between(self._rounded(middle), x, y)
            if middle in (x, y):
                break
            miss = miss_at(middle)
            met = miss <= 0
            if met:
                x, low, high = middle, miss, high / 2 if before is met else high
            else:
                y, high, low = middle, miss, low / 2 if before is met else low
            before = met  # an end that stays twice is trusted less (Illinois)
        return x

    def _between(self, z: float, x: float, y: float) -> float:
        """A value strictly between x and y where there is one: next to an end, when that is where z fell."""
        for end, other in ((x, y), (y, x)):
            if abs(z - end) < 0.5 * self._unit(end):
                return self._rounded(end + math.copysign(self._unit(end), other - end))
        return z

    def _unit(self, x: float) -> float:
        """The last digit requested (at least 1 for whole numbers)."""
        unit = 10.0 ** (math.floor(math.log10(x)) - self.digits + 1)
        return max(1.0, unit) if self.axis.whole else unit

    def _rounded(self, x: float) -> float:
        unit = self._unit(x)
        return min(max(float(f"{round(x / unit) * unit:.15g}"), self.axis.low), self.axis.high)

    def harder(self, x: float) -> float:
        """One last digit towards the hard end."""
        return self._rounded(x + math.copysign(self._unit(x), self.hard - x)) if x != self.hard else x

    def safer(self, x: float) -> float:
        """One last digit towards the easy end."""
        return self._rounded(x + math.copysign(self._unit(x), self.easy - x))

    def _clamped(self, log_x: float) -> float:
        if log_x >= math.log(self.axis.high):
            return self.axis.high
        return self.axis.low if log_x <= math.log(self.axis.low) else math.exp(log_x)
