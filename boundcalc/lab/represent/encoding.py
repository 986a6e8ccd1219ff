"""How a bit at a position becomes a row of norm at most 1: a fixed map, chosen before any data.

Row t holds place * p_t, a bit +-1 times `bit`, and `constant`. With `shared` the bit sits in one coordinate, the same for
all positions; else it multiplies the position vector in a second block, so that positions keep their bits apart. Row 0 is
[CLS]: a unit vector of a coordinate of its own, which asks the one query that is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import certainly_le
from boundcalc.lab.represent.positions import Positions


@dataclass(frozen=True)
class Encoding:
    """The rows of T bits.

    Attributes:
        positions: T position vectors of norm at most 1.
        shared: whether all bits share one coordinate.
        place: amplitude of the position.
        bit: amplitude of the bit.
        constant: amplitude of the constant coordinate.
    """

    positions: Positions
    shared: bool
    place: float
    bit: float
    constant: float

    def __post_init__(self) -> None:
        if not certainly_le(self.norm_squared, arb(1)):
            raise InvalidSetting(f"rows must have norm at most 1, got {float(self.norm_squared.upper()) ** 0.5:.17g}")

    @classmethod
    def of(cls, positions: Positions, shared: bool, place: float, bit: float, constant: float) -> Encoding:
        """Amplitudes in the given proportion, as large as norm 1 allows."""
        size = math.sqrt(place**2 + bit**2 + constant**2)
        shrink = (1 - 2.0**-50) / size
        return cls(positions, shared, place * shrink, bit * shrink, constant * shrink)

    @property
    def norm_squared(self) -> arb:
        """An enclosure of the largest squared norm of a row (positions have norm at most 1)."""
        return arb(self.place) ** 2 + arb(self.bit) ** 2 + arb(self.constant) ** 2

    @property
    def seq_len(self) -> int:
        """Bits."""
        return self.positions.count

    @property
    def place_block(self) -> slice:
        """Coordinates of the position."""
        return slice(0, self.positions.width)

    @property
    def bit_block(self) -> slice:
        """Coordinates of the bit."""
        start = self.positions.width
        return slice(start, start + (1 if self.shared else self.positions.width))

    @property
    def constant_index(self) -> int:
        """The constant coordinate."""
        return self.bit_block.stop

    @property
    def cls_index(self) -> int:
        """The coordinate of [CLS]."""
        return self.bit_block.stop + 1

    @property
    def width(self) -> int:
        """D."""
        return self.bit_block.stop + 2

    def rows(self, bits: np.ndarray) -> np.ndarray:
        """The rows (n, T + 1, d) of sequences of bits (n, T), as a network reads them: large, for short sequences."""
        bits = np.asarray(bits)
        if bits.ndim != 2 or bits.shape[1] != self.seq_len:
            raise InvalidSetting(f"need an array of {self.seq_len} bits per row, got shape {bits.shape}")
        signs = 2.0 * bits - 1
        vectors = self.positions.rows(np.arange(self.seq_len))
        out = np.zeros((len(bits), self.seq_len + 1, self.width))
        out[:, 1:, self.place_block] = self.place * vectors
        out[:, 1:, self.bit_block] = self.bit * signs[..., None] * (1.0 if self.shared else vectors)
        out[:, 1:, self.constant_index] = self.constant
        out[:, 0, self.cls_index] = 1.0
        return out

    def to_json(self) -> dict[str, Any]:
        """What is needed, beside the signs of compact positions, to make the rows again."""
        return {
            "positions": "orthonormal" if self.positions.exact else "dual BCH",
            "T": self.seq_len,
            "dimension": self.positions.width,
            "scale": self.positions.scale,
            "coherence": self.positions.coherence,
            "shared": self.shared,
            "place": self.place,
            "bit": self.bit,
            "constant": self.constant,
        }
