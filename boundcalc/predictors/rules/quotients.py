"""Guesses for B1 in floats: where a head's output is largest in a direction. Nothing here is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boundcalc.predictors.data import Array

NEAR = 1e-10
"""How far above the value reached the iteration looks, relative to 1 + its size; else it misses layers of tiny
weight."""
_STEPS = 400


@dataclass(frozen=True)
class Free:
    """Heads on sets of inputs: sums of e_t(c) v_t(c) and, last, of e_t(c).

    Attributes:
        terms: of the free positions, bit 0 before bit 1 (heads, 2 n, d_head + 1).
        fixed: of the others together (heads, d_head + 1).
        low: least number of ones among the free positions, for each head.
        high: their largest number.
    """

    terms: Array
    fixed: Array
    low: Array
    high: Array

    @cached_property
    def gains(self) -> Array:
        """What a 1 in the place of a 0 adds to the sums."""
        n = self.terms.shape[1] // 2
        return self.terms[:, n:] - self.terms[:, :n]


@dataclass(frozen=True)
class Largest:
    """Per head and direction: a value the quotient does not exceed (in floats), its multiplier, a p near it."""

    value: Array
    theta: Array
    p: Array


def largest(heads: Free, w: Array, start: Array | None = None) -> Largest:
    """The largest <w, p> for directions w (heads, rows, d_head), p = sum e_t(c_t) v_t(c_t) / sum e_t(c_t).

    Dinkelbach's iteration, each time from a little above the value reached, so that it cannot stall between layers of
    very different weight. `start`: p of some inputs in the sets.
    """
    count, rows, width = w.shape
    index, flat = np.repeat(np.arange(count), rows), w.reshape(-1, width)
    theta, value, best = np.zeros(len(flat)), np.zeros(len(flat)), np.zeros(flat.shape)
    with np.errstate(all="ignore"):
        gains = (w @ heads.gains[..., :width].swapaxes(1, 2)).reshape(len(flat), -1)
        if start is None:  # of no input: it only says where to look first
            sums = heads.terms.sum(1) + heads.fixed
            first = np.einsum("hri,hi->hr", w, sums[:, :width] / sums[:, width:]).ravel()
            at = (_sums(heads, index, _best_bits(heads, index, gains, first)[0]) * flat).sum(1)
        else:
            at = np.einsum("hri,hri->hr", w, start.reshape(count, -1, width)).ravel()
        left = np.arange(len(flat))
        for _ in range(_STEPS):
            ahead = at + NEAR * (1 + np.abs(at))
            picked, multiplier = _best_bits(heads, index, gains, ahead)
            p = _sums(heads, index, picked)
            reached = (p * flat).sum(1)
            theta[left], value[left], best[left] = multiplier, ahead, p
            rising = reached > ahead
            if not rising.all():
                left, index, gains, flat, reached = (x[rising] for x in (left, index, gains, flat, reached))
            if not len(left):
                break
            at = reached
    shape = (count, rows)
    return Largest(value.reshape(shape), theta.reshape(shape), best.reshape(w.shape))


def _best_bits(heads: Free, index: Array, gains: Array, at: Array) -> tuple[Array, Array]:
    """The bits that maximise sum e (<w, v> - at) within the counts, and the multiplier of the count."""
    mass = heads.gains[..., -1]
    gain = gains - at[:, None] * (mass if len(mass) == 1 else mass[index])
    picked = gain > 0
    count, low, high = np.count_nonzero(picked, axis=1), heads.low[index], heads.high[index]
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


def _sums(heads: Free, index: Array, ones: Array) -> Array:
    """The p of some bits; both bits are summed, as a difference would lose what is small."""
    chosen = np.concatenate([~ones, ones], 1).astype(np.float64)
    if len(heads.terms) == 1:
        sums = chosen @ heads.terms[0] + heads.fixed
    else:
        sums = (chosen[:, None] @ heads.terms[index])[:, 0] + heads.fixed[index]
    return sums[:, :-1] / sums[:, -1:]
