"""Binomial tails as enclosures, the confidence limits they prove, and the guesses in floats they start from."""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from boundcalc.base.intervals import certainly_le

_SURE_BITS = 48
"""Relative precision of a tail below which it is computed by the other incomplete beta function, a slower one."""
_STEPS = 200
_LEAST_LOG = -700.0
"""Probabilities with a smaller logarithm are below every float."""


def binomial_tail(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) <= errors), enclosed: 1 - I_p(errors + 1, n - errors); p may be an enclosure within [0, 1]."""
    if errors >= n:
        return arb(1)
    p = arb(p)
    tail = 1 - p.beta_lower(errors + 1, n - errors, True)
    return tail if tail.rel_accuracy_bits() >= _SURE_BITS else (1 - p).beta_lower(n - errors, errors + 1, True)


def binomial_mass(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) = errors), enclosed."""
    return arb.bin_uiui(n, errors) * arb(p) ** errors * (1 - arb(p)) ** (n - errors)


def limit(errors: int, n: int, log_delta: arb) -> float:
    """Clopper and Pearson's upper limit, rounded up: the largest p with P(Bin(n, p) <= errors) >= exp(log_delta)."""
    delta, guess = log_delta.exp(), float_limit(errors, n, float(log_delta))
    return rounded_up(guess, lambda p: certainly_le(binomial_tail(errors, n, p), delta))


def float_limit(errors: int, n: int, log_delta: float) -> float:
    """The same limit by SciPy: a guess for `limit` and for searches, never a certificate."""
    if errors >= n:
        return 1.0
    if log_delta < _LEAST_LOG:
        return root(lambda p: float(binomial_tail(errors, n, p).log()) - log_delta, errors / n)
    from scipy.special import betainccinv

    return float(betainccinv(errors + 1, n - errors, math.exp(log_delta)))


def root(falling: Callable[[float], float], low: float) -> float:
    """The root in [low, 1] of a function that falls, by false position; `low` or 1 where it has one sign."""
    high, above, middle, last = 1 - 2.0**-53, falling(low), low, 0.0
    below = falling(high)
    if above <= 0 or below >= 0:
        return low if above <= 0 else 1.0
    for _ in range(_STEPS):
        middle = (low * below - high * above) / (below - above)
        if not low < middle < high:
            break
        value = falling(middle)
        if value > 0:
            low, above, below = middle, value, below / 2 if last > 0 else below  # an end that stays counts half
        else:
            high, below, above = middle, value, above / 2 if last < 0 else above
        last = value
    return middle


def rounded_up(guess: float, holds: Callable[[float], bool], step: float = 1e-13, most: float = 1e-2) -> float:
    """The guess, or the first value a little above it for which `holds` is certain; 1 where there is none."""
    while step <= most:
        value = guess + step * min(guess, 1 - guess)
        if value >= 1:
            return 1.0
        if value > guess and holds(value):
            return value
        step *= 4
    return 1.0
