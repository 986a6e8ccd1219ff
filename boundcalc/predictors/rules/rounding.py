"""How far a float32 forward pass is from the real-number function, for all inputs of a leaf at once.

The pass: tables, queries, keys and values row by row, scores, softmax (exp of scores less their largest, divided by the
sum), W_O, residual, W_1, activation, W_2, residual, read-out, and normalisations. Every operation rounds to nearest,
sums are in any order and may be fused, exp has a relative and erf an absolute error of at most 2^-20 (torch's are below
2^-22); of normalisations see `_kernel`. docs/certificates.md proves it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.setting import Architecture

_UNIT = 2.0**-24
_LIBRARY = 2.0**-20
_TINY = 2.0**-120
"""More than what a sum loses to underflow."""
_SLOPE = 1.13
"""Of GELU, at most."""
_DIP = 0.17
"""GELU is above its negative."""
_LARGEST = 1e30
"""Below it no float32 overflows."""
_OWN = 1.01
"""Covers the rounding of this calculation in float64."""


@dataclass(frozen=True)
class OnLeaf:
    """What is proved on the inputs of a leaf of a network with normalisation, in real numbers.

    Attributes:
        scale: the largest of the first normalisation.
        reach: sizes of what hidden units read of r, and of the coordinates of C r.
        z: sizes of the inputs of hidden units.
        top: their largest values.
        total: +-F is at least this.
        behind: sizes of coordinates whose vector is at least as long as C y, y the row before the read-out.
        last: the offset of +-f.
        value: +-f is at least this.
    """

    scale: float
    reach: Array
    z: Array
    top: Array
    total: float
    behind: Array
    last: float
    value: float


class Float32Pass:
    """The pass up to the row r behind the attention, for all inputs at once.

    Attributes:
        off: of every coordinate of r, without what the weights of attention are off by.
        size: of every coordinate of r in the pass.
        turned: for each head the total variation that its weights are off by, its values, and W_O of the head.
    """

    def __init__(self, architecture: Architecture, weights: Mapping[str, Array]) -> None:
        a = self.architecture = architecture
        w = self.w = {name: value.astype(np.float64) for name, value in weights.items()}
        bits = w["embedding"][:2, None] + w["positions"][None, 1:]
        rows = np.concatenate([w["embedding"][2:] + w["positions"][:1], *bits])  # the row that is read, bits 0, bits 1
        off = _UNIT * np.abs(rows)
        self.rho, first_off, first_size = rows[0] + w["b_O[0]"], off[0], np.abs(rows[0])
        if a.normalisation != "none" and a.style == "pre":
            rows, off = self._normalised(rows, off)
        out = w["W_O[0]"].reshape(a.heads, -1, a.d)
        self.turned: list[tuple[float, Array, Array]] = []
        pooled, pooled_off, self.largest = [], [], 0.0
        for h in range(a.heads):
            q, dq = _affine(rows[:1], off[:1], w["W_Q[0]"][h], w["b_Q[0]"][h])
            k, dk = _affine(rows, off, w["W_K[0]"][h], w["b_K[0]"][h])
            v, dv = _affine(rows, off, w["W_V[0]"][h], w["b_V[0]"][h])
            scores = (k @ q[0]) / math.sqrt(a.head_width)
            sizes = (np.abs(k) + dk) @ (np.abs(q[0]) + dq[0])
            ds = dk @ np.abs(q[0]) + (np.abs(k) + dk) @ dq[0] + _gamma(a.head_width + 3) * sizes
            ds = ds / math.sqrt(a.head_width)
            self.largest = max(self.largest, float(sizes.max()))
            spread = scores.max() - scores.min() + 2 * ds.max()
            # weights whose logarithms are off by at most e are off by tanh(e / 2) in total variation
            log_off = float(ds.max() + _UNIT * spread + 1.01 * _LIBRARY)
            self.turned.append((math.tanh(log_off / 2) + a.seq_len * _TINY, v, out[h]))
            pooled.append((np.abs(v) + dv).max(0))
            pooled_off.append(dv.max(0) + _gamma(2 * a.seq_len + 6) * pooled[-1] + _TINY)
        p, dp = np.concatenate(pooled), np.concatenate(pooled_off)
        mixed = p @ np.abs(w["W_O[0]"]) + np.abs(w["b_O[0]"]) + first_size
        self.off = dp @ np.abs(w["W_O[0]"]) + first_off + _gamma(a.d + 3) * mixed + _TINY
        self.size = mixed + self.off

    @classmethod
    def of(cls, architecture: Architecture, weights: Mapping[str, Array]) -> Float32Pass | None:
        """The pass; None where the weights are no float32 numbers or where something may overflow."""
        if not weights or any(not np.array_equal(v, v.astype(np.float32)) for v in weights.values()):
            return None
        result = cls(architecture, weights)
        return result if result.largest < _LARGEST and float((result.size**2).sum()) < _LARGEST else None

    def moved(self, columns: Array) -> Array:
        """How far <w, r> is off at most, for every column w."""
        shift = self.off @ np.abs(columns)
        for share, v, out in self.turned:
            seen = v @ (out @ columns)
            shift = shift + share * (seen.max(0) - seen.min(0))
        return _OWN * shift

    @cached_property
    def away(self) -> float:
        """How far r is off at most, as a vector."""
        distance = float(np.linalg.norm(self.off))
        for share, v, out in self.turned:
            seen = v @ out
            distance += 2 * share * float(np.linalg.norm(seen - (seen.max(0) + seen.min(0)) / 2, axis=1).max())
        return _OWN * distance

    def everywhere(self) -> float:
        """How far the output of a network without normalisation is off at most."""
        w, a = self.w, self.architecture
        low = high = self.rho @ w["W_1[0]"] + w["b_1[0]"]
        for _, v, out in self.turned:
            seen = v @ (out @ w["W_1[0]"])
            low, high = low + seen.min(0), high + seen.max(0)
        dz = self.moved(w["W_1[0]"]) + _gamma(a.d + 1) * (self.size @ np.abs(w["W_1[0]"]) + np.abs(w["b_1[0]"])) + _TINY
        z = np.maximum(np.abs(low), np.abs(high)) + dz
        y = self.size + z @ np.abs(w["W_2[0]"]) + np.abs(w["b_2[0]"])  # |phi(z)| <= |z|
        read = w["readout"][:, 0]
        error = self.moved(w["readout"])[0] + self._hidden_off(dz, z) @ np.abs(w["W_2[0]"] @ read)
        error += (_gamma(len(z) + 3) + _gamma(a.d + 1)) * (y @ np.abs(read)) + _gamma(a.d + 1) * np.abs(
            w["b_readout"][0]
        )
        return float(_OWN * error + _TINY * a.d)

    def on_leaf(self, leaf: OnLeaf) -> float:
        """How far the output of a network with normalisation falls below what is proved on a leaf, at most."""
        w, a, root = self.w, self.architecture, math.sqrt(self.architecture.d)
        units, first_w, second_w = len(leaf.z), np.abs(w["W_1[0]"]), np.abs(w["W_2[0]"])
        (gain, offset), (last_gain, last_offset) = self._norm(1 if a.style == "pre" else 0), self._norm(-1)
        read = last_gain * w["readout"][:, 0]
        wanted, box = self._centred(read), leaf.reach[units:]
        scale = self._scale(root * math.sqrt(max(0.0, leaf.scale**-2 - a.eps)) - self.away)
        relative, rounded = _kernel(scale, self.size)
        more = scale * (scale * self.away / root + relative)
        eta = scale * rounded * np.abs(gain) + 2 * _UNIT * np.abs(offset)
        normal = (1 + relative) * np.abs(gain) * scale * (box + self.away) + eta + np.abs(offset)
        moved = self.moved(self._centred((gain[:, None] * w["W_1[0]"]).T).T)
        dz = scale * moved + more * (leaf.reach[:units] + moved) + eta @ first_w
        dz = _OWN * (dz + _gamma(a.d + 1) * (normal @ first_w + np.abs(w["b_1[0]"]))) + _TINY
        z = leaf.z + dz
        dh = self._hidden_off(dz, z)
        if a.style == "pre":
            y, straight, further = self.size, self.moved(wanted[:, None])[0], self.away
            beyond = self.size.mean() * (a.normalisation == "layernorm")  # y and C y differ by the mean of r at most
        else:
            moved = self.moved(self._centred(gain * wanted)[:, None])[0]
            straight = scale * moved + more * (np.abs(gain * wanted) @ box + moved) + eta @ np.abs(wanted)
            further = np.abs(gain).max() * (scale * self.away + 1.2 * relative * root) + np.linalg.norm(eta)
            y, beyond = normal, 0.0
        hidden = np.maximum(_DIP, leaf.top) + dh + dz
        dy = _gamma(units + 3) * (y + hidden @ second_w + np.abs(w["b_2[0]"]))
        further = _OWN * (further + np.linalg.norm(dh @ second_w) + np.linalg.norm(dy))
        total = leaf.total - _OWN * (straight + dh @ np.abs(w["W_2[0]"] @ wanted) + dy @ np.abs(wanted))
        if not total > 0:
            return math.inf
        relative, rounded = _kernel(
            self._scale(total / (_OWN * float(np.linalg.norm(wanted)))), leaf.behind + beyond + further
        )
        total = (1 - relative) * total - _OWN * (rounded @ np.abs(read))
        if not total > 0:
            return math.inf
        length = float(np.linalg.norm(leaf.behind)) + further
        sizes = np.abs(last_offset) @ np.abs(w["readout"][:, 0])
        answer = (
            _gamma(a.d + 3) * (1.3 * root * np.linalg.norm(read) + sizes + np.abs(w["b_readout"][0]))
            + 2 * _UNIT * sizes
        )
        reached = (1 - 1e-9) * total / math.sqrt(length**2 / a.d + a.eps) + leaf.last - _OWN * answer
        return float(leaf.value - reached + 1e-9 * (1 + abs(leaf.last) + abs(leaf.value)))

    def _norm(self, which: int) -> tuple[Array, Array]:
        """Gain and offset of a normalisation."""
        gain, *offset = normalisations(self.architecture)[which]
        return self.w[gain], self.w[offset[0]] if offset else np.zeros(self.architecture.d)

    def _centred(self, rows: Array) -> Array:
        return rows - rows.mean(-1, keepdims=True) if self.architecture.normalisation == "layernorm" else rows

    def _scale(self, length: Any) -> Any:
        """Above every scale of rows v with |C v| at least this."""
        return _OWN / np.sqrt(np.maximum(length, 0) ** 2 / self.architecture.d + self.architecture.eps)

    def _hidden_off(self, dz: Array, z: Array) -> Array:
        return _SLOPE * dz + _LIBRARY * z * (self.architecture.activation == "gelu")

    def _normalised(self, rows: Array, off: Array) -> tuple[Array, Array]:
        """Every row normalised, and how far the pass is from it."""
        gain, offset = self._norm(0)
        centred, root = self._centred(rows), math.sqrt(self.architecture.d)
        away, moved = np.linalg.norm(off, axis=-1, keepdims=True), off + off.mean(-1, keepdims=True)
        scale = self._scale(np.linalg.norm(centred, axis=-1, keepdims=True) - _OWN * away)
        relative, rounded = _kernel(scale, np.abs(rows) + off)
        more = scale * (scale * away / root + relative)
        shift = np.abs(gain) * (scale * moved + more * (np.abs(centred) + moved) + scale * rounded)
        exact = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.architecture.eps)
        return gain * exact + offset, _OWN * (shift + 2 * _UNIT * np.abs(offset)) + _TINY


def _kernel(scale: Any, size: Array) -> tuple[Any, Array]:
    """What a normalisation's kernel adds: a relative error of the scale, and a multiple of it everywhere.

    Supposed: means are off by gamma_{d+8} of the mean size, variances by 8 gamma_{d+8} of the mean square, the inverse
    of the root by 4 u.
    """
    gamma = _gamma(size.shape[-1] + 8)
    mean = size.mean(-1, keepdims=True)
    share = 8 * gamma * np.square(scale) * (size**2).mean(-1, keepdims=np.ndim(scale) > 0)  # of the variance, x
    with np.errstate(invalid="ignore"):
        relative = np.where(share <= 0.25, 5 * _UNIT + 0.63 * share, np.inf)  # (1 - x)^(-1/2) <= 1 + 0.62 x
    return relative if np.ndim(scale) else float(relative), 1.2 * (gamma * mean + 5 * _UNIT * (size + mean))


def normalisations(a: Architecture) -> list[tuple[str, ...]]:
    """The names of gain (and offset) of every normalisation, in their order."""
    parts = {"none": (), "rmsnorm": ("gain",), "layernorm": ("gain", "offset")}[a.normalisation]
    places = ("norm_attention.{}[0]", "norm_ffn.{}[0]", "norm_final.{}")[: 3 if a.style == "pre" else 2]
    return [tuple(place.format(part) for part in parts) for place in places if parts]


def _gamma(n: int) -> float:
    return n * _UNIT / (1 - n * _UNIT)


def _affine(rows: Array, off: Array, matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Rows W + b in real numbers, and how far the rounded result is from it where the rows are off."""
    sizes = (np.abs(rows) + off) @ np.abs(matrix) + np.abs(offset)
    return rows @ matrix + offset, off @ np.abs(matrix) + _gamma(len(matrix) + 1) * sizes + _TINY
