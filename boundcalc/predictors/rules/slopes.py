"""Guesses of the slopes of B2 in floats, by supergradient ascent for several sets of inputs at once. Nothing is trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.check import Leaf
from boundcalc.predictors.rules.quotients import largest
from boundcalc.predictors.rules.support import Inputs
from boundcalc.predictors.rules.tables import FloatTables, float_phi

_EXACT_HEADS = 3
_STEPS = 40
_AT_LEAST = 6
_LOOK = 10
"""Steps after which an ascent that hardly rises is given up."""
_ENOUGH = 2.0
"""Least values above it are not raised further."""
_HOPELESS = -25.0
"""No ascent comes back from here."""
_GRID = np.linspace(0, 1, 33)
_DIGITS = 5


@dataclass(frozen=True)
class Part:
    """Inputs on which a network shall answer one thing, with cuts of hidden units."""

    inputs: Inputs
    sign: int
    ranges: Mapping[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])


@dataclass
class _Sets:
    """Sets of inputs with equally many fixed positions: e (sets, heads, n, 2), v, numerator and denominator, counts."""

    f: FloatTables
    e: Array
    v: Array
    num: Array
    den: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, f: FloatTables, inputs: Sequence[Inputs]) -> _Sets:
        num = np.repeat((f.own_e[:, None] * f.own_v)[None], len(inputs), 0)
        den = np.repeat(f.own_e[None], len(inputs), 0)
        for i, each in enumerate(inputs):
            for t, c in each.fixed:
                num[i] += f.e[:, t, c, None] * f.v[:, t, c]
                den[i] += f.e[:, t, c]
        low, high = np.array([each.counts for each in inputs]).T
        e, v = (np.stack([table[:, each.free] for each in inputs]) for table in (f.e, f.v))
        return cls(f, e, v, num, den, low, high)

    def most(self, w: Array) -> tuple[Array, Array]:
        """For a direction per set and head: the largest <w, p> as floats see it, and the p that has it."""
        sets, heads, n = self.e.shape[:3]
        y = np.einsum("shnci,shi->shnc", self.v, w).reshape(sets * heads, n, 2)
        flat = self.e.reshape(sets * heads, n, 2)
        at = (np.einsum("shi,shi->sh", self.num, w).ravel(), self.den.ravel())
        found = largest(flat, y, *at, np.repeat(self.low, heads), np.repeat(self.high, heads))
        chosen = np.where(found.ones, flat[..., 1], flat[..., 0]).reshape(sets, heads, n)
        rows = np.where(found.ones.reshape(sets, heads, n)[..., None], self.v[..., 1, :], self.v[..., 0, :])
        p = (self.num + np.einsum("shn,shni->shi", chosen, rows)) / found.mass.reshape(sets, heads)[..., None]
        return found.value.reshape(sets, heads), p

    def most_of_row(self, w: Array) -> tuple[Array, Array]:
        """The largest <w, r> for a direction per set, and the r that has it."""
        values, p = self.most(np.einsum("hid,sd->shi", self.f.out, w))
        return values.sum(1) + w @ self.f.rho, self.f.rho + np.einsum("shi,hid->sd", p, self.f.out)

    def boxes(self) -> tuple[Array, Array]:
        """Middle and half width of every pooled coordinate, (sets, heads, d_head)."""
        width = self.v.shape[-1]
        unit = np.concatenate([np.eye(width), -np.eye(width)])
        both = np.stack([self.most(np.broadcast_to(w, (*self.den.shape, width)))[0] for w in unit], -1)
        up, down = both[..., :width], both[..., width:]
        return (up - down) / 2, (up + down) / 2

    def ranges(self) -> tuple[Array, Array, tuple[int, ...]]:
        """Least and largest value of every column that is read, and the heads that are followed exactly."""
        f, (middle, half) = self.f, self.boxes()
        moves = np.einsum("hij,shi,j->sh", np.abs(f.through[..., : len(f.g)]), half, np.abs(f.g))
        exact = tuple(sorted(np.argsort(-moves.max(0))[:_EXACT_HEADS].tolist()))
        low = f.rho @ f.read + np.zeros((len(self.low), 1))
        high = low.copy()
        for h, through in enumerate(f.through):
            if h in exact:
                rows = np.concatenate([through.T, -through.T])
                both = np.stack([self._rows(i, h, rows) for i in range(len(self.low))])
                low, high = low - both[:, len(through.T) :], high + both[:, : len(through.T)]
            else:
                at, spread = middle[:, h] @ through, half[:, h] @ np.abs(through)
                low, high = low + at - spread, high + at + spread
        return low, high, exact

    def _rows(self, i: int, h: int, rows: Array) -> Array:
        """The largest <w, p_h> on one set for every row w."""
        y = np.einsum("nci,ri->rnc", self.v[i, h], rows)
        den = np.full(len(rows), self.den[i, h])
        return largest(self.e[i, h], y, rows @ self.num[i, h], den, self.low[i], self.high[i]).value


@np.errstate(all="ignore")
def ascend(f: FloatTables, parts: Sequence[Part]) -> list[tuple[Leaf, float]]:
    """A leaf with the best slopes of some steps for each set, and the least value that floats see there."""
    sets, signs = _Sets.of(f, [part.inputs for part in parts]), np.array([float(part.sign) for part in parts])
    low, high, exact = sets.ranges()
    scale = _scales(f, low[:, len(f.g) :], high[:, len(f.g) :])
    z_low, z_high = _hidden(f, low, high, scale, parts)
    empty = (z_low > z_high).any(1)
    g = signs[:, None] * f.g
    width = np.maximum(z_high - z_low, 1e-9)
    a = g * (float_phi(f.activation, z_high) - float_phi(f.activation, z_low)) / width
    best, slopes, kappas = np.full(len(parts), -np.inf), a.copy(), np.ones(len(parts))
    before = best
    z = z_low[..., None] + width[..., None] * _GRID
    lines = g[..., None] * float_phi(f.activation, z)
    for step in range(_STEPS):
        below = lines - a[..., None] * z
        place = below.argmin(2)[..., None]
        offset = np.take_along_axis(below, place, 2)[..., 0].sum(1)
        bent = signs[:, None] * f.scaled + a @ f.units.T
        kappa, rest = _bilinear(sets, bent, scale)
        worst, row = sets.most_of_row(-(signs[:, None] * f.straight + kappa[:, None] * bent))
        total = signs * f.k_0 + offset + a @ f.zeta + rest - worst + (signs * f.last if f.centre is None else 0)
        better = total > best
        best, slopes, kappas = (
            np.where(better, total, best),
            np.where(better[:, None], a, slopes),
            np.where(better, kappa, kappas),
        )
        if step >= _AT_LEAST and bool(((best > _ENOUGH) | (best < _HOPELESS)).all()):
            break
        if step % _LOOK == 0:
            if bool(((best > _ENOUGH) | (best < before + 0.05 * np.abs(best))).all()):
                break
            before = best
        reached = f.zeta + kappa[:, None] * (row @ f.units)
        nearest = np.take_along_axis(z, place, 2)[..., 0]
        a = a + (0.3 / (1 + step / 10)) * np.abs(g) * (reached - nearest) / width
    best = np.where(empty, np.inf, best)
    rounded = [tuple(float(f"{s:.{_DIGITS}g}") for s in row) for row in slopes]
    return [(Leaf(s, exact, float(k)), float(v)) for s, k, v in zip(rounded, kappas, best, strict=True)]


def _scales(f: FloatTables, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the largest scale of the first normalisation, a column for the sets."""
    if f.centre is None:
        return np.ones((len(low), 1)), np.ones((len(low), 1))
    most = np.maximum(low**2, high**2)
    least = np.where((low > 0) | (high < 0), np.minimum(low**2, high**2), 0)
    return tuple(1 / np.sqrt(square.mean(1, keepdims=True) + f.eps) for square in (most, least))  # type: ignore[return-value]


