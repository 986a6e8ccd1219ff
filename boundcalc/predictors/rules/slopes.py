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
        """Least and largest <w, r> of every hidden unit's w, and the heads that are followed exactly, per set.

        From boxes; of the units whose lines these leave loosest exactly, for the heads that move most.
        """
        f, (middle, half) = self.f, self.boxes()
        spreads = np.einsum("hij,shi->shj", np.abs(f.through), half)
        at = (f.rho @ f.units)[0] + np.einsum("hij,shi->sj", f.through, middle)
        for i, spread in enumerate(spreads):
            low, high = at[i] - spread.sum(0), at[i] + spread.sum(0)
            moves = spread * np.abs(f.g[:, 0])
            exact = sorted(np.argsort(-moves.sum(1))[:_EXACT_HEADS].tolist())
            loose = np.argsort(-moves[exact].sum(0))[: max(len(f.g) // _EXACT_SHARE, 1)]
            for h in exact:
                through, size = f.through[h][:, loose], spread[h, loose]
                both, inside = np.concatenate([through.T, -through.T]), middle[i, h] @ through
                up, down = np.split(HeadsOn(f.heads[[h]], [self.sets[i]]).largest(both[None, None])[0][0, 0], 2)
                low[loose] += size - inside - down
                high[loose] += up - inside - size
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
    name, z_low, z_high = f.architecture.activation, f.zeta + low, f.zeta + high
    g, width = signs * f.g.T, np.maximum(z_high - z_low, 1e-9)
    a = g * (float_phi(name, z_high) - float_phi(name, z_low)) / width
    best, slopes = np.full((len(parts), 1), -np.inf), a
    before, p = best, None
    z = z_low[..., None] + width[..., None] * _GRID
    lines = g[..., None] * float_phi(name, z)
    for step in range(_STEPS):
        below = lines - a[..., None] * z
        place = below.argmin(2, keepdims=True)
        worst, p = sets.most_of_row(-(signs * f.readout.T + a @ f.units.T), p)
        total = signs * f.k_0 + a @ f.zeta.T - worst + np.take_along_axis(below, place, 2).sum(1)
        slopes, best = np.where(total > best, a, slopes), np.fmax(total, best)
        if step >= _AT_LEAST and bool(((best > _ENOUGH) | (best < _HOPELESS)).all()):
            break
        if step % _LOOK == 0:
            if bool(((best > _ENOUGH) | (best < before + 0.05 * np.abs(best))).all()):
                break
            before = best
        reached = f.zeta + (f.rho + p.reshape(len(p), -1) @ f.out) @ f.units
        a = a + (0.3 / (1 + step / 10)) * np.abs(g) * (reached - np.take_along_axis(z, place, 2)[..., 0]) / width
    rounded = [tuple(float(f"{s:.{_DIGITS}g}") for s in row) for row in slopes]
    columns = zip(rounded, exact.tolist(), best[:, 0].tolist(), strict=True)
    return [(Leaf(s, tuple(heads)), value) for s, heads, value in columns]


@np.errstate(all="ignore")
def attracting(f: FloatTables, inputs: Inputs) -> int:
    """The free position of largest weight in the head that can move the output most."""
    half = _Sets(f, [inputs]).boxes()[1]
    moves = np.einsum("hij,hi,j->h", np.abs(f.through), half[0], np.abs(f.g[:, 0]))
    weights = f.sums[int(moves.argmax()), :-1, -1].reshape(2, -1).max(0)
    return max(inputs.free, key=lambda t: weights[t])
