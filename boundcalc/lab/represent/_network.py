"""A network of the class the calculus bounds, as NumPy arrays: one block, one head, rows of bits, [CLS] read.

The network is F = clip(relu(Pi_1(attention)) W_1), with a read-out of 1 and scores of rank one. Padded with zeros its
widths are those of style "edelman", and no norm changes. Row t of the input holds `place` in coordinate t, the bit +-1
times `bit` and `constant`; with `shared` all bits sit in one coordinate, else each bit has a coordinate of its own. Row
0 is [CLS]: a unit vector of a coordinate of its own, which asks the one query that is read. The encoding is fixed
before any data.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import certainly_le
from boundcalc.base.output import safetensors_name, write_bytes
from boundcalc.norms.limits import every, explicit
from boundcalc.norms.matrix import outer, vector
from boundcalc.setting import Activation, Architecture, Attention, Ball, Linear, Norms, Pool, Sample, Setting


@dataclass(frozen=True)
class Encoding:
    """The rows of T bits.

    Attributes:
        seq_len: T.
        shared: whether all bits share one coordinate.
        place: amplitude of the position.
        bit: amplitude of the bit.
        constant: amplitude of the constant coordinate.
    """

    seq_len: int
    shared: bool
    place: float
    bit: float
    constant: float

    def __post_init__(self) -> None:
        squared = arb(self.place) ** 2 + arb(self.bit) ** 2 + arb(self.constant) ** 2
        if not certainly_le(squared, arb(1)):
            raise InvalidSetting(f"rows must have norm at most 1, got {float(squared.upper()) ** 0.5:.17g}")

    @classmethod
    def of(cls, seq_len: int, shared: bool, place: float, bit: float, constant: float) -> Encoding:
        """Amplitudes in the given proportion, as large as norm 1 allows."""
        shrink = (1 - 2.0**-50) / math.sqrt(place**2 + bit**2 + constant**2)
        return cls(seq_len, shared, place * shrink, bit * shrink, constant * shrink)

    @property
    def place_block(self) -> slice:
        """Coordinates of the position."""
        return slice(0, self.seq_len)

    @property
    def bit_block(self) -> slice:
        """Coordinates of the bits."""
        return slice(self.seq_len, self.seq_len + (1 if self.shared else self.seq_len))

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
        """Coordinates of a row (d)."""
        return self.bit_block.stop + 2


@dataclass(frozen=True)
class Network:
    """The weights; maps act on rows, x -> x W.

    Attributes:
        encoding: how bits become rows.
        w_q: (d,); W_QK is the outer product of w_q and w_k.
        w_k: (d,).
        w_v: (d, k).
        w_1: (k, 1).
    """

    encoding: Encoding
    w_q: np.ndarray
    w_k: np.ndarray
    w_v: np.ndarray
    w_1: np.ndarray

    @property
    def seq_len(self) -> int:
        """Bits per sequence (the rows are one more: [CLS])."""
        return self.encoding.seq_len

    @cached_property
    def architecture(self) -> Architecture:
        """The class of networks of these shapes."""
        d, k = self.w_v.shape
        attention = Attention(d=d, heads=1, d_head=1, d_value=k, block=0)
        block = (attention, Ball(1.0), Activation("relu"), Linear("W_1", k, 1, block=0), Ball(1.0))
        layers = (*block, Pool("cls"), Linear("readout", 1, 1))
        return Architecture(seq_len=self.seq_len + 1, layers=layers, input_radius=1.0, depth=1)

    @cached_property
    def norms(self) -> Norms:
        """The norms of the weights, rounded up, as budgets."""
        budgets = {
            "W_1[0]": explicit(self.w_1),
            "W_QK[0]": every(outer(vector(self.w_q), vector(self.w_k))),
            "W_V[0]": explicit(self.w_v),
            "readout": explicit(np.ones((1, 1))),
        }
        return Norms(budgets=budgets)

    def setting(self, margin: float = 1.0, **sample: Any) -> Setting:
        """The question what learning takes in the class with these budgets, at this margin."""
        return Setting(self.architecture, self.norms, Sample(margin=margin, **sample))

    def weights(self) -> dict[str, np.ndarray]:
        """Arrays by the names of the layers' weights; heads come first, then the map as it acts on rows, x -> x W."""
        return {
            "W_Q[0]": self.w_q[None, :, None],
            "W_K[0]": self.w_k[None, :, None],
            "W_V[0]": self.w_v[None],
            "W_1[0]": self.w_1,
            "readout": np.ones((1, 1)),
        }

    def save(self, path: Path | str, about: dict[str, Any], *, force: bool = False) -> None:
        """Write the weights, the encoding and the architecture as safetensors."""
        from safetensors.numpy import save

        safetensors_name(path)
        weights = {name: np.ascontiguousarray(array, np.float64) for name, array in self.weights().items()}
        metadata = {
            "format": "boundcalc-model/1",
            "architecture": json.dumps(self.architecture.to_json()),
            "encoding": json.dumps(asdict(self.encoding)),
            "represents": json.dumps(about),
        }
        write_bytes(path, save(weights, metadata), force=force)
