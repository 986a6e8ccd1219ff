"""B1: proved upper bounds of <w, p_h(x)> over a set of inputs. Values are guessed in floats and tested in balls.

The inputs: some positions fixed, the others free with `low` to `high` ones among them. For any numbers lambda, theta

    G = sum over fixed t of alpha_t(x_t) + sum over free t of max(alpha_t(0), alpha_t(1) - theta) + max(low theta, high theta),
    alpha_t(c) = e_t(c) (<w, v_t(c)> - lambda);        if G <= 0 then <w, p_h(x)> <= lambda for all these inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.quotients import NEAR, largest
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
        """The matrix that takes rows (w, lambda, theta) to alpha: of bits 0, of bits 1 less theta, of fixed positions."""
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

    def holds(
        self, directions: Sequence[Sequence[arb]], values: Sequence[float], thetas: Sequence[float]
    ) -> list[bool]:
        """Which of the bounds <w, p_h> <= value hold on all the inputs, as G <= 0 shows."""
        low, high = self.inputs.counts
        n, found = len(self.inputs.free), list[bool]()
        for start in range(0, len(directions), _ROWS):
            part = slice(start, start + _ROWS)
            rows = [
                [*w, arb(value), arb(theta)]
                for w, value, theta in zip(directions[part], values[part], thetas[part], strict=True)
            ]
            alphas = arb_mat(rows) * self.columns
            width, entries = alphas.ncols(), alphas.entries()
            for i, row in enumerate(rows):
                each = entries[i * width : (i + 1) * width]
                theta = row[-1]
                total = sum(
                    map(arb.max, each[:n], each[n : 2 * n]), sum(each[2 * n :], arb.max(low * theta, high * theta))
                )
                found.append(bool(total <= 0) and math.isfinite(values[start + i]))
        return found

    def bounds(self, directions: Sequence[Sequence[arb]]) -> list[float]:
        """A proved upper bound of <w, p_h> for every direction w; infinite where none was proved."""
        w = np.array([[float(each.mid()) for each in row] for row in directions])
        with np.errstate(all="ignore"):
            guess, theta = self.guesses(w)
        found = [math.inf] * len(directions)
        left = list(range(len(directions)))
        for slack in (*_SLACKS, None):
            if slack is None:  # an average is at most its largest term
                with np.errstate(all="ignore"):
                    tried, theta = self._trivial(w), np.zeros(len(w))
            else:
                tried = guess + slack * (1 + np.abs(guess))
            values = [float(tried[i]) for i in left]
            held = self.holds([directions[i] for i in left], values, [float(theta[i]) for i in left])
            for i, value, good in zip(left, values, held, strict=True):
                found[i] = value if good else math.inf
            left = [i for i, good in zip(left, held, strict=True) if not good]
            if not left:
                break
        return found

    def guesses(self, w: Array) -> tuple[Array, Array]:
        """Value and multiplier for every row of w, in floats."""
        e, v, num, den = self.terms
        low, high = self.inputs.counts
        values, thetas = np.empty(len(w)), np.empty(len(w))
        for start in range(0, len(w), _ROWS):
            part = slice(start, start + _ROWS)
            y = np.einsum("nci,ri->rnc", v, w[part])
            found = largest(e, y, w[part] @ num, np.full(len(w[part]), den), low, high)
            values[part], thetas[part] = found.value, found.theta
        return np.where(np.isfinite(values), values, 0.0), np.where(np.isfinite(thetas), thetas, 0.0)

    @cached_property
    def terms(self) -> tuple[Array, Array, Array, float]:
        """Floats: e (n, 2) and v (n, 2, d_head) of the free positions, numerator and denominator of the fixed ones."""
        f, h, free = self.floats, self.index, self.inputs.free
        weights = [f.own_e[h], *(f.e[h, t, c] for t, c in self.inputs.fixed)]
        rows = [f.own_v[h], *(f.v[h, t, c] for t, c in self.inputs.fixed)]
        num = np.array(weights) @ np.array(rows)
        return f.e[h][free], f.v[h][free], num, float(np.sum(weights))

    def _trivial(self, w: Array) -> Array:
        f, h = self.floats, self.index
        most = np.maximum((f.v[h].reshape(-1, w.shape[1]) @ w.T).max(0), f.own_v[h] @ w.T)
        return most + NEAR * (1 + np.abs(most))

    def box(self) -> tuple[list[arb], list[arb]]:
        """Middle and half width of every coordinate of p_h."""
        width = len(self.table.own_value)
        unit = [[arb(int(i == j)) for j in range(width)] for i in range(width)]
        both = [arb(b) for b in self.bounds([*unit, *([-one for one in row] for row in unit)])]
        up, down = both[:width], both[width:]
        return [(a - b) / 2 for a, b in zip(up, down, strict=True)], [
            (a + b) / 2 for a, b in zip(up, down, strict=True)
        ]


def heads_on(tables: Tables, inputs: Inputs) -> list[HeadOn]:
    """Every head on a set of inputs."""
    return [HeadOn(table, tables.floats, h, inputs) for h, table in enumerate(tables.heads)]


def transposed(matrix: Balls) -> Balls:
    """Rows and columns exchanged."""
    return [list(row) for row in zip(*matrix, strict=True)]
