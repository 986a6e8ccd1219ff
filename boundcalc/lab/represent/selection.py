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
from typing import Protocol

import numpy as np

from boundcalc.base.errors import NoSolution
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.lab.represent.positions import Positions

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
        place, constant = _constant_reader(encoding, selection, masses)
        return cls(short(bits), short(place * selection.total), float(short(constant)))


def _constant_reader(encoding: Encoding, selection: Selection, masses: Masses) -> tuple[float, float]:
    """The shortest (x, y) for which x sum_i D_i, in the position block, and y, in the constant coordinate, read 1.

    The position block holds place * sum_t m_t w_t in that direction, the constant coordinate constant * (1 - mass of
    [CLS]): both known.
    """
    gathered = encoding.place * float(masses.rows @ selection.overlaps.sum(1))
    length = float(np.linalg.norm(selection.total))
    along, beside = gathered / length, encoding.constant * (1 - masses.cls)
    size = along**2 + beside**2
    return along / (size * length), beside / size


class View(Protocol):
    """What tuning needs to know of a selection.

    Attributes:
        s: bits that are chosen.
        seq_len: T.
        by_mean: whether the mean of the literals is read, or the bits one by one.
        slackless: whether nothing leaks into what is read.
        reading: |sum_i a_i r_i| <= |reading a| for readers r_i of an amplitude and mass of 1, (inputs, inputs).
        total: at least |sum_i D_i|.
    """

    s: int
    seq_len: int
    by_mean: bool
    slackless: bool
    reading: np.ndarray
    total: float

    def slack(self, beta: float) -> float:
        """How far an input that is read may be off: what the other positions add, at worst."""
        ...

    def gathered(self, beta: float) -> tuple[float, float, float]:
        """At least: the mass of a chosen position; sum_t m_t w_t / |sum_i D_i|; the mass of all rows but [CLS]."""
        ...


class Selected:
    """One selection, and which literals are read."""

    def __init__(self, selection: Selection, *, shared: bool, signs: np.ndarray | None) -> None:
        self.selection, self.shared, self.signs = selection, shared, signs
        self.s, self.seq_len = len(selection.chosen), selection.positions.count
        self.by_mean = signs is not None
        self.slackless = (not shared and selection.positions.exact) or not selection.others.any()
        self.total = float(np.linalg.norm(selection.total))
        self._known: dict[float, tuple[float, float, float]] = {}
        if signs is None:
            self.reading = np.linalg.cholesky(selection.duals @ selection.duals.T).T
        else:
            size = 1.0 if shared else float(np.linalg.norm(signs @ selection.duals))
            self.reading = np.array([[size / self.s]])

    def slack(self, beta: float) -> float:
        if self.slackless:
            return 0.0
        selection, masses = self.selection, self.selection.masses(beta)
        if self.signs is None:
            added = masses.rows[selection.others, None] * np.abs(selection.overlaps[selection.others])
            return float(added.sum(0).max() / masses.chosen)
        reading = 1.0 if self.shared else np.abs(selection.overlaps @ self.signs)
        return float((masses.rows * reading)[selection.others].sum() / (self.s * masses.chosen))

    def gathered(self, beta: float) -> tuple[float, float, float]:
        if beta not in self._known:
            masses = self.selection.masses(beta)
            along = float(masses.rows @ self.selection.overlaps.sum(1)) / self.total
            self._known[beta] = masses.chosen, along, 1 - masses.cls
        return self._known[beta]


class AnySelection:
    """Every selection of s among T positions of a coherence xi at once (0: orthonormal), by what xi allows.

    With G the Gram matrix of the chosen positions, |G - I| <= (s-1) xi in every row, so with mu = 1 - (s-1) xi: G^-1 has
    spectral norm and row sums at most 1/mu. Hence |sum a_i D_i|^2 = a G^-1 a <= |a|^2/mu, |D_i p_t| <= xi/mu and
    |w_t| <= s xi/mu for t that is not chosen.
    """

    def __init__(self, s: int, seq_len: int, coherence: float, *, shared: bool, by_mean: bool) -> None:
        self.s, self.seq_len, self.shared, self.by_mean = s, seq_len, shared, by_mean
        self.coherence = coherence
        self.mu = 1 - (s - 1) * coherence
        self.overlap = s * coherence / self.mu
        if self.mu <= 0 or self.overlap >= 1:
            raise NoSolution(f"a coherence of {coherence:g} is too large to select any s = {s} positions")
        self.slackless = seq_len == s or (not shared and coherence == 0)
        self.total = math.sqrt(s / self.mu)
        size = 1.0 if shared and by_mean else 1 / math.sqrt(self.mu)
        self.reading = np.array([[size if shared else size * math.sqrt(s)]]) / s if by_mean else size * np.eye(s)

    def slack(self, beta: float) -> float:
        if self.slackless:
            return 0.0
        reading = 1 / self.s if self.shared else self.coherence / self.mu
        return (self.seq_len - self.s) * math.exp(-beta * (1 - self.overlap)) * reading

    def gathered(self, beta: float) -> tuple[float, float, float]:
        others = self.seq_len - self.s
        off = others * math.exp(-beta * (1 - self.overlap))
        chosen = 1 / (self.s + off + math.exp(-beta))
        weighted = max(0.0, chosen * (self.s - off * self.overlap))
        cls = math.exp(-beta) / (self.s + math.exp(-beta) * (1 + others * math.exp(-beta * self.overlap)))
        return chosen, weighted / self.total, 1 - cls
