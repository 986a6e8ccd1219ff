"""Guesses of the slopes of B2 in floats, by supergradient ascent for several sets of inputs at once.

Nothing is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules._heads import Free, Inputs, largest
from boundcalc.predictors.rules._hidden import float_phi
from boundcalc.predictors.rules.check import Leaf
from boundcalc.predictors.rules.tables import FloatTables

_EXACT_HEADS = 3
_EXACT_SHARE = 4
"""One in so many hidden units is followed exactly there; the checker follows all."""
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


_Part = tuple[Inputs, int]
"""Inputs on which a network shall answer one thing: with an output above 0 (1), or below (-1)."""


class _Sets:
    """The heads on sets of inputs with equally many fixed positions."""

    def __init__(self, f: FloatTables, inputs: Sequence[Inputs]) -> None:
        self.f, self.inputs = f, inputs
        places = [part.places for part in inputs]
        terms = np.concatenate([f.sums[:, free] for free, _ in places])
        fixed = np.concatenate([f.sums[:, others].sum(1) for _, others in places])
        self.heads = Free(terms, fixed, *np.repeat([part.counts for part in inputs], len(f.sums), 0).T)

    def most(self, w: Array, near: Array | None = None) -> tuple[Array, Array]:
        """The largest <w, p> as floats see it, and its p, for directions (sets, heads, rows, d_head)."""
        near = None if near is None else near.reshape(-1, *near.shape[2:])
        values, _, p = largest(self.heads, w.reshape(-1, *w.shape[2:]), near)
        return values.reshape(w.shape[:3]), p.reshape(w.shape)

    def most_of_row(self, w: Array, near: Array | None = None) -> tuple[Array, Array]:
        """The largest <w, r> for a direction per set, and the p that has it."""
        values, p = self.most(np.einsum("hid,sd->shi", self.f.out, w)[:, :, None], near)
        return values.sum((1, 2)) + w @ self.f.rho, p

    def boxes(self) -> tuple[Array, Array]:
        """Middle and half width of every pooled coordinate, (sets, heads, d_head)."""
        heads, width, _ = self.f.out.shape
        axes = np.concatenate([np.eye(width), -np.eye(width)])
        up, down = np.split(self.most(np.broadcast_to(axes, (len(self.inputs), heads, *axes.shape)))[0], 2, 2)
        return (up - down) / 2, (up + down) / 2

    def ranges(self) -> Iterator[tuple[Array, Array, tuple[int, ...]]]:
        """Least and largest value of every column that is read, and the heads that are followed exactly, per set.

        From boxes; of the units whose lines these leave loosest (and of C) exactly, for the heads that move most.
        """
        f, (middle, half), units = self.f, self.boxes(), len(self.f.g)
        spreads = np.einsum("hij,shi->shj", np.abs(f.through), half)
        at = f.rho @ f.read + np.einsum("hij,shi->sj", f.through, middle)
        for i, spread in enumerate(spreads):
            low, high = at[i] - spread.sum(0), at[i] + spread.sum(0)
            moves = spread[:, :units] * np.abs(f.g)
            exact = sorted(np.argsort(-moves.sum(1))[:_EXACT_HEADS].tolist())
            loose = np.argsort(-moves[exact].sum(0))[: max(units // _EXACT_SHARE, 1)]
            columns = np.concatenate([loose, np.arange(units, len(f.read.T))])
            for h in exact:
                through, size, k = f.through[h][:, columns], spread[h, columns], i * len(f.out) + h
                alone = Free(*(array[k : k + 1] for array in vars(self.heads).values()))
                up, down = np.split(largest(alone, np.concatenate([through.T, -through.T])[None])[0][0], 2)
                inside = middle[i, h] @ through
                low[columns] += size - inside - down
                high[columns] += up - inside - size
            yield low, high, tuple(exact)


def leaves_of(f: FloatTables, parts: Sequence[_Part]) -> list[tuple[Leaf, float]]:
    """A leaf for each set of inputs, and the least value that floats see on it (infinite where no input meets it)."""
    best = [(Leaf((0.0,) * len(f.g), ()), math.inf)] * len(parts)
    groups: dict[int, list[int]] = {}
    for i, (inputs, _) in enumerate(parts):
        if not inputs.empty:
            groups.setdefault(len(inputs.fixed), []).append(i)
    for group in groups.values():
        for i, leaf in zip(group, _ascend(f, [parts[i] for i in group]), strict=True):
            best[i] = leaf
    return best


@np.errstate(all="ignore")
def _ascend(f: FloatTables, parts: Sequence[_Part]) -> list[tuple[Leaf, float]]:
    """A leaf with the best slopes of some steps for each set, and the least value that floats see there."""
    sets, signs = _Sets(f, [inputs for inputs, _ in parts]), np.array([float(sign) for _, sign in parts])
    low, high, exact = map(np.array, zip(*sets.ranges(), strict=True))
    scale = _scales(f, low[:, len(f.g) :], high[:, len(f.g) :])
    z_low = f.zeta + np.minimum(*(s * low[:, : len(f.g)] for s in scale))
    z_high = f.zeta + np.maximum(*(s * high[:, : len(f.g)] for s in scale))
    g = signs[:, None] * f.g
    width = np.maximum(z_high - z_low, 1e-9)
    a = g * (float_phi(f.activation, z_high) - float_phi(f.activation, z_low)) / width
    best, slopes, kappas = np.full(len(parts), -np.inf), a.copy(), np.ones(len(parts))
    before, p = best, None
    z = z_low[..., None] + width[..., None] * _GRID
    lines = g[..., None] * float_phi(f.activation, z)
    for step in range(_STEPS):
        below = lines - a[..., None] * z
        place = below.argmin(2)[..., None]
        offset = np.take_along_axis(below, place, 2)[..., 0].sum(1)
        bent = signs[:, None] * f.scaled + a @ f.units.T
        kappa, rest = _bilinear(sets, bent, scale)
        worst, p = sets.most_of_row(-(signs[:, None] * f.straight + kappa[:, None] * bent), p)
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
        row = f.rho + np.einsum("shki,hid->sd", p, f.out)
        reached = f.zeta + kappa[:, None] * (row @ f.units)
        nearest = np.take_along_axis(z, place, 2)[..., 0]
        a = a + (0.3 / (1 + step / 10)) * np.abs(g) * (reached - nearest) / width
    rounded = [tuple(float(f"{s:.{_DIGITS}g}") for s in row) for row in slopes]
    return [
        (Leaf(s, tuple(h), float(k)), float(v))
        for s, h, k, v in zip(rounded, exact.tolist(), kappas, best, strict=True)
    ]


def _scales(f: FloatTables, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the largest scale of the first normalisation, a column for the sets."""
    if f.centre is None:
        return np.ones((len(low), 1)), np.ones((len(low), 1))
    most = np.maximum(low**2, high**2)
    least = np.where((low > 0) | (high < 0), np.minimum(low**2, high**2), 0)
    low, high = (1 / np.sqrt(square.mean(1, keepdims=True) + f.eps) for square in (most, least))
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
def attracting(f: FloatTables, inputs: Inputs) -> int:
    """The free position of largest weight in the head that can move the output most."""
    half = _Sets(f, [inputs]).boxes()[1]
    moves = np.einsum("hij,hi,j->h", np.abs(f.through[..., : len(f.g)]), half[0], np.abs(f.g))
    weights = f.sums[int(moves.argmax()), :-1, -1].reshape(2, -1).max(0)
    return max(inputs.free, key=lambda t: weights[t])
