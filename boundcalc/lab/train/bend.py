"""Power law or logarithm: how log m* bends over log T.

m* = a T^b is a straight line there. m* = a + b log T has the slope p = b/m* and the second derivative -p^2: it bends down by
its own slope squared, whatever a and b are. So one number tells them apart without choosing between two fits: the second
derivative of a weighted parabola through (log T, log m*), beside minus the square of its slope in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAST_LENGTHS = 5
"""Of a parabola's points two are left to disagree."""


@dataclass(frozen=True)
class Bend:
    """The parabola's numbers, with 95% bootstrap intervals.

    Attributes:
        slope: the local exponent p in the middle of the lengths.
        bend: the second derivative of log m* in log T; 0 for a power law.
        bend_low, bend_high: its interval.
        beyond: bend + p^2; 0 for a + b log T.
        beyond_low, beyond_high: its interval.
    """

    slope: float
    bend: float
    bend_low: float
    bend_high: float
    beyond: float
    beyond_low: float
    beyond_high: float

    @property
    def verdict(self) -> str:
        """Which law is not rejected: "power", "log", both ("open") or none ("neither")."""
        power = self.bend_low <= 0 <= self.bend_high
        log = self.beyond_low <= 0 <= self.beyond_high
        if power and log:
            return "open"
        return "power" if power else "log" if log else "neither"

    def words(self) -> str:
        """One sentence."""
        said = {
            "open": "so both a power law and a logarithm remain possible",
            "power": "so a power law remains possible and a logarithm does not",
            "log": "so a logarithm remains possible and a power law does not",
            "neither": "so neither a power law nor a logarithm describes them",
        }[self.verdict]
        return (
            f"log m* bends by {self.bend:+.4f} [{self.bend_low:+.4f}, {self.bend_high:+.4f}] per unit of log T (a power law: "
            f"0), which is {self.beyond:+.4f} [{self.beyond_low:+.4f}, {self.beyond_high:+.4f}] beyond what a + b log T of "
            f"its slope {self.slope:.3f} has: {said}."
        )


def measure(lengths: Sequence[float], logs: Any, draws: Any, noise: Any) -> Bend:
    """From log m* by length, bootstrap draws of it (draws, lengths) and its standard errors."""
    x, weight = np.log(np.asarray(lengths, float)), np.asarray(noise, float) ** -2
    x = x - (weight * x).sum() / weight.sum()
    design = np.stack([np.ones_like(x), x, x**2 / 2], 1)
    solver = np.linalg.solve(design.T @ (weight[:, None] * design), design.T * weight)
    _, slope, bend = solver @ np.asarray(logs, float)
    _, slopes, bends = solver @ np.asarray(draws, float).T
    low, high = np.quantile(bends, [0.025, 0.975])
    far_low, far_high = np.quantile(bends + slopes**2, [0.025, 0.975])
    numbers = (slope, bend, low, high, bend + slope**2, far_low, far_high)
    return Bend(*(float(value) for value in numbers))
