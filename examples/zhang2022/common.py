"""What the scripts of this folder share: intervals and slopes; `run` of example_script.py."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

sys.path.append(str(Path(__file__).parents[1]))
from example_script import Values as Values
from example_script import run as run

Array = np.ndarray[Any, Any]


class Interval(NamedTuple):
    """A number with the two ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(numbers: Any) -> Interval:
    """A mean with Student's interval."""
    x = np.asarray(numbers, dtype=float)
    mean = float(x.mean())
    half = float(stdtrit(len(x) - 1, 0.975) * x.std(ddof=1) / math.sqrt(len(x)))
    return Interval(mean, mean - half, mean + half)


def fit_slope(x: Any, y: Any) -> Interval:
    """The slope of a straight line by least squares, with Student's interval."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    a, b = a - a.mean(), b - b.mean()
    slope = float(a @ b / (a @ a))
    half = float(stdtrit(len(a) - 2, 0.975)) * math.sqrt(float(np.square(b - slope * a).sum() / (len(a) - 2) / (a @ a)))
    return Interval(slope, slope - half, slope + half)


def rates(values: Mapping[Any, float], shortest: int = 64) -> dict[str, Interval]:
    """The power of L of every name, fitted from L = `shortest` on, for values under keys (name, L)."""
    slopes: dict[str, Interval] = {}
    for name in dict.fromkeys(name for name, _ in values):
        late = [(length, value) for (other, length), value in values.items() if other == name and length >= shortest]
        if len(late) >= 3:
            slopes[name] = fit_slope(*np.log(late).T)
    return slopes


def unit(rng: np.random.Generator, *shape: int) -> Array:
    """Points drawn uniformly from the unit sphere."""
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
