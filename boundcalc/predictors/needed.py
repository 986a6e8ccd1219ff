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

from boundcalc.base.errors import InvalidSetting, NoSolution

Counts = NDArray[np.int64]
Floats = NDArray[Any]
MOST = 4 * 10**6
"""Examples that are tried."""
_AT_ONCE = 4096
_ROOM = 1 - 1e-12
"""Below a level, for rounding."""
_Powers = Callable[[Counts], tuple[Floats, Floats]]
"""Of numbers of examples the powers, and the errors that are allowed."""


@dataclass(frozen=True)
class Plan:
    """So many examples are enough.

    Attributes:
        n: the smallest number that is enough.
        power: the probability of success there.
        allowed: of n errors, so many still certify; of a comparison None.
        always: from here on every number is enough (the power rises in steps, and falls a little between them).
    """

    n: int
    power: float
    allowed: int | None
    always: int


def plan_held_out(target: float, truth: float, power: float = 0.9, delta: float = 0.05, looks: int = 1) -> Plan:
    """The least n so that, where the true risk is `truth`, the certified limit is at most `target` with this power.

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
    from scipy.stats import binom

    share = delta / looks

    def powers(n: Counts) -> tuple[Floats, Floats]:
        allowed = binom.ppf(share, n, target)
        allowed = np.where(binom.cdf(allowed, n, target) > share * _ROOM, allowed - 1, allowed)
        return np.where(allowed < 0, 0.0, binom.cdf(allowed, n, truth)), allowed

    n, reached, always, allowed = _smallest(powers, power)
    return Plan(n, reached, allowed, always)


def plan_difference(
    difference: float, discordant: float, power: float = 0.9, delta: float = 0.05, looks: int = 1
) -> Plan:
    """The least n so that the exact sign test finds the better of two predictors with this power.

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

    share = (1 + difference / discordant) / 2
    most = 64 + int(MOST * discordant)
    counts = np.arange(min(most, 200_000) + 1)
    allowed = binom.ppf(delta / looks / 2, counts, 0.5)
    allowed = np.where(binom.cdf(allowed, counts, 0.5) > delta / looks / 2 * _ROOM, allowed - 1, allowed)
    wins = np.where(allowed < 0, 0.0, binom.cdf(allowed, counts, 1 - share))

    def powers(n: Counts) -> tuple[Floats, Floats]:
        power_of = np.empty(len(n))
        for index, size in enumerate(n):
            spread = 12 * math.sqrt(size * discordant * (1 - discordant)) + 12
            low, high = max(0, int(size * discordant - spread)), int(size * discordant + spread) + 1
            if high >= len(wins):
                raise NoSolution(f"more than {size:,} examples are needed: a larger difference, or less power")
            power_of[index] = float((binom.pmf(counts[low:high], size, discordant) * wins[low:high]).sum())
        return power_of, np.zeros(len(n))

    n, reached, always, _ = _smallest(powers, power)
    return Plan(n, reached, None, always)


def _check(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < 1:
            raise InvalidSetting(f"{name} must lie between 0 and 1, got {value!r}")


def _smallest(powers: _Powers, power: float) -> tuple[int, float, int, int]:
    """The first n with enough power, that power, from where on every n has it, and the errors allowed at the first.

    Powers rise, but for falls of a few percent between steps: beyond an n with far more than enough none is tried.
    """
    enough = 1
    while powers(np.array([enough]))[0][0] < power + (1 - power) / 2:
        enough *= 2
        if enough > MOST:
            raise NoSolution(f"more than {MOST:,} examples are needed: a target farther from the truth, or less power")
    first, last = None, 0
    for start in range(1, 2 * enough + 1, _AT_ONCE):
        n = np.arange(start, min(start + _AT_ONCE, 2 * enough + 1))
        reached, allowed = powers(n)
        good = reached >= power
        if first is None and good.any():
            place = int(good.argmax())
            first = int(n[place]), float(reached[place]), int(allowed[place])
        if not good.all():
            last = int(n[~good][-1])
    assert first is not None  # noqa: S101 - the loop above ended at one that is enough
    return first[0], first[1], last + 1, first[2]
