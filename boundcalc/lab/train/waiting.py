"""How the steps until something is learned grow with the length, where some trials are stopped before it happens.

A trial that is looked at every so often tells an interval: it had learned at this look and not yet at the one before, or
not at its last one. Leaving out those that never got there, or counting them as if they just had, makes growth look slower than
it is, as there are more of them at long inputs. So the intervals themselves are fitted: log steps = a + b log T + noise of one
normal law, by the likelihood that each step lies where it was seen to lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.base.errors import NoSolution

_Array = Any
_ROUNDS = 400
_LEAST_SPREAD = 0.02
"""Of the noise: trials that agree to the look leave none to be seen."""


@dataclass(frozen=True)
class Waited:
    """When one trial learned.

    Attributes:
        after: the last look at which it had not.
        until: the first at which it had; infinite where it never did.
    """

    after: float
    until: float


@dataclass(frozen=True)
class Waiting:
    """Median steps are scale T^exponent.

    Attributes:
        exponent: b.
        low, high: its 95% bootstrap interval (trials drawn anew within each length).
        scale: e^a.
        spread: standard deviation of log steps at one length.
    """

    exponent: float
    low: float
    high: float
    scale: float
    spread: float

    def __call__(self, T: float) -> float:
        """The fitted median."""
        return self.scale * T**self.exponent


def growth(found: Mapping[float, Sequence[Waited]], *, draws: int = 1000, seed: int = 0) -> Waiting:
    """The power law of the steps, from trials by length."""
    if len(found) < 2 or not all(found.values()):
        raise NoSolution("growth needs trials at two lengths or more")
    lengths = np.repeat([float(T) for T in found], [len(some) for some in found.values()])
    every = [one for some in found.values() for one in some]
    if sum(math.isfinite(one.until) for one in every) < 3:
        raise NoSolution("growth needs three trials that learned: train longer (train.steps in the sweep)")
    low = np.log(np.array([max(one.after, 1e-9) for one in every]))
    high = np.log(np.array([one.until for one in every]))
    rng = np.random.default_rng(seed)
    chosen = [
        np.flatnonzero(lengths == T)[rng.integers(len(some), size=(draws, len(some)))] for T, some in found.items()
    ]
    fits = _fit(np.log(lengths)[None], low[None], high[None])
    which = np.concatenate(chosen, 1)
    again = _fit(np.log(lengths)[which], low[which], high[which])
    ends = np.quantile(again[:, 1], [0.025, 0.975])
    a, b, spread = (float(value) for value in fits[0])
    return Waiting(b, float(ends[0]), float(ends[1]), math.exp(a), spread)


def _fit(x: _Array, low: _Array, high: _Array) -> _Array:
    """Rows (a, b, spread) of the greatest likelihood, by expectation and maximisation: one fit for each row of trials."""
    middle = x.mean(1, keepdims=True)
    x = x - middle
    seen = np.where(np.isfinite(high), (np.maximum(low, high - 1) + high) / 2, low + 0.5)
    a, b, spread = seen.mean(1), np.zeros(len(x)), np.maximum(seen.std(1), 0.3)
    for _ in range(_ROUNDS):
        mean = a[:, None] + b[:, None] * x
        expected, variance = _within(mean, spread[:, None], low, high)
        old = (a, b)
        a = expected.mean(1)
        b = (x * expected).sum(1) / (x**2).sum(1)
        rest = (expected - a[:, None] - b[:, None] * x) ** 2 + variance
        spread = np.maximum(np.sqrt(rest.mean(1)), _LEAST_SPREAD)
        if max(np.abs(a - old[0]).max(), np.abs(b - old[1]).max()) < 1e-7:
            break
    return np.stack([a - b * middle[:, 0], b, spread], 1)


def _within(mean: _Array, spread: _Array, low: _Array, high: _Array) -> tuple[_Array, _Array]:
    """Mean and variance of a normal number that is known to lie between low and high."""
    left, right = (low - mean) / spread, (high - mean) / spread
    mirrored = right < 0  # the lower tail is the upper one of the mirrored number, where nothing cancels
    left, right = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    bottom = np.maximum(left, 0.0) ** 2 / 2  # tails beyond this height are measured in units of exp(-bottom)
    mass = np.where(
        left > 0, _scaled_tail(np.maximum(left, 0.0), bottom), 1 - _scaled_tail(np.maximum(-left, 0.0), 0 * left)
    )
    mass = np.maximum(mass - _scaled_tail(right, bottom), 1e-300)
    at_left, at_right = _scaled_density(left, bottom), _scaled_density(right, bottom)
    shift = (at_left - at_right) / mass
    finite = np.where(np.isfinite(right), right, 0.0)
    variance = 1 + (left * at_left - finite * at_right) / mass - shift**2
    shift = np.clip(shift, left, right)
    return mean + spread * np.where(mirrored, -shift, shift), spread**2 * np.clip(variance, 0.0, 1.0)


def _scaled_density(x: _Array, height: _Array) -> _Array:
    return np.exp(np.where(np.isfinite(x), height - np.minimum(x**2 / 2, 1e300), -np.inf)) / math.sqrt(2 * math.pi)


def _scaled_tail(x: _Array, height: _Array) -> _Array:
    """P(N > x) e^height for x >= 0, to a part in 10^7: the rational approximation of Press et al., Numerical Recipes, 6.2."""
    z = np.where(np.isfinite(x), x, 0.0) / math.sqrt(2)
    t = 1 / (1 + z / 2)
    power = np.where(np.isfinite(x), height - z**2 + np.polyval(_TAIL, t), -np.inf)
    return t * np.exp(power) / 2


_TAIL = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
    -1.26551223,
)
