"""R1: the floor of the risk, by rare cells that the sample misses and on which a member errs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flint
from flint import arb

from boundcalc.statements.floors.base import Construction, Room
from boundcalc.statements.floors.counting import errs

MOST_EXACT = 400
"""Cells for which the unseen ones are counted exactly; of more by their mean and variance."""


def risk_floor(room: Room, construction: Construction) -> arb | None:
    """R1: cells of small chance that the sample misses, on which a member errs; None where members do not err."""
    if not errs(room, construction, strictly=True):
        return None
    m, rare, delta = room.setting.sample.n_train, construction.cells(room) - 1, arb(room.setting.sample.delta)
    best = arb(0)
    for tenth in range(3, 20) if rare <= MOST_EXACT else (10,):
        if rare * tenth >= 10 * m:
            continue
        with flint.ctx.workprec(2 * rare + 128 if rare <= MOST_EXACT else flint.ctx.prec):
            chance = arb(tenth) / (10 * m)
            missed = [(m * (-j * chance).log1p()).exp() for j in range(1, rare + 1 if rare <= MOST_EXACT else 2)]
            if rare <= MOST_EXACT:
                unseen = arb(most_unseen(rare, missed, delta))
            else:
                unseen = rare * missed[0] - (rare * missed[0] * delta / (1 - delta)).sqrt()
            best = best.max(unseen * chance)
    return best


def most_unseen(rare: int, missed: Sequence[arb], delta: arb) -> int:
    """The largest r such that r cells or more are unseen with a chance above delta (inclusion and exclusion).

    Args:
        rare: how many cells there are.
        missed: the chance that 1, 2, ... named cells are unseen.
        delta: the chance to exceed.
    """
    some = [math.comb(rare, j) * each for j, each in enumerate(missed, start=1)]
    low, high = 0, rare + 1
    while high - low > 1:
        r = (low + high) // 2
        terms = [(-1) ** (j - r) * math.comb(j - 1, r - 1) * some[j - 1] for j in range(r, rare + 1)]
        low, high = (r, high) if bool(sum(terms, start=arb(0)) > delta) else (low, r)
    return low
