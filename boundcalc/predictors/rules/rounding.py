"""How far a float32 forward pass of a network is from its real-number function, proved for all inputs of bits at once.

The pass: tables, queries, keys and values row by row, scores, softmax (exp of scores less their largest, divided by the sum),
W_O, residual, W_1, activation, W_2, residual, read-out. Every operation rounds to nearest, sums are in any order and may be
fused, exp has a relative and erf an absolute error of at most 2^-20 (torch's are below 2^-22). docs/certificates.md proves it.
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


def rounding_error(architecture: Architecture, weights: Mapping[str, Array]) -> float | None:
    """An upper bound of |float32 output - real output|; None where this pass is not described or the weights are no float32."""
    a = architecture
    if a.normalisation != "none" or any(not np.array_equal(v, v.astype(np.float32)) for v in weights.values()):
        return None
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    bits = w["embedding"][:2, None] + w["positions"][None, 1:]
    rows = np.concatenate([w["embedding"][2:] + w["positions"][:1], *bits])  # the row that is read, bits 0, bits 1
    off = _UNIT * np.abs(rows)
    direct = {"z": w["W_1[0]"], "f": w["readout"]}
    out = w["W_O[0]"].reshape(a.heads, -1, a.d)
    moved = {name: np.zeros(matrix.shape[1]) for name, matrix in direct.items()}
    z_low = z_high = (rows[0] + w["b_O[0]"]) @ w["W_1[0]"] + w["b_1[0]"]
    pooled, pooled_off, largest = [], [], 0.0
    for h in range(a.heads):
        q, dq = _affine(rows[:1], off[:1], w["W_Q[0]"][h], w["b_Q[0]"][h])
        k, dk = _affine(rows, off, w["W_K[0]"][h], w["b_K[0]"][h])
        v, dv = _affine(rows, off, w["W_V[0]"][h], w["b_V[0]"][h])
        scores = (k @ q[0]) / math.sqrt(a.head_width)
        sizes = (np.abs(k) + dk) @ (np.abs(q[0]) + dq[0])
        ds = (dk @ np.abs(q[0]) + (np.abs(k) + dk) @ dq[0] + _gamma(a.head_width + 3) * sizes) / math.sqrt(a.head_width)
        largest = max(largest, float(sizes.max()))
        spread = scores.max() - scores.min() + 2 * ds.max()
        # weights whose logarithms are off by at most e are off by tanh(e / 2) in total variation
        log_off = float(ds.max() + _UNIT * spread + 1.01 * _LIBRARY)
        share = math.tanh(log_off / 2) + a.seq_len * _TINY
        for name, matrix in direct.items():
            seen = v @ (out[h] @ matrix)
            moved[name] = moved[name] + share * (seen.max(0) - seen.min(0))
            if name == "z":
                z_low, z_high = z_low + seen.min(0), z_high + seen.max(0)
        pooled.append((np.abs(v) + dv).max(0))
        pooled_off.append(dv.max(0) + _gamma(2 * a.seq_len + 6) * pooled[-1] + _TINY)
    p, dp = np.concatenate(pooled), np.concatenate(pooled_off)
    mixed = p @ np.abs(w["W_O[0]"]) + np.abs(w["b_O[0]"]) + np.abs(rows[0])
    dr = dp @ np.abs(w["W_O[0]"]) + off[0] + _gamma(a.d + 3) * mixed + _TINY
    r = mixed + dr
    dz = (
        moved["z"]
        + dr @ np.abs(w["W_1[0]"])
        + _gamma(a.d + 1) * (r @ np.abs(w["W_1[0]"]) + np.abs(w["b_1[0]"]))
        + _TINY
    )
    z = np.maximum(np.abs(z_low), np.abs(z_high)) + dz
    dh = _SLOPE * dz + _LIBRARY * z * (a.activation == "gelu")
    y = r + z @ np.abs(w["W_2[0]"]) + np.abs(w["b_2[0]"])  # |phi(z)| <= |z|
    read = np.abs(w["readout"][:, 0])
    direct_off = moved["f"][0] + dr @ read + dh @ np.abs(w["W_2[0]"] @ w["readout"][:, 0])
    rounded = (_gamma(len(z) + 3) + _gamma(a.d + 1)) * (y @ read) + _gamma(a.d + 1) * np.abs(w["b_readout"][0])
    found = float(_OWN * (direct_off + rounded) + _TINY * a.d)
    return found if largest < _LARGEST and found < _LARGEST else None


def _gamma(n: int) -> float:
    return n * _UNIT / (1 - n * _UNIT)


def _affine(rows: Array, off: Array, matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Rows W + b in real numbers, and how far the rounded result is from it where the rows are off."""
    sizes = (np.abs(rows) + off) @ np.abs(matrix) + np.abs(offset)
    return rows @ matrix + offset, off @ np.abs(matrix) + _gamma(len(matrix) + 1) * sizes + _TINY
