"""B1: proved upper bounds of <w, p_h(x)> over a set of inputs, and the largest values as floats see them.

The inputs: some positions fixed, the others free with `low` to `high` ones among them. For any numbers lambda, theta

    G = sum over fixed t of alpha_t(x_t) + sum over free t of max(alpha_t(0), alpha_t(1) - theta) + max(low theta, high
    theta), alpha_t(c) = e_t(c) (<w, v_t(c)> - lambda);        if G <= 0 then <w, p_h(x)> <= lambda for all these
    inputs.

Values are guessed, and tested in floats with proved errors (docs/certificates.md). Where that fails, the largest
<w, v_t(c)> of all is the bound: p_h is an average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat

from boundcalc.predictors.data import Array

HALF = 2.0**-52
"""Twice the unit roundoff of a float."""
_TINY = 1e-290
"""More than all that a sum loses to underflow."""
_REACH = 650.0
"""Weights are at most exp of it, and those of spreads up to twice as much are far from underflow."""
_NEAR = 1e-10
"""How far above the value reached the iteration looks, relative to 1 + its size; else it misses layers of tiny
weight."""


@dataclass(frozen=True)
class Inputs:
    """A set of inputs: `fixed` positions with their bits, and low to high ones in all."""

    T: int
    fixed: Mapping[int, int]
    low: int
    high: int

    @cached_property
    def free(self) -> list[int]:
        """Positions that are not fixed."""
        return [t for t in range(self.T) if t not in self.fixed]

    @cached_property
    def counts(self) -> tuple[int, int]:
        """The least and the largest number of ones among the free positions."""
        shown = sum(self.fixed.values())
        return max(self.low - shown, 0), min(self.high - shown, len(self.free))

    @property
    def empty(self) -> bool:
        """Whether no input meets it."""
        return self.counts[0] > self.counts[1]

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        """Places of a head's table: free positions with bit 0, then with bit 1; and the fixed ones and the read row."""
        T = self.T
        return [*self.free, *(t + T for t in self.free)], [*(t + c * T for t, c in self.fixed.items()), 2 * T]


@dataclass(frozen=True)
class Heads:
    """Heads in floats, at 2 T + 1 places: every position with bit 0, every position with bit 1, the row that is read.

    Weights e are off by at most relative * e + 2^-1022, values v by relative * sizes; no entry of a value exceeds its
    size.

    Attributes:
        columns: e v, e, and e times the size of v (heads, places, d_head + 2).
        values: v (heads, places, d_head).
        relative: infinite above 1/4: floats decide nothing.
        largest_size: of a head's values.
    """

    columns: Array
    values: Array
    relative: Array
    largest_size: Array

    @classmethod
    def of(cls, weights: Sequence[arb_mat], values: Sequence[arb_mat]) -> Heads:
        """From the weights, a column, and the values of every head."""
        (e, e_off), (v, v_off) = (map(np.stack, zip(*map(rounded, balls), strict=True)) for balls in (weights, values))
        sizes = (np.abs(v) + v_off).max(2, keepdims=True) * (1 + 4 * HALF) + _TINY
        with np.errstate(all="ignore"):
            share = np.where(e > 0, e_off / e, np.where(e_off > 2.0**-1022, np.inf, 0.0))
            relative = 2 * HALF + 2 * np.maximum(share, v_off.max(2, keepdims=True) / sizes).max((1, 2))
            columns = e * np.concatenate([v, np.ones_like(e), sizes], 2)
        return cls(columns, v, np.where(relative <= 0.25, relative, math.inf), sizes.max((1, 2)))

    def __getitem__(self, heads: Sequence[int]) -> Heads:
        """Some of the heads."""
        return Heads(*(array[heads] for array in vars(self).values()))


def weights_of_scores(scores: Sequence[arb]) -> arb_mat:
    """A column of exp of the scores less one number, between the largest and the middle one."""
    mids = [float(score.mid()) for score in scores]
    top = arb(max(max(mids) - _REACH, (max(mids) + min(mids)) / 2))
    return arb_mat([[(score - top).exp()] for score in scores])


def rounded(balls: arb_mat) -> tuple[Array, Array]:
    """Midpoints, to within 2^-52 of themselves, and radii."""
    shape, entries = (balls.nrows(), balls.ncols()), balls.entries()
    mids, radii = ([float(part(ball)) for ball in entries] for part in (arb.mid, arb.rad))
    return np.reshape(mids, shape), np.reshape(radii, shape)


