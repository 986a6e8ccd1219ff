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
    rows_off, out, root = _UNIT * np.abs(rows), w["W_O[0]"].reshape(a.heads, -1, a.d), math.sqrt(a.head_width)
    # heads first, then rows
    q, dq = _affine(rows[:1], rows_off[:1], w["W_Q[0]"], w["b_Q[0]"])
    k, dk = _affine(rows, rows_off, w["W_K[0]"], w["b_K[0]"])
    v, dv = _affine(rows, rows_off, w["W_V[0]"], w["b_V[0]"])
    scores, sizes = (k * q).sum(2) / root, ((np.abs(k) + dk) * (np.abs(q) + dq)).sum(2)
    ds = (dk * np.abs(q) + (np.abs(k) + dk) * dq).sum(2) / root + _gamma(a.head_width + 3) * sizes / root
    spread = scores.max(1) - scores.min(1) + 2 * ds.max(1)
    # weights whose logarithms are off by at most e are off by tanh(e / 2) in total variation
    share = np.tanh((ds.max(1) + _UNIT * spread + 1.01 * _LIBRARY) / 2) + a.seq_len * _TINY
    pooled = (np.abs(v) + dv).max(1)
    pooled_off = dv.max(1) + _gamma(2 * a.seq_len + 6) * pooled + _TINY
    mixed = pooled.ravel() @ np.abs(w["W_O[0]"]) + np.abs(w["b_O[0]"]) + np.abs(rows[0])
    row_off = pooled_off.ravel() @ np.abs(w["W_O[0]"]) + rows_off[0] + _gamma(a.d + 3) * mixed + _TINY
    size = mixed + row_off  # of the coordinates of the row behind the attention
    if not (float(sizes.max()) < _LARGEST and float((size**2).sum()) < _LARGEST):
        return None

    def moved(columns: Array) -> Array:
        """How far <w, r> is off at most, for every column w."""
        seen = v @ (out @ columns)
        return _OWN * (row_off @ np.abs(columns) + share @ (seen.max(1) - seen.min(1)))

    seen, first = v @ (out @ w["W_1[0]"]), (rows[0] + w["b_O[0]"]) @ w["W_1[0]"] + w["b_1[0]"]
    low, high = first + seen.min(1).sum(0), first + seen.max(1).sum(0)
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


def _affine(rows: Array, off: Array, matrices: Array, offsets: Array) -> tuple[Array, Array]:
    """Rows W + b in real numbers for every head, and how far the rounded results are from it where the rows are off."""
    sizes = (np.abs(rows) + off) @ np.abs(matrices) + np.abs(offsets)[:, None]
    return rows @ matrices + offsets[:, None], off @ np.abs(matrices) + _gamma(len(rows[0]) + 1) * sizes + _TINY
