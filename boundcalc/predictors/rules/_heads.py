"""B1: proved upper bounds of <w, p_h(x)> over a set of inputs, and the largest values as floats see them.

The inputs: some positions fixed, the others free with `low` to `high` ones among them. For any numbers lambda, theta

    G = sum over fixed t of alpha_t(x_t) + sum over free t of max(alpha_t(0), alpha_t(1) - theta) + max(low theta, high
    theta), alpha_t(c) = e_t(c) (<w, v_t(c)> - lambda);        if G <= 0 then <w, p_h(x)> <= lambda for all these
    inputs.

Values are guessed. They are tested in floats with proved errors, and in balls where floats do not decide
(docs/certificates.md proves both).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat

from boundcalc.predictors.data import Array

_Balls = list[list[arb]]
HALF = 2.0**-52
"""Twice the unit roundoff of a float."""
_TINY = 1e-290
"""More than all that a sum loses to underflow."""
_NEAR = 1e-10
"""How far above the value reached the iteration looks, relative to 1 + its size; else it misses layers of tiny
weight."""
_ROWS = 512
"""Directions tested at once."""
_SLACKS = (0.0, 1e-9, 1e-7, 1e-5, 1e-3)


@dataclass(frozen=True)
class Inputs:
    """A set of inputs: `fixed` positions with their bits, and low to high ones among the others."""

    T: int
    fixed: tuple[tuple[int, int], ...]
    low: int
    high: int

    @cached_property
    def free(self) -> list[int]:
        """Positions that are not fixed."""
        taken = {t for t, _ in self.fixed}
        return [t for t in range(self.T) if t not in taken]

    @property
    def empty(self) -> bool:
        """Whether no input meets it."""
        return max(self.low, 0) > min(self.high, len(self.free))

    @property
    def counts(self) -> tuple[int, int]:
        """Ones among the free positions."""
        return max(self.low, 0), min(self.high, len(self.free))

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        """Places of a head's table: free positions with bit 0, then with bit 1; and the fixed ones and the read row."""
        T = self.T
        return [*self.free, *(t + T for t in self.free)], [*(t + c * T for t, c in self.fixed), 2 * T]


class Directions:
    """Rows of balls; the same in floats, and for each row the sum of what its entries are off by at most."""

    def __init__(self, balls: Sequence[Sequence[arb]]) -> None:
        self.balls = balls
        self.floats, off = _with_radii(balls)
        self.off = (off + HALF * np.abs(self.floats)).sum(1)

    @classmethod
    def both_ways(cls, rows: Sequence[Sequence[arb]]) -> Directions:
        """The rows and their opposites."""
        return cls([*rows, *([-entry for entry in row] for row in rows)])


@dataclass(frozen=True)
class HeadTable:
    """One head: unnormalised weights e and values v at 2 T + 1 places, and its W_O.

    The places: every position with bit 0, every position with bit 1, the row that is read.
    """

    weights: list[arb]
    values: _Balls
    out: arb_mat

    @cached_property
    def floats(self) -> tuple[Array, Array, Array, Array]:
        """Weights and what they are off by (places, 1), values and what they are off by (places, d_head)."""
        (e, e_off), (v, v_off) = _with_radii([self.weights]), _with_radii(self.values)
        return e.T, e_off.T, v, v_off

    @cached_property
    def sums(self) -> Array:
        """The floats e v and, last, e, at every place."""
        e, _, v, _ = self.floats
        return np.concatenate([e * v, e], 1)

    @cached_property
    def rounded(self) -> tuple[float, float, Array]:
        """Error and size of the table in floats, and the columns that products are taken with, one for each place.

        Weights e are off by at most relative * e + 2^-1022, values by relative * sizes; no entry of a value exceeds its
        size. The columns: e times values, e, and e times sizes. The error is infinite above 1/4: floats decide nothing.
        """
        e, e_off, v, v_off = self.floats
        sizes = (np.abs(v) + v_off).max(1, keepdims=True) * (1 + 4 * HALF) + _TINY
        with np.errstate(all="ignore"):
            share = np.where(e > 0, e_off / e, np.where(e_off > 2.0**-1022, np.inf, 0.0)).max()
        relative = 2 * HALF + 2 * max(float(share), float((v_off / sizes).max()))
        columns = e * np.concatenate([v, np.ones_like(e), sizes], 1)
        return relative if relative <= 0.25 else math.inf, float(sizes.max()), columns.T


