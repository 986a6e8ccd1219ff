"""How far a float32 forward pass is from the real-number function, for all inputs at once, without normalisation.

The pass: tables, queries, keys and values row by row, scores, softmax (exp of scores less their largest, divided by the
sum), W_O, residual, W_1, activation, W_2, residual, read-out. Every operation rounds to nearest, sums are in any order
and may be fused, exp has a relative and erf an absolute error of at most 2^-20 (torch's are below 2^-22).
docs/certificates.md proves it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.setting import Architecture

_UNIT = 2.0**-24
_LIBRARY = 2.0**-20
_TINY = 2.0**-120
"""More than what a sum loses to underflow."""
_SLOPE = 1.13
"""Of GELU, at most."""
_LARGEST = 1e30
"""Below it no float32 overflows."""
_OWN = 1.01
"""Covers the rounding of this calculation in float64."""


@np.errstate(all="ignore")
def float32_error(architecture: Architecture, weights: Mapping[str, Array]) -> float | None:
    """How far the output of the pass is off at most.

    None with a normalisation, where weights are no float32 numbers, and where something may overflow.
    """
    a = architecture
    if a.normalisation != "none" or not weights:
        return None
    if any(not np.array_equal(value, value.astype(np.float32)) for value in weights.values()):
        return None
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    bits = w["embedding"][:2, None] + w["positions"][None, 1:]
    rows = np.concatenate([w["embedding"][2:] + w["positions"][:1], *bits])  # the row that is read, bits 0, bits 1
    rows_off, out = _UNIT * np.abs(rows), w["W_O[0]"].reshape(a.heads, -1, a.d)
    turned: list[tuple[float, Array, Array]] = []  # how far weights are off in total variation, values, W_O of the head
    pooled, pooled_off, largest = [], [], 0.0
    for h in range(a.heads):
        q, dq = _affine(rows[:1], rows_off[:1], w["W_Q[0]"][h], w["b_Q[0]"][h])
        k, dk = _affine(rows, rows_off, w["W_K[0]"][h], w["b_K[0]"][h])
        v, dv = _affine(rows, rows_off, w["W_V[0]"][h], w["b_V[0]"][h])
        scores, sizes = (k @ q[0]) / math.sqrt(a.head_width), (np.abs(k) + dk) @ (np.abs(q[0]) + dq[0])
        ds = dk @ np.abs(q[0]) + (np.abs(k) + dk) @ dq[0] + _gamma(a.head_width + 3) * sizes
        ds, largest = ds / math.sqrt(a.head_width), max(largest, float(sizes.max()))
        spread = scores.max() - scores.min() + 2 * ds.max()
        # weights whose logarithms are off by at most e are off by tanh(e / 2) in total variation
        log_off = float(ds.max() + _UNIT * spread + 1.01 * _LIBRARY)
        turned.append((math.tanh(log_off / 2) + a.seq_len * _TINY, v, out[h]))
        pooled.append((np.abs(v) + dv).max(0))
        pooled_off.append(dv.max(0) + _gamma(2 * a.seq_len + 6) * pooled[-1] + _TINY)
    mixed = np.concatenate(pooled) @ np.abs(w["W_O[0]"]) + np.abs(w["b_O[0]"]) + np.abs(rows[0])
    row_off = np.concatenate(pooled_off) @ np.abs(w["W_O[0]"]) + rows_off[0] + _gamma(a.d + 3) * mixed + _TINY
    size = mixed + row_off  # of the coordinates of the row behind the attention
    if not (largest < _LARGEST and float((size**2).sum()) < _LARGEST):
        return None

    def moved(columns: Array) -> Array:
        """How far <w, r> is off at most, for every column w."""
        seen = [(share, v @ (part @ columns)) for share, v, part in turned]
        return _OWN * (row_off @ np.abs(columns) + sum(share * (at.max(0) - at.min(0)) for share, at in seen))

    low = high = (rows[0] + w["b_O[0]"]) @ w["W_1[0]"] + w["b_1[0]"]
    for _, v, part in turned:
        seen = v @ (part @ w["W_1[0]"])
        low, high = low + seen.min(0), high + seen.max(0)
    dz = moved(w["W_1[0]"]) + _gamma(a.d + 1) * (size @ np.abs(w["W_1[0]"]) + np.abs(w["b_1[0]"])) + _TINY
    z = np.maximum(np.abs(low), np.abs(high)) + dz
    y = size + z @ np.abs(w["W_2[0]"]) + np.abs(w["b_2[0]"])  # |phi(z)| <= |z|
    read, last = w["readout"][:, 0], _gamma(a.d + 1)
    hidden_off = _SLOPE * dz + _LIBRARY * z * (a.activation == "gelu")
    error = moved(w["readout"])[0] + hidden_off @ np.abs(w["W_2[0]"] @ read)
    error += (_gamma(len(z) + 3) + last) * (y @ np.abs(read)) + last * np.abs(w["b_readout"][0])
    return float(_OWN * error + _TINY * a.d)


def _gamma(n: int) -> float:
    return n * _UNIT / (1 - n * _UNIT)


def _affine(rows: Array, off: Array, matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Rows W + b in real numbers, and how far the rounded result is from it where the rows are off."""
    sizes = (np.abs(rows) + off) @ np.abs(matrix) + np.abs(offset)
    return rows @ matrix + offset, off @ np.abs(matrix) + _gamma(len(matrix) + 1) * sizes + _TINY
