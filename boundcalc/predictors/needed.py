"""How many test examples a certificate needs: planned before any is drawn.

Powers are computed in floats (SciPy). A number of errors that meets the level up to rounding is not taken for allowed:
limits are rounded up, and would miss the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, NoSolution

_MOST = 4 * 10**6
"""Examples that are tried."""
_ROOM = 1 - 1e-12
"""Below a level, for rounding."""


@dataclass(frozen=True)
class Plan:
    """So many examples are enough.

    Attributes:
        n: from here on every number is enough (the power rises in steps, and falls a little between them).
        power: the probability of success at n.
        allowed: of n errors, so many still certify; of a comparison None.
    """

    n: int
    power: float
    allowed: int | None = None


def plan_held_out(target: float, truth: float, power: float = 0.9, delta: float = 0.05, looks: int = 1) -> Plan:
    """The n from which on, where the true risk is `truth`, the certified limit is at most `target` with this power.

    Args:
        target: what the limit (H) is to be at most.
        truth: the risk that is supposed for planning; the certificate is not based on it.
        power: the probability, over the examples, that the certificate comes out as wished.
        delta: failure probability of the certificate.
        looks: models or looks that share delta.
    """
    _check(target=target, truth=truth, power=power, delta=delta)
    if not truth < target:
        raise InvalidSetting(
            f"a risk of {truth:g} is never certified to be at most {target:g}: the target must be above it"
        )
    n, reached = _smallest(lambda sizes: _rejects(sizes, target, delta / looks, truth)[1], power)
    return Plan(n, reached, int(_rejects(np.array([n]), target, delta / looks, truth)[0][0]))


def plan_difference(
    difference: float, discordant: float, power: float = 0.9, delta: float = 0.05, looks: int = 1
) -> Plan:
    """The n from which on the exact sign test finds the better of two predictors with this power.

    Args:
        difference: of their risks, supposed for planning.
        discordant: the share of examples on which one alone errs, likewise; at least the difference.
        power: the probability that the test's p-value is at most delta, for the better one.
        delta: level of the test, two-sided.
        looks: comparisons that share delta.
    """
    _check(difference=difference, discordant=discordant, power=power, delta=delta)
    if difference > discordant:
        raise InvalidSetting(f"errors differ by {difference:g} where one alone errs at most {discordant:g} of the time")
    from scipy.stats import binom

    counts = np.arange(min(64 + int(_MOST * discordant), 200_000) + 1)
    _, wins = _rejects(counts, 0.5, delta / looks / 2, (1 - difference / discordant) / 2)

    def power_of(n: int) -> float:
        spread = 12 * math.sqrt(n * discordant * (1 - discordant)) + 12
        low, high = max(0, int(n * discordant - spread)), int(n * discordant + spread) + 1
        if high >= len(wins):
            raise NoSolution(f"more than {n:,} examples are needed: a larger difference, or less power")
        return float(binom.pmf(counts[low:high], n, discordant) @ wins[low:high])

    return Plan(*_smallest(lambda sizes: np.array([power_of(n) for n in sizes.tolist()]), power))


def _check(**values: float) -> None:
    for name, value in values.items():
        validate.fraction(name, value, ends=False)


def _rejects(n: NDArray[np.int64], rate: float, level: float, truth: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The largest counts whose lower tails at a rate are at most the level, or -1; and their chances at the truth."""
    from scipy.stats import binom

    most = binom.ppf(level, n, rate)
    most = np.where(binom.cdf(most, n, rate) > level * _ROOM, most - 1, most)
    return most, np.where(most < 0, 0.0, binom.cdf(most, n, truth))


def _smallest(powers: Callable[[NDArray[np.int64]], NDArray[Any]], power: float) -> tuple[int, float]:
    """The n from which on every number of examples has enough power, and the power at n.

    Powers rise, but for falls of a few percent between steps: beyond an n with far more than enough none is tried.
    """
    enough = 1
    while powers(np.array([enough]))[0] < power + (1 - power) / 2:
        enough *= 2
        if enough > _MOST:
            raise NoSolution(f"more than {_MOST:,} examples are needed: a target farther from the truth, or less power")
    reached = powers(np.arange(1, 2 * enough + 1))
    last = int(np.flatnonzero(reached < power).max(initial=-1))
    return last + 2, float(reached[last + 1])