def _hidden(
    f: FloatTables, low: Array, high: Array, scale: tuple[Array, Array], parts: Sequence[Part]
) -> tuple[Array, Array]:
    """The least and the largest input of every hidden unit."""
    low, high = low[:, : len(f.g)], high[:, : len(f.g)]
    low = f.zeta + np.minimum(scale[0] * low, scale[1] * low)
    high = f.zeta + np.maximum(scale[0] * high, scale[1] * high)
    for i, part in enumerate(parts):
        for j, (least, most) in part.ranges.items():
            low[i, j], high[i, j] = max(low[i, j], least), min(high[i, j], most)
    return low, high


def _bilinear(sets: _Sets, bent: Array, scale: tuple[Array, Array]) -> tuple[Array, Array]:
    """Kappa and c with s t >= kappa t + c for the scales s and t = <bent, r>: the chord of the least values."""
    s_low, s_high = scale[0][:, 0], scale[1][:, 0]
    if sets.f.centre is None:
        return np.ones(len(bent)), np.zeros(len(bent))
    high, low = sets.most_of_row(bent)[0], -sets.most_of_row(-bent)[0]
    ends = [np.minimum(s_low * t, s_high * t) for t in (low, high)]
    kappa = (ends[1] - ends[0]) / np.maximum(high - low, 1e-12)
    return kappa, np.min([(s - kappa) * t for s in (s_low, s_high) for t in (low, high)], axis=0)


@np.errstate(all="ignore")
def attracting(f: FloatTables, part: Part) -> int:
    """The free position of largest weight in the head that can move the output most."""
    half = _Sets.of(f, [part.inputs]).boxes()[1]
    moves = np.einsum("hij,hi,j->h", np.abs(f.through[..., : len(f.g)]), half[0], np.abs(f.g))
    free = part.inputs.free
    return free[int(f.e[int(moves.argmax())][free].max(1).argmax())]


@np.errstate(all="ignore")
def loosest_unit(f: FloatTables, part: Part) -> tuple[int, float]:
    """The hidden unit whose line can be farthest below it, and the middle of its range."""
    low, high, _ = _Sets.of(f, [part.inputs]).ranges()
    scale = _scales(f, low[:, len(f.g) :], high[:, len(f.g) :])
    ends = [side[0] for side in _hidden(f, low, high, scale, [part])]
    middle = (ends[0] + ends[1]) / 2
    chord = (float_phi(f.activation, ends[0]) + float_phi(f.activation, ends[1])) / 2
    j = int((np.abs(f.g) * np.abs(chord - float_phi(f.activation, middle))).argmax())
    return j, float(middle[j]) if math.isfinite(middle[j]) else 0.0
