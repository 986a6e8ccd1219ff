"""B2: the largest line offset below a hidden unit, and the lower bound of the output on a set of inputs, in balls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.tables import float_phi, least, phi, phi_slope

_BENDS = (1.4142135, 1.4142136)
"""Floats around the root of 2, where the second derivative of GELU, (2 - z^2) times the normal density, changes its
sign."""
_GRID = 33


def offsets(
    name: str, g: Sequence[arb], slopes: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> list[arb]:
    """beta_j <= min of g_j phi(z) - a_j z over low_j <= z <= high_j."""
    if name == "relu":
        return [_relu(*unit) for unit in zip(g, slopes, low, high, strict=True)]
    near = touching_points(np.array([float(unit.mid()) for unit in g]), np.array(slopes), np.array(low), np.array(high))
    return [_gelu(*unit) for unit in zip(g, slopes, low, high, near.tolist(), strict=True)]


def _relu(g: arb, a: float, low: float, high: float) -> arb:
    """Linear on both sides of 0, so the least value is at an end or at 0."""
    if not _proper(a, low, high):
        return arb.neg_inf()
    ends = [low, high, *([0.0] if low < 0 < high else [])]
    return least([g * arb.max(arb(z), arb(0)) - arb(a) * arb(z) for z in ends])


def _gelu(g: arb, a: float, low: float, high: float, near: list[float]) -> arb:
    """Piece by piece: at the ends where g phi is concave, by a tangent where it is convex."""
    if not _proper(a, low, high):
        return arb.neg_inf()
    slope, (inner, outer) = arb(a), _BENDS
    if not bool(g > 0) and not bool(g < 0):  # |phi(z)| <= |z|
        return least([-slope * arb(z) for z in (low, high)]) - abs(g) * max(abs(low), abs(high))
    differences: list[arb] = []
    cuts = ((-math.inf, -outer), (-outer, -inner), (-inner, inner), (inner, outer), (outer, math.inf))
    for piece, (start, end) in enumerate(cuts):
        left, right = max(low, start), min(high, end)
        if left > right:
            continue
        if piece in (1, 3):  # a ball around the bend
            z = arb(left).union(arb(right))
            differences.append(g * phi("gelu", z) - slope * z)
        elif bool(g > 0) == (piece == 2):  # convex
            at = min(max(near[piece // 2], left), right)
            touch = arb(at)
            value = g * phi("gelu", touch) - slope * touch
            rise = g * phi_slope(touch) - slope
            differences.append(value + least([rise * (arb(left) - touch), rise * (arb(right) - touch)]))
        else:
            differences += [g * phi("gelu", arb(z)) - slope * arb(z) for z in (left, right)]
    return least(differences)


def _proper(a: float, low: float, high: float) -> bool:
    return math.isfinite(a) and math.isfinite(low) and math.isfinite(high) and low <= high


def touching_points(g: Array, a: Array, low: Array, high: Array) -> Array:
    """Where to put tangents, per unit for the pieces left of, between and right of the bends. Any place is valid."""
    with np.errstate(all="ignore"):
        bend = math.sqrt(2)
        starts = np.stack([np.full_like(low, -np.inf), np.full_like(low, -bend), np.full_like(low, bend)])
        stops = np.stack([np.full_like(low, -bend), np.full_like(low, bend), np.full_like(low, np.inf)])
        left, right = np.maximum(starts, low), np.maximum(np.minimum(stops, high), np.maximum(starts, low))
        z = left + (right - left) * np.linspace(0, 1, _GRID)[:, None, None]
        at = np.take_along_axis(z, (g * float_phi("gelu", z) - a * z).argmin(0)[None], 0)[0]
        for _ in range(3):
            density = np.exp(-at * at / 2) / math.sqrt(2 * math.pi)
            rise = (
                g * (float_phi("gelu", at) / np.where(at == 0, 1, at) * (at != 0) + 0.5 * (at == 0) + at * density) - a
            )
            bent = g * density * (2 - at * at)
            step = np.where(np.abs(bent) > 1e-9, rise / np.where(np.abs(bent) > 1e-9, bent, 1), 0)
            at = np.clip(at - step, left, right)
    return np.where(np.isfinite(at), at, 0.0).T
