"""Guesses of the slopes of B2 in floats, by supergradient ascent for several sets of inputs at once.

Nothing is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules._hidden import float_phi
from boundcalc.predictors.rules.check import Leaf
from boundcalc.predictors.rules.heads import HeadsOn, Inputs
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


class _Sets(HeadsOn):
    """The heads of a network on sets of inputs with equally many fixed positions."""

    def __init__(self, f: FloatTables, sets: Sequence[Inputs]) -> None:
        super().__init__(f.heads, sets)
        self.f = f

    def most_of_row(self, w: Array, near: Array | None = None) -> tuple[Array, Array]:
        """The largest <w, r> for a direction per set, and the p that has it."""
        heads, _, width = self.heads.values.shape
        values, _, p = self.largest((w @ self.f.out.T).reshape(-1, heads, 1, width), near)
        return values.sum(1) + w @ self.f.rho.T, p

    def boxes(self) -> tuple[Array, Array]:
        """Middle and half width of every pooled coordinate, (sets, heads, d_head)."""
        heads, _, width = self.heads.values.shape
        axes = np.concatenate([np.eye(width), -np.eye(width)])
        up, down = np.split(self.largest(np.broadcast_to(axes, (len(self.sets), heads, *axes.shape)))[0], 2, 2)
        return (up - down) / 2, (up + down) / 2

    def ranges(self) -> Iterator[tuple[Array, Array, tuple[int, ...]]]:
        """Least and largest value of every column that is read, and the heads that are followed exactly, per set.

        From boxes; of the units whose lines these leave loosest (and of C) exactly, for the heads that move most.
        """
        f, (middle, half), units = self.f, self.boxes(), len(self.f.g)
        spreads = np.einsum("hij,shi->shj", np.abs(f.through), half)
        at = (f.rho @ f.read)[0] + np.einsum("hij,shi->sj", f.through, middle)
        for i, spread in enumerate(spreads):
            low, high = at[i] - spread.sum(0), at[i] + spread.sum(0)
            moves = spread[:, :units] * np.abs(f.g[:, 0])
            exact = sorted(np.argsort(-moves.sum(1))[:_EXACT_HEADS].tolist())
            loose = np.argsort(-moves[exact].sum(0))[: max(units // _EXACT_SHARE, 1)]
            columns = np.concatenate([loose, np.arange(units, f.read.shape[1])])
            for h in exact:
                through, size = f.through[h][:, columns], spread[h, columns]
                both, inside = np.concatenate([through.T, -through.T]), middle[i, h] @ through
                up, down = np.split(HeadsOn(f.heads[[h]], [self.sets[i]]).largest(both[None, None])[0][0, 0], 2)
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
    sets, signs = _Sets(f, [inputs for inputs, _ in parts]), np.array([[float(sign)] for _, sign in parts])
    low, high, exact = map(np.array, zip(*sets.ranges(), strict=True))
    units, name = len(f.g), f.architecture.activation
    scale = _scales(f, low[:, units:], high[:, units:])
    z_low = f.zeta + np.minimum(*(s * low[:, :units] for s in scale))
    z_high = f.zeta + np.maximum(*(s * high[:, :units] for s in scale))
    g, width = signs * f.g.T, np.maximum(z_high - z_low, 1e-9)
    a = g * (float_phi(name, z_high) - float_phi(name, z_low)) / width
    best, slopes, kappas = np.full((len(parts), 1), -np.inf), a, np.ones((len(parts), 1))
    before, p = best, None
    z = z_low[..., None] + width[..., None] * _GRID
    lines = g[..., None] * float_phi(name, z)
    for step in range(_STEPS):
        below = lines - a[..., None] * z
        place = below.argmin(2, keepdims=True)
        bent = signs * f.scaled.T + a @ f.units.T
        kappa, corner = _chord(sets, bent, scale)
        worst, p = sets.most_of_row(-(signs * f.straight.T + kappa * bent), p)
        total = signs * (f.k_0 + f.last * (not f.centre.size)) + a @ f.zeta.T + corner - worst
        total += np.take_along_axis(below, place, 2).sum(1)
        better = total > best
        best, slopes, kappas = (np.where(better, *two) for two in ((total, best), (a, slopes), (kappa, kappas)))
        if step >= _AT_LEAST and bool(((best > _ENOUGH) | (best < _HOPELESS)).all()):
            break
        if step % _LOOK == 0:
            if bool(((best > _ENOUGH) | (best < before + 0.05 * np.abs(best))).all()):
                break
            before = best
        row = f.rho + p.reshape(len(p), -1) @ f.out
        reached, nearest = f.zeta + kappa * (row @ f.units), np.take_along_axis(z, place, 2)[..., 0]
        a = a + (0.3 / (1 + step / 10)) * np.abs(g) * (reached - nearest) / width
    rounded = [tuple(float(f"{s:.{_DIGITS}g}") for s in row) for row in slopes]
    columns = zip(rounded, exact.tolist(), kappas[:, 0].tolist(), best[:, 0].tolist(), strict=True)
    return [(Leaf(s, tuple(heads), kappa), value) for s, heads, kappa, value in columns]


def _scales(f: FloatTables, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the largest scale of the first normalisation, a column for the sets."""
    most = np.maximum(low**2, high**2)
    least = np.where((low > 0) | (high < 0), np.minimum(low**2, high**2), 0)
    low, high = (f.scale_of_square(square.sum(1, keepdims=True)) for square in (most, least))
    return low, high


def _chord(sets: _Sets, bent: Array, scale: tuple[Array, Array]) -> tuple[Array, Array]:
    """Kappa and c with s t >= kappa t + c for the scales s and t = <bent, r>: the chord of the least values."""
    if not sets.f.centre.size:
        return np.ones((len(bent), 1)), np.zeros((len(bent), 1))
    low, high = -sets.most_of_row(-bent)[0], sets.most_of_row(bent)[0]
    ends = [np.minimum(*(s * t for s in scale)) for t in (low, high)]
    kappa = (ends[1] - ends[0]) / np.maximum(high - low, 1e-12)
    return kappa, np.min([(s - kappa) * t for s in scale for t in (low, high)], axis=0)


@np.errstate(all="ignore")
def attracting(f: FloatTables, inputs: Inputs) -> int:
    """The free position of largest weight in the head that can move the output most."""
    half = _Sets(f, [inputs]).boxes()[1]
    moves = np.einsum("hij,hi,j->h", np.abs(f.through[..., : len(f.g)]), half[0], np.abs(f.g[:, 0]))
    weights = f.sums[int(moves.argmax()), :-1, -1].reshape(2, -1).max(0)
    return max(inputs.free, key=lambda t: weights[t])
