"""Explicit weights of the class the calculus bounds, as NumPy arrays, and what they compute.

One block is Pi_1(relu(Pi_1(attention)) W_1) with every head's scores of rank one; the row of [CLS] is read out. Widths
may differ from layer to layer; padded with zeros they are those of style "edelman", and no norm changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from boundcalc.base.errors import CertificateError
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.norms.limits import every, explicit
from boundcalc.norms.matrix import outer, vector
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Layer,
    Linear,
    Norms,
    Pool,
    Sample,
    Setting,
)


def block_layers(d: int, k: int, out: int, index: int = 0, heads: int = 1) -> tuple[Layer, ...]:
    """Pi_1(relu(Pi_1(attention)) W_1): rows of width d, k hidden units, `out` outputs, scores of rank one."""
    return (
        Attention(d=d, heads=heads, d_head=1, d_value=k, block=index),
        Ball(1.0),
        Activation("relu"),
        Linear("W_1", k, out, block=index),
        Ball(1.0),
    )


def read_layers(width: int) -> tuple[Layer, ...]:
    """The row of [CLS], read by a vector."""
    return (Pool("cls"), Linear("readout", width, 1))


@dataclass(frozen=True)
class Block:
    """The weights of one block; maps act on rows, x -> x W.

    Attributes:
        w_q: (heads, d): W_QK of head h is the outer product of w_q[h] and w_k[h].
        w_k: (heads, d).
        w_v: (heads, d, k).
        w_1: (k, out).
    """

    w_q: np.ndarray
    w_k: np.ndarray
    w_v: np.ndarray
    w_1: np.ndarray

    @property
    def heads(self) -> int:
        """H."""
        return len(self.w_q)

    def layers(self, index: int) -> tuple[Layer, ...]:
        """The primitive layers it consists of."""
        d, k = self.w_v.shape[1:]
        return block_layers(d, k, self.w_1.shape[1], index, self.heads)

    def budgets(self, index: int) -> dict[str, Budget]:
        """Every norm of every matrix, rounded up."""
        found = {f"W_1[{index}]": explicit(self.w_1)}
        for head in range(self.heads):
            where = f"[{index},{head}]" if self.heads > 1 else f"[{index}]"
            found["W_QK" + where] = every(outer(vector(self.w_q[head]), vector(self.w_k[head])))
            found["W_V" + where] = explicit(self.w_v[head])
        return found


@dataclass(frozen=True)
class Network:
    """An encoding of bits as rows, blocks, and a read-out vector."""

    encoding: Encoding
    blocks: tuple[Block, ...]
    readout: np.ndarray

    @property
    def seq_len(self) -> int:
        """Bits per sequence (the rows are one more: [CLS])."""
        return self.encoding.seq_len

    @cached_property
    def architecture(self) -> Architecture:
        """The class of networks of these shapes."""
        layers = [layer for index, block in enumerate(self.blocks) for layer in block.layers(index)]
        layers += read_layers(len(self.readout))
        return Architecture(seq_len=self.seq_len + 1, layers=tuple(layers), input_radius=1.0, depth=len(self.blocks))

    @cached_property
    def norms(self) -> Norms:
        """The norms of the weights, rounded up, as budgets."""
        found: dict[str, Budget] = {}
        for index, block in enumerate(self.blocks):
            found |= block.budgets(index)
        found["readout"] = explicit(self.readout[:, None])
        return Norms(budgets=found)

    def require(self, *heads: int) -> None:
        """Refuse, before anything is certified, other blocks than these, outputs that are not read, and NaN."""
        found = tuple(block.heads for block in self.blocks)
        if found != heads:
            raise CertificateError(f"this certificate covers blocks of {list(heads)} heads, got {list(found)}")
        widths = (self.encoding.width, *(block.w_1.shape[1] for block in self.blocks))
        for block, width in zip(self.blocks, widths, strict=False):
            h, k = block.heads, block.w_1.shape[0]
            if (block.w_q.shape, block.w_k.shape, block.w_v.shape) != ((h, width), (h, width), (h, width, k)):
                raise CertificateError(f"the shapes of a block's weights do not fit rows of width {width}")
        if self.readout.shape != widths[-1:]:
            raise CertificateError(f"the read-out must have shape {widths[-1:]}, got {self.readout.shape}")
        for name, array in self.weights().items():
            if not np.isfinite(array).all():
                raise CertificateError(
                    f"{name} must be finite, got {int((~np.isfinite(array)).sum())} entries that are not"
                )

    def setting(self, margin: float = 1.0, **sample: Any) -> Setting:
        """The question what learning takes in the class with these budgets, at this margin."""
        return Setting(self.architecture, self.norms, Sample(margin=margin, **sample))

    def weights(self) -> dict[str, np.ndarray]:
        """Arrays by the names of the layers' weights: "W_Q[0]", "W_K[0]", "W_V[0]", "W_1[0]", "readout".

        Heads come first, then the map as it acts on rows, x -> x W.
        """
        out: dict[str, np.ndarray] = {}
        for index, block in enumerate(self.blocks):
            out[f"W_Q[{index}]"], out[f"W_K[{index}]"] = block.w_q[..., None], block.w_k[..., None]
            out[f"W_V[{index}]"], out[f"W_1[{index}]"] = block.w_v, block.w_1
        return out | {"readout": self.readout[:, None]}

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Scores (n,) of rows (n, T + 1, d): every layer on every row, as written."""
        for block in self.blocks:
            rows = _block(block, rows)
        return rows[:, 0] @ self.readout

    def scores(self, bits: np.ndarray, chunk: int = 1 << 13) -> np.ndarray:
        """Scores (n,) of bits (n, T). One block is computed without writing rows out: the same values, for long sequences."""
        bits = np.asarray(bits)
        if len(self.blocks) == 1:
            return self.read(self.values(bits))
        rows_at_once = max(1, min(chunk, 2 * 10**7 // ((self.seq_len + 1) * self.encoding.width)))
        parts = [
            self.forward(self.encoding.rows(bits[start : start + rows_at_once]))
            for start in range(0, len(bits), rows_at_once)
        ]
        return np.concatenate(parts)

    def values(self, bits: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """The attention output of [CLS] in the first block, (n, k); bits that reach no unit are skipped."""
        base, change = self.linear
        seen = np.flatnonzero(change.any(1))
        if 2 * len(seen) < len(change):
            bits, change = bits[:, seen], change[seen]
        return bits.astype(dtype, copy=False) @ change.astype(dtype) + base.astype(dtype)

    def read(self, values: np.ndarray) -> np.ndarray:
        """Scores (n,) from the attention output of [CLS] in the only block, (n, k)."""
        return _clip_rows(np.maximum(_clip_rows(values), 0.0) @ self.blocks[0].w_1) @ self.readout

    @cached_property
    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """The attention output of [CLS] in the first block as base + bits @ change: scores must not depend on bits."""
        encoding, block = self.encoding, self.blocks[0]
        base, change = np.zeros(block.w_v.shape[2]), np.zeros((self.seq_len, block.w_v.shape[2]))
        products = encoding.positions.products
        for w_q, w_k, w_v in zip(block.w_q, block.w_k, block.w_v, strict=True):
            if np.any(w_k[encoding.bit_block]):
                raise ValueError("scores depend on the bits: use forward")
            scores = (
                products(w_k[encoding.place_block]) * encoding.place + encoding.constant * w_k[encoding.constant_index]
            )
            scores = w_q[encoding.cls_index] * np.concatenate([[w_k[encoding.cls_index]], scores])
            masses = np.exp(scores - scores.max())
            masses /= masses.sum()
            one = encoding.bit * (
                np.broadcast_to(w_v[encoding.bit_block], (self.seq_len, w_v.shape[1]))
                if encoding.shared
                else products(w_v[encoding.bit_block])
            )
            same = (
                encoding.place * products(w_v[encoding.place_block]) + encoding.constant * w_v[encoding.constant_index]
            )
            base += masses[1:] @ (same - one) + masses[0] * w_v[encoding.cls_index]
            change += masses[1:, None] * 2 * one
        return base, change

    def with_keys(self, factor: float) -> Network:
        """The same network with W_QK of every block scaled: beta raised or lowered."""
        return replace(self, blocks=tuple(replace(block, w_k=block.w_k * factor) for block in self.blocks))


def _clip_rows(rows: np.ndarray) -> np.ndarray:
    """Projection of every row onto the unit ball."""
    size = np.sqrt((rows**2).sum(-1, keepdims=True))
    return rows / np.maximum(size, 1.0)


def _block(block: Block, rows: np.ndarray) -> np.ndarray:
    out = np.zeros((*rows.shape[:-1], block.w_v.shape[2]))
    for w_q, w_k, w_v in zip(block.w_q, block.w_k, block.w_v, strict=True):
        scores = (rows @ w_q)[..., :, None] * (rows @ w_k)[..., None, :]
        masses = np.exp(scores - scores.max(-1, keepdims=True))
        masses /= masses.sum(-1, keepdims=True)
        out += masses @ (rows @ w_v)
    return _clip_rows(np.maximum(_clip_rows(out), 0.0) @ block.w_1)
