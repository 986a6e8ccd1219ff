"""Lower tails of binomial counts as enclosures, and the confidence limits they prove.

A sum starts at the largest term it may, runs down by exact ratios, and stops where a geometric series bounds what is
left. Arb's exponents have no end, so a tail of 10^-3000 is a number like any other. (`arb.beta_lower` gives the same
enclosures, 150 to 440 times slower from n = 10,000 on.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from boundcalc.base.intervals import certainly_le

_ENOUGH = arb(2) ** -40
"""What may be left of a sum, relative to it."""
_LOOK = 8
"""Terms between looks at what is left."""
_HALVINGS = 200
_LEAST_LOG = -700.0
"""Probabilities with a smaller logarithm are below every float."""


def binomial_tail(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) <= errors), enclosed; p may be an enclosure within [0, 1]."""
    p = arb(p)
    if errors < 0:
        return arb(0)
    if errors >= n or bool(p <= 0):
        return arb(1)
    if bool(p >= 1):
        return arb(0)
    q = 1 - p
    if bool(p * n > errors):
        return _mass(errors, n, p, q) * _fall(errors, n, q / p)
    up = errors + 1
    return 1 - _mass(up, n, p, q) * _fall(n - up, n, p / q)


def binomial_mass(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) = errors), enclosed, for p in (0, 1)."""
    p = arb(p)
    return _mass(errors, n, p, 1 - p)


def _mass(k: int, n: int, p: arb, q: arb) -> arb:
    return arb.bin_uiui(n, k) * p**k * q ** (n - k)


def _fall(start: int, n: int, odds: arb) -> arb:
    """Sum over i = start, start - 1, .., 0 of C(n, i) odds^(start - i) / C(n, start)."""
    term = total = arb(1)
    for i in range(start, 0, -1):
        term = term * i / (n - i + 1) * odds
        total = total + term
        if i % _LOOK == 0:
            ratio = odds * i / (n - i + 2)  # at least every later ratio: i / (n - i + 1) falls with i
            if bool(ratio < arb(0.9)):
                rest = term * ratio / (1 - ratio)
                if bool(rest < total * _ENOUGH):
                    return total + rest * arb(0.5, 0.5)
    return total


def limit(errors: int, n: int, log_delta: arb | float) -> float:
    """Clopper and Pearson's upper limit, rounded up: the largest p with P(Bin(n, p) <= errors) >= exp(log_delta)."""
    if errors >= n:
        return 1.0
    level = arb(log_delta)
    delta = level.exp()
    if not bool(delta < 1):
        raise ValueError(f"a confidence limit needs a failure probability below 1, got {delta}")

    def holds(p: float) -> bool:
        return certainly_le(binomial_tail(errors, n, p), delta)

    return rounded_up(float_limit(errors, n, float(level)), holds)


def turn(holds: Callable[[float], bool], low: float, high: float = 1.0) -> float:
    """Where `holds`, true at `low`, ceases: the first place of a halving where it does not, as near as floats lie."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return high


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


def float_limit(errors: int, n: int, log_delta: float) -> float:
    """The same limit by SciPy: a guess for `limit` and for searches, never a certificate."""
    if errors >= n:
        return 1.0
    if log_delta < _LEAST_LOG:
        return turn(lambda p: bool(binomial_tail(errors, n, p).log() >= log_delta), errors / n)
    from scipy.special import betainccinv

    return float(betainccinv(errors + 1, n - errors, math.exp(log_delta)))
