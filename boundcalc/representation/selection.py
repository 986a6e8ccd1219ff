"""R1: attention from [CLS] that selects s positions, and the vectors that read what it gathers.

With dual vectors D of the chosen positions (D_i p_j = 1 if i = j, else 0, for chosen i, j) the key vector
(beta/place) sum_i D_i scores beta at every chosen position exactly, and beta w_t elsewhere, w_t = sum_i D_i p_t. All
scores are the same whatever the bits are, so the masses m_t are known constants: only what the other positions carry is
not. Positions that are orthonormal are their own duals, and then w_t = 0 elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boundcalc.representation.encoding import Encoding
from boundcalc.representation.positions import Positions

_KEPT_BITS = 26


def short(x: np.ndarray | float) -> np.ndarray:
    """Rounded to 26 bits: products of two such numbers are exact floats, so outer products have rank one exactly."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=float))
    return np.ldexp(np.round(np.ldexp(mantissa, _KEPT_BITS)), exponent - _KEPT_BITS)


@dataclass(frozen=True)
class Selection:
    """s positions among T."""

    positions: Positions
    chosen: tuple[int, ...]

    @cached_property
    def duals(self) -> np.ndarray:
        """(s, n)."""
        vectors = self.positions.rows(np.asarray(self.chosen))
        return vectors if self.positions.exact else np.linalg.solve(vectors @ vectors.T, vectors)

    @cached_property
    def others(self) -> np.ndarray:
        """Which positions are not chosen, as a mask."""
        mask = np.ones(self.positions.count, dtype=bool)
        mask[list(self.chosen)] = False
        return mask

    @cached_property
    def overlaps(self) -> np.ndarray:
        """D_i p_t for every t, (T, s)."""
        return self.positions.products(self.duals.T)

    @cached_property
    def total(self) -> np.ndarray:
        """sum_i D_i."""
        return self.duals.sum(0)

    def masses(self, beta: float) -> Masses:
        """Softmax masses at a key vector of strength beta."""
        scores = beta * self.overlaps.sum(1)
        scores[list(self.chosen)] = beta
        raw = np.exp(scores - beta)
        rest = math.exp(-beta)
        total = float(raw.sum()) + rest
        return Masses(1 / total, raw / total, rest / total)

    def slack_of_mean(self, beta: float, signs: np.ndarray, *, shared: bool) -> float:
        """How far the mean that is read may be off: what the other positions add, at worst."""
        found = self.masses(beta)
        reading = np.ones(self.positions.count) if shared else np.abs(self.overlaps @ signs)
        return float((found.rows * reading)[self.others].sum() / (len(self.chosen) * found.chosen))

    def slack_of_bits(self, beta: float) -> float:
        """How far a single bit that is read may be off."""
        if self.positions.exact:
            return 0.0
        found = self.masses(beta)
        return float((found.rows[self.others, None] * np.abs(self.overlaps[self.others])).sum(0).max() / found.chosen)


@dataclass(frozen=True)
class Masses:
    """Attention from [CLS]: on each chosen position, on every position, on [CLS]."""

    chosen: float
    rows: np.ndarray
    cls: float


@dataclass(frozen=True)
class Readers:
    """Vectors that read the gathered row, all rounded to 26 bits.

    Attributes:
        bits: (inputs, bit block): give the mean of the literals, or each bit, as +-1 and what leaks in.
        place: in the position block, with
        constant: in the constant coordinate: gives 1.
    """

    bits: np.ndarray
    place: np.ndarray
    constant: float

    @classmethod
    def of(cls, encoding: Encoding, selection: Selection, beta: float, signs: np.ndarray | None) -> Readers:
        """Readers of the mean of literals with these signs, or of the bits (signs None)."""
        masses = selection.masses(beta)
        s = len(selection.chosen)
        unit = 1 / (encoding.bit * masses.chosen)
        if signs is None:
            bits = selection.duals * unit
        elif encoding.shared:
            bits = np.full((1, 1), unit / s * signs[0])
        else:
            bits = (signs @ selection.duals)[None] * (unit / s)
        place, constant = constant_reader(encoding, selection, masses)
        return cls(short(bits), short(place * selection.total), float(short(constant)))


def constant_reader(encoding: Encoding, selection: Selection, masses: Masses) -> tuple[float, float]:
    """The shortest (x, y) for which x sum_i D_i, in the position block, and y, in the constant coordinate, read 1.

    The position block holds place * sum_t m_t w_t in that direction, the constant coordinate constant * (1 - mass of
    [CLS]): both known.
    """
    gathered = encoding.place * float(masses.rows @ selection.overlaps.sum(1))
    length = float(np.linalg.norm(selection.total))
    along, beside = gathered / length, encoding.constant * (1 - masses.cls)
    size = along**2 + beside**2
    return along / (size * length), beside / size
