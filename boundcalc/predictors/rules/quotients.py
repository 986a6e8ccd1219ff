"""Guesses for B1 in floats: where a head's output is largest in a direction. Nothing here is trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boundcalc.predictors.data import Array

NEAR = 1e-10
"""How far above the value reached the iteration looks, relative to 1 + its size; else it misses layers of tiny weight."""
_STEPS = 400


@dataclass(frozen=True)
class Largest:
    """Per row: a value that the quotient does not exceed (as floats see it), its multiplier, the maximising bits and mass."""

    value: Array
    theta: Array
    ones: Array
    mass: Array


def largest(e: Array, y: Array, num: Array, den: Array, low: Array | int, high: Array | int) -> Largest:
    """The largest (num + sum e_t(c_t) y_t(c_t)) / (den + sum e_t(c_t)) over bits c with low <= sum c <= high.

    Dinkelbach's iteration, each time from a little above the value reached, so that it cannot stall between layers of
    very different weight. e is (.., n, 2), y (rows, n, 2), the others one number per row.
    """
    rows, n = y.shape[:2]
    e = np.broadcast_to(e, y.shape)
    low, high = np.broadcast_to(low, (rows,)), np.broadcast_to(high, (rows,))
    ones = np.zeros((rows, n), dtype=bool)
    theta, mass, value = np.zeros(rows), np.ones(rows), np.zeros(rows)
    with np.errstate(all="ignore"):
        start = (num + (e * y).sum((1, 2))) / (den + e.sum((1, 2)))  # of no input: it only says where to look first
        at = _quotient(e, y, num, den, _best_bits(e, y, start, low, high)[0])[0]
        left = np.arange(rows)
        for _ in range(_STEPS):
            ahead = at[left] + NEAR * (1 + np.abs(at[left]))
            picked, multiplier = _best_bits(e[left], y[left], ahead, low[left], high[left])
            reached, total = _quotient(e[left], y[left], num[left], den[left], picked)
            ones[left], theta[left], mass[left], value[left] = picked, multiplier, total, ahead
            rising = reached > ahead
            at[left[rising]] = reached[rising]
            left = left[rising]
            if not len(left):
                break
    return Largest(value, theta, ones, mass)


def _best_bits(e: Array, y: Array, at: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The bits that maximise sum e (y - at) within the counts, and the multiplier of the count."""
    terms = e * (y - at[:, None, None])
    gain = terms[..., 1] - terms[..., 0]
    picked = gain > 0
    count = picked.sum(1)
    theta = np.zeros(len(at))
    off = np.flatnonzero((count < low) | (count > high))
    wanted = np.where(count < low, low, high)[off]
    for k in np.unique(wanted):
        rows = off[wanted == k]
        picked[rows] = False
        if k == 0:
            theta[rows] = gain[rows].max(1, initial=0.0)
            continue
        top = np.argpartition(-gain[rows], k - 1, axis=1)[:, :k]
        picked[rows[:, None], top] = True
        theta[rows] = np.take_along_axis(gain[rows], top, 1).min(1)
    return picked, theta


def _quotient(e: Array, y: Array, num: Array, den: Array, ones: Array) -> tuple[Array, Array]:
    """The quotient at some bits, and its denominator."""
    chosen = np.where(ones, e[..., 1], e[..., 0])
    mass = den + chosen.sum(1)
    return (num + (chosen * np.where(ones, y[..., 1], y[..., 0])).sum(1)) / mass, mass
