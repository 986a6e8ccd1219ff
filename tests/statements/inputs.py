"""Random admissible inputs, and comparison of values in every number system with 50 digits of the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.proof.second._numbers import MP, num

Rng = np.random.Generator
Value = Callable[[NumberSystem], Any]
ROUNDS = 12
_ROUNDING = num(10) ** -40
"""The 50 digits are rounded too."""


def some(rng: Rng, count: int, low: float = 0.2, high: float = 4.0) -> list[float]:
    """Numbers spread evenly in their logarithm."""
    return [float(x) for x in np.exp(rng.uniform(np.log(low), np.log(high), count))]


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return int(rng.integers(low, high + 1))


def disagreements(value: Value, truth: Any, tolerance: float = 1e-12) -> list[str]:
    """Where floats are off by more than a relative tolerance, or the interval misses the truth or is wide."""
    found: list[str] = []
    for ns in (FLOAT, INTERVAL):
        values = value(ns)
        for name, exact in truth.items() if isinstance(truth, Mapping) else [("value", num(truth))]:
            mine = values[name] if isinstance(values, Mapping) else values
            if not _close(ns, mine, num(exact), tolerance):
                found.append(f"{ns.name} {name}: {mine} for {MP.nstr(exact, 20)}")
    return found


def _close(ns: NumberSystem, mine: Any, exact: Any, tolerance: float) -> bool:
    if ns is INTERVAL:
        low, high = (_exactly(end) for end in (arb(mine).lower(), arb(mine).upper()))
        slack = _ROUNDING * abs(exact)
        return low <= exact + slack and exact - slack <= high and high - low <= abs(exact) * num(10) ** -25
    return abs(num(mine) - exact) <= tolerance * abs(exact)


def _exactly(x: arb) -> Any:
    """An exact ball (of radius 0) in 50 digits."""
    mantissa, exponent = x.man_exp()
    return num(int(mantissa)) * num(2) ** int(exponent)
