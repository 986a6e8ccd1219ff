"""Balls in floats with proved errors, so that most of B1 is a product of matrices (docs/certificates.md proves it)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb

from boundcalc.predictors.data import Array

HALF = 2.0**-52
"""Twice the unit roundoff of a float."""
TINY = 1e-290
"""More than all that a sum loses to underflow."""


class Directions:
    """Rows of balls; the same in floats, and for each row the sum of what its entries are off by at most."""

    def __init__(self, balls: Sequence[Sequence[arb]]) -> None:
        self.balls = balls
        self.floats, off = _with_radii(balls)
        self.off = (off + HALF * np.abs(self.floats)).sum(1)

    def __len__(self) -> int:
        return len(self.balls)

    def part(self, rows: Sequence[int]) -> Directions:
        """Some of the rows."""
        if len(rows) == len(self):
            return self
        part = object.__new__(Directions)
        part.balls, part.floats, part.off = [self.balls[i] for i in rows], self.floats[rows], self.off[rows]
        return part


class RoundedHead:
    """A head in floats: at bits 0, at bits 1, at the row that is read.

    Weights e are off by at most relative * e + 2^-1022, values by relative * sizes; no entry of a value exceeds its
    size.

    Attributes:
        relative: as above; infinite above 1/4, so that floats decide nothing.
        largest: of all sizes.
        columns: e times values, e, and e times sizes; a column for each place.
    """

    def __init__(self, weights: Sequence[arb], values: Sequence[Sequence[arb]]) -> None:
        (e,), (e_off,) = _with_radii([weights])
        v, v_off = _with_radii(values)
        sizes = (np.abs(v) + v_off).max(1) * (1 + 4 * HALF) + TINY
        relative = 2 * HALF + 2 * max(_share(e_off, e), float((v_off.max(1) / sizes).max()))
        self.relative = relative if relative <= 0.25 else np.inf
        self.largest = float(sizes.max())
        self.columns = e * np.concatenate([v.T, np.ones((1, len(sizes))), sizes[None]])


def _with_radii(rows: Sequence[Sequence[arb]]) -> tuple[Array, Array]:
    """Midpoints, to within 2^-52 of themselves, and radii."""
    return (
        np.array([[float(ball.mid()) for ball in row] for row in rows]),
        np.array([[float(ball.rad()) for ball in row] for row in rows]),
    )


def _share(off: Array, of: Array) -> float:
    """The largest quotient; infinite where something is off by more than underflow of nothing."""
    with np.errstate(all="ignore"):
        return float(np.where(of > 0, off / of, np.where(off > 2.0**-1022, np.inf, 0.0)).max())
