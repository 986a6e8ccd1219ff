"""B1: proved upper bounds of <w, p_h(x)> over a set of inputs.

Values are guessed, and tested in floats with proved errors.

What these cannot tell is tested in balls.

The inputs: some positions fixed, the others free with `low` to `high` ones among them. For any numbers lambda, theta

    G = sum over fixed t of alpha_t(x_t) + sum over free t of max(alpha_t(0), alpha_t(1) - theta) + max(low theta, high
    theta), alpha_t(c) = e_t(c) (<w, v_t(c)> - lambda);        if G <= 0 then <w, p_h(x)> <= lambda for all these
    inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.quotients import NEAR, Free, largest
from boundcalc.predictors.rules.rounded import HALF, TINY, Directions
from boundcalc.predictors.rules.tables import Balls, FloatTables, HeadTable, Tables

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

    def showing(self, t: int, bit: int) -> Inputs:
        """Those that show this bit."""
        return Inputs(self.T, (*self.fixed, (t, bit)), self.low - bit, self.high - bit)

    @property
    def empty(self) -> bool:
        """Whether no input meets it."""
        return max(self.low, 0) > min(self.high, len(self.free))

    @property
    def counts(self) -> tuple[int, int]:
        """Ones among the free positions."""
        return max(self.low, 0), min(self.high, len(self.free))


@dataclass(frozen=True)
class HeadOn:
    """One head on a set of inputs."""

    table: HeadTable
    floats: FloatTables
    index: int
    inputs: Inputs

    @cached_property
    def columns(self) -> arb_mat:
        """The matrix from rows (w, lambda, theta) to alpha: of bits 0, of bits 1 less theta, of fixed positions."""
        table, free = self.table, self.inputs.free
        own = [(table.own_weight, table.own_value)]
        fixed = [*own, *((table.weights[c][t], table.values[c][t]) for t, c in self.inputs.fixed)]
        by_bit = [[(table.weights[c][t], table.values[c][t]) for t in free] for c in (0, 1)]
        every = [*by_bit[0], *by_bit[1], *fixed]
        rows = [[weight * value[i] for weight, value in every] for i in range(len(table.own_value))]
        rows.append([-weight for weight, _ in every])
        n = len(free)
        rows.append([arb(0)] * n + [arb(-1)] * n + [arb(0)] * len(fixed))
        return arb_mat(rows)

    @cached_property
    def rounded_columns(self) -> Array:
        """The same in floats, for rows (w, -lambda, what <w, v> is off by)."""
        free, T, rounded = np.array(self.inputs.free, dtype=np.int64), self.inputs.T, self.table.rounded
        fixed = [2 * T, *(t + c * T for t, c in self.inputs.fixed)]
        return rounded.columns[:, np.concatenate([free, free + T, fixed])]

    def holds(self, directions: Directions, values: Sequence[float], thetas: Sequence[float]) -> list[bool]:
        """Which of the bounds <w, p_h> <= value hold on all the inputs, as G <= 0 shows: in floats, else in balls."""
        holding = np.zeros(len(directions), dtype=bool)
        values_, thetas_ = np.array(values), np.array(thetas)
        with np.errstate(all="ignore"):
            for start in range(0, len(directions), _ROWS):
                part = slice(start, start + _ROWS)
                holding[part] = self._holds_in_floats(
                    directions.floats[part], directions.off[part], values_[part], thetas_[part]
                )
        for i in np.flatnonzero(~holding).tolist():
            holding[i] = self._holds_in_balls(directions.balls[i], values[i], thetas[i])
        return holding.tolist()

    def _holds_in_floats(self, w: Array, off: Array, values: Array, thetas: Array) -> Array:
        """G <= 0 with a proved bound of all roundings (docs/certificates.md)."""
        low, high = self.inputs.counts
        n, count = len(self.inputs.free), self.rounded_columns.shape[1]
        unit = 4 * self.table.rounded.relative + 4 * (w.shape[1] + 8) * HALF
        size = np.abs(w).sum(1)
        rows = np.concatenate([w, (unit * np.abs(values) - values)[:, None], (unit * size + 2 * off)[:, None]], 1)
        above = rows @ self.rounded_columns
        most = np.maximum(above[:, :n], above[:, n : 2 * n] - thetas[:, None])
        counted = np.maximum(low * thetas, high * thetas)
        total = most.sum(1) + above[:, 2 * n :].sum(1) + counted
        sizes = np.abs(most).sum(1) + np.abs(above[:, 2 * n :]).sum(1) + np.abs(counted)
        tiny = TINY * (1 + size + off + np.abs(values)) * (1 + self.table.rounded.largest)
        error = 2 * (count + 8) * HALF * sizes + tiny
        return (total + error < 0) & np.isfinite(total + error) & np.isfinite(values)

    def _holds_in_balls(self, w: Sequence[arb], value: float, theta: float) -> bool:
        low, high = self.inputs.counts
        n, row = len(self.inputs.free), [*w, arb(value), arb(theta)]
        products = (arb_mat([row]) * self.columns).entries()
        rest = sum(products[2 * n :], arb.max(low * row[-1], high * row[-1]))
        total = sum(map(arb.max, products[:n], products[n : 2 * n]), rest)
        return bool(total <= 0) and math.isfinite(value)

    def bounds(self, directions: Directions) -> list[float]:
        """A proved upper bound of <w, p_h> for every direction w; infinite where none was proved."""
        w = directions.floats
        with np.errstate(all="ignore"):
            guess, theta = self.guesses(w)
        bounds = [math.inf] * len(directions)
        left = list(range(len(directions)))
        for slack in (*_SLACKS, None):
            if slack is None:  # an average is at most its largest term
                with np.errstate(all="ignore"):
                    tried, theta = self._trivial(w), np.zeros(len(w))
            else:
                tried = guess + slack * (1 + np.abs(guess))
            values = [float(tried[i]) for i in left]
            held = self.holds(directions.part(left), values, [float(theta[i]) for i in left])
            for i, value, good in zip(left, values, held, strict=True):
                bounds[i] = value if good else math.inf
            left = [i for i, good in zip(left, held, strict=True) if not good]
            if not left:
                break
        return bounds

    def guesses(self, w: Array) -> tuple[Array, Array]:
        """Value and multiplier for every row of w, in floats."""
        (low, high), h = self.inputs.counts, self.index
        terms, others = (array[h : h + 1] for array in self.floats.terms(self.inputs.free, self.inputs.fixed))
        heads, pairs = Free(terms, others, np.array([low]), np.array([high])), list[tuple[Array, Array]]()
        for start in range(0, len(w), _ROWS):
            part = largest(heads, w[None, start : start + _ROWS])
            pairs.append((part.value[0], part.theta[0]))
        values, thetas = (np.concatenate(array) for array in zip(*pairs, strict=True))
        return np.where(np.isfinite(values), values, 0.0), np.where(np.isfinite(thetas), thetas, 0.0)

    def _trivial(self, w: Array) -> Array:
        f, h = self.floats, self.index
        most = np.maximum((f.v[h].reshape(-1, w.shape[1]) @ w.T).max(0), f.own_v[h] @ w.T)
        return most + NEAR * (1 + np.abs(most))

    def box(self, units: Directions) -> tuple[list[arb], list[arb]]:
        """Middle and half width of every coordinate of p_h, from bounds along the axes and against them."""
        both = [arb(b) for b in self.bounds(units)]
        up, down = both[: len(both) // 2], both[len(both) // 2 :]
        return [(a - b) / 2 for a, b in zip(up, down, strict=True)], [
            (a + b) / 2 for a, b in zip(up, down, strict=True)
        ]


def heads_on(tables: Tables, inputs: Inputs) -> list[HeadOn]:
    """Every head on a set of inputs."""
    return [HeadOn(table, tables.floats, h, inputs) for h, table in enumerate(tables.heads)]


def transposed(matrix: Balls) -> Balls:
    """Rows and columns exchanged."""
    return [list(row) for row in zip(*matrix, strict=True)]