class HeadsOn:
    """Heads on sets of inputs with equally many fixed positions; arrays have an axis for sets and one for heads."""

    def __init__(self, heads: Heads, sets: Sequence[Inputs]) -> None:
        self.heads, self.sets = heads, sets
        sums = heads.columns[..., :-1]
        self._terms = np.stack([sums[:, inputs.places[0]] for inputs in sets])
        self._fixed = np.stack([sums[:, inputs.places[1]].sum(1) for inputs in sets])[:, :, None]
        self._counts = np.array([inputs.counts for inputs in sets]).T[..., None, None]

    def largest(self, w: Array, start: Array | None = None) -> tuple[Array, Array, Array]:
        """The largest <w, p>, p = sum e_t(c_t) v_t(c_t) / sum e_t(c_t), for directions w (sets, heads, rows, d_head).

        Dinkelbach's iteration, each time from a little above the value reached, so that it cannot stall between layers
        of very different weight. `start`: p of some inputs in the sets.

        Returns:
            A value that the quotient does not exceed (in floats), its multiplier, and a p near it, for each direction.
        """
        n = self._terms.shape[2] // 2
        gains = self._terms[:, :, n:] - self._terms[:, :, :n]  # what a 1 in the place of a 0 adds
        rises, mass = w @ gains[..., :-1].swapaxes(2, 3), gains[:, :, None, :, -1]

        def best(at: Array) -> tuple[Array, Array, Array]:
            picked, theta = _best_bits(rises - at[..., None] * mass, *self._counts)
            # both bits are summed, as a difference would lose what is small
            sums = np.concatenate([~picked, picked], -1).astype(np.float64) @ self._terms + self._fixed
            p = sums[..., :-1] / sums[..., -1:]
            return theta, p, (p * w).sum(-1)

        if start is None:  # the mean is of no input: it only says where to look first
            sums = self._terms.sum(2, keepdims=True) + self._fixed
            start = best((sums[..., :-1] / sums[..., -1:] * w).sum(-1))[1]
        at = (start * w).sum(-1)
        while True:  # every step rises, among finitely many values
            ahead = at + _NEAR * (1 + np.abs(at))
            theta, p, reached = best(ahead)
            rising = reached > ahead
            if not rising.any():
                return ahead, theta, p
            at = np.where(rising, reached, at)

    @np.errstate(all="ignore")
    def bounds(self, w: Array, off: Array) -> Array:
        """Proved upper bounds of <w, p> on the one set, for directions (heads, rows, d_head) off by so much in all."""
        (guess,), (theta,), _ = self.largest(w[None])
        bounds = np.where(self.holds(w, off, guess, theta), guess, math.inf)
        if np.isfinite(bounds).all():
            return bounds
        error = (self._unit(w) * np.abs(w).sum(2) + 2 * off) * self.heads.largest_size[:, None] + _TINY
        trivial = (w @ self.heads.values.swapaxes(1, 2)).max(2) + error
        return np.where(np.isfinite(bounds), bounds, np.where(np.isfinite(trivial), trivial, math.inf))

    def _unit(self, w: Array) -> Array:
        return 4 * self.heads.relative[:, None] + 4 * (w.shape[2] + 8) * HALF

    @np.errstate(all="ignore")
    def holds(self, w: Array, off: Array, values: Array, thetas: Array) -> Array:
        """Whether G <= 0 on the one set, with a proved bound of all roundings (docs/certificates.md)."""
        (inputs,), unit = self.sets, self._unit(w)
        (low, high), (free, fixed), n = inputs.counts, inputs.places, len(inputs.free)
        size = np.abs(w).sum(2)
        rows = np.concatenate([w, (unit * np.abs(values) - values)[..., None], (unit * size + 2 * off)[..., None]], 2)
        above = rows @ self.heads.columns[:, [*free, *fixed]].swapaxes(1, 2)
        most = np.maximum(above[..., :n], above[..., n : 2 * n] - thetas[..., None])
        counted = np.maximum(low * thetas, high * thetas)
        total = most.sum(2) + above[..., 2 * n :].sum(2) + counted
        sizes = np.abs(most).sum(2) + np.abs(above[..., 2 * n :]).sum(2) + np.abs(counted)
        tiny = _TINY * (1 + size + off + np.abs(values)) * (1 + self.heads.largest_size[:, None])
        error = 2 * (len(free) + len(fixed) + 8) * HALF * sizes + tiny
        return (total + error < 0) & np.isfinite(total + error) & np.isfinite(values)


def _best_bits(gain: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The bits of largest gain within the counts, and the multiplier of the count."""
    picked = gain > 0
    count = picked.sum(-1)
    wanted, theta = np.clip(count, low, high), np.zeros(count.shape)
    for k in np.unique(wanted[wanted != count]).tolist():
        rows = np.nonzero((wanted == k) & (wanted != count))
        some, chosen = gain[rows], np.zeros((len(rows[0]), gain.shape[-1]), dtype=bool)
        top = np.argpartition(-some, max(k - 1, 0), axis=1)[:, : max(k, 1)]
        np.put_along_axis(chosen, top[:, :k], values=True, axis=1)
        picked[rows], theta[rows] = chosen, np.take_along_axis(some, top, 1).min(1)
    return picked, theta