@dataclass(frozen=True)
class HeadOn:
    """One head on a set of inputs."""

    table: HeadTable
    inputs: Inputs

    def bounds(self, directions: Directions) -> Array:
        """A proved upper bound of <w, p_h> for every direction w; infinite where none was proved."""
        w, bounds = directions.floats, np.full(len(directions.balls), math.inf)
        with np.errstate(all="ignore"):
            guess, theta = self.guesses(w)
            trivial = (self.table.floats[2] @ w.T).max(0)  # an average is at most its largest term
            tries = [(guess + slack * (1 + np.abs(guess)), theta) for slack in _SLACKS]
            tries.append((trivial + _NEAR * (1 + np.abs(trivial)), np.zeros(len(w))))
        for tried, multiplier in tries:
            left = np.flatnonzero(np.isinf(bounds))
            if not len(left):
                break
            held = self.holds(directions, tried, multiplier, left)
            bounds[left[held]] = tried[left[held]]
        return bounds

    def guesses(self, w: Array) -> tuple[Array, Array]:
        """Value and multiplier for every row of w, in floats."""
        free, fixed = self.inputs.places
        sums, counts = self.table.sums, np.array(self.inputs.counts)[:, None]
        heads = Free(sums[None, free], sums[None, fixed].sum(1), *counts)
        parts = [largest(heads, w[None, start : start + _ROWS])[:2] for start in range(0, len(w), _ROWS)]
        values, thetas = (np.nan_to_num(np.concatenate(part, 1)[0]) for part in zip(*parts, strict=True))
        return values, thetas

    def holds(self, directions: Directions, values: Array, thetas: Array, rows: Array) -> Array:
        """Which of these rows' bounds <w, p_h> <= value hold on all the inputs, as G <= 0 shows."""
        holding = np.zeros(len(rows), dtype=bool)
        with np.errstate(all="ignore"):
            for start in range(0, len(rows), _ROWS):
                some = rows[start : start + _ROWS]
                holding[start : start + _ROWS] = self.holds_in_floats(
                    directions.floats[some], directions.off[some], values[some], thetas[some]
                )
        for i in np.flatnonzero(~holding):
            row = rows[i]
            holding[i] = self._holds_in_balls(directions.balls[row], float(values[row]), float(thetas[row]))
        return holding

    def holds_in_floats(self, w: Array, off: Array, values: Array, thetas: Array) -> Array:
        """G <= 0 with a proved bound of all roundings (docs/certificates.md)."""
        (low, high), n = self.inputs.counts, len(self.inputs.free)
        free, fixed = self.inputs.places
        relative, largest_size, columns = self.table.rounded
        unit = 4 * relative + 4 * (w.shape[1] + 8) * HALF
        size = np.abs(w).sum(1)
        rows = np.concatenate([w, (unit * np.abs(values) - values)[:, None], (unit * size + 2 * off)[:, None]], 1)
        above = rows @ columns[:, [*free, *fixed]]
        most = np.maximum(above[:, :n], above[:, n : 2 * n] - thetas[:, None])
        counted = np.maximum(low * thetas, high * thetas)
        total = most.sum(1) + above[:, 2 * n :].sum(1) + counted
        sizes = np.abs(most).sum(1) + np.abs(above[:, 2 * n :]).sum(1) + np.abs(counted)
        tiny = _TINY * (1 + size + off + np.abs(values)) * (1 + largest_size)
        error = 2 * (len(free) + len(fixed) + 8) * HALF * sizes + tiny
        return (total + error < 0) & np.isfinite(total + error) & np.isfinite(values)

    def _holds_in_balls(self, w: Sequence[arb], value: float, theta: float) -> bool:
        """G <= 0 in balls, whose exponents have no end."""
        (low, high), n = self.inputs.counts, len(self.inputs.free)
        free, fixed = self.inputs.places
        if not (math.isfinite(value) and math.isfinite(theta)):
            return False

        def alpha(place: int) -> arb:
            inner = sum((a * b for a, b in zip(w, self.table.values[place], strict=True)), arb(0))
            return self.table.weights[place] * (inner - value)

        zeros, ones = [alpha(place) for place in free[:n]], [alpha(place) - theta for place in free[n:]]
        total = sum(map(arb.max, zeros, ones), arb.max(low * arb(theta), high * arb(theta)))
        return bool(sum(map(alpha, fixed), total) <= 0)

    def box(self, axes: Directions) -> tuple[list[arb], list[arb]]:
        """Middle and half width of every coordinate of p_h, from bounds along the axes and against them."""
        up, down = ([arb(b) for b in half] for half in np.split(self.bounds(axes), 2))
        return [(a - b) / 2 for a, b in zip(up, down, strict=True)], [
            (a + b) / 2 for a, b in zip(up, down, strict=True)
        ]


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


def largest(heads: Free, w: Array, start: Array | None = None) -> tuple[Array, Array, Array]:
    """The largest <w, p> for directions w (heads, rows, d_head), p = sum e_t(c_t) v_t(c_t) / sum e_t(c_t).

    Dinkelbach's iteration, each time from a little above the value reached, so that it cannot stall between layers of
    very different weight. `start`: p of some inputs in the sets.

    Returns:
        A value that the quotient does not exceed (in floats), its multiplier, and a p near it, for each direction.
    """
    n = heads.terms.shape[1] // 2
    gains = heads.terms[:, n:] - heads.terms[:, :n]  # what a 1 in the place of a 0 adds
    rises, mass = w @ gains[..., :-1].swapaxes(1, 2), gains[:, None, :, -1]
    low, high = heads.low[:, None], heads.high[:, None]

    def best(at: Array) -> tuple[Array, Array, Array]:
        picked, theta = _best_bits(rises - at[..., None] * mass, low, high)
        # both bits are summed, as a difference would lose what is small
        sums = np.concatenate([~picked, picked], -1).astype(np.float64) @ heads.terms + heads.fixed[:, None]
        p = sums[..., :-1] / sums[..., -1:]
        return theta, p, (p * w).sum(-1)

    if start is None:  # the mean is of no input: it only says where to look first
        sums = heads.terms.sum(1) + heads.fixed
        start = best(((sums[:, :-1] / sums[:, -1:])[:, None] * w).sum(-1))[1]
    at = (start * w).sum(-1)
    while True:  # every step rises, among finitely many values
        ahead = at + _NEAR * (1 + np.abs(at))
        theta, p, reached = best(ahead)
        rising = reached > ahead
        if not rising.any():
            return ahead, theta, p
        at = np.where(rising, reached, at)


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


def _with_radii(rows: Sequence[Sequence[arb]]) -> tuple[Array, Array]:
    """Midpoints, to within 2^-52 of themselves, and radii."""
    return (
        np.array([[float(ball.mid()) for ball in row] for row in rows]),
        np.array([[float(ball.rad()) for ball in row] for row in rows]),
    )
