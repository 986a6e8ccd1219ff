"""The value of G10r: a supremum over what is not seen, cell by cell."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.intervals import certainly_le
from boundcalc.predictors.tails import binomial_tail, limit, rounded_up

_GRID = 96
_CELLS = 6000
"""Cells after which a candidate is given up."""

_References = tuple[tuple[int, float], ...]


@lru_cache(maxsize=4096)
def joint_limit(errors: int, n: int, picks: int, references: _References, delta: float) -> float:
    """G10r's bound of the risk, rounded up; references are (errors, share of delta)."""
    others = n - picks
    if picks + errors >= n:
        return 1.0
    if picks == 0:
        return limit(errors, n, arb(delta).log())
    levels = [(e, limit(picks + e, n, (arb(share) * arb(delta)).log())) for e, share in references]
    if len(levels) == 1 and levels[0][0] == errors:
        return levels[0][1]
    top = min(level for _, level in levels)
    guess = _guess(errors, others, levels, top)

    def holds(value: float) -> bool:
        return _covers(value, errors, others, levels, top)

    return rounded_up(guess, holds, step=5e-4, most=0.2)


def _covers(value: float, errors: int, others: int, levels: list[tuple[int, float]], top: float) -> bool:
    """Whether phi + (1 - phi) CP(e; n - k; d(phi)) <= value for every phi below `top`; d is 1 from there on.

    On a cell [x, y] d is at least d(x), and the rest grows with phi: so CP(e; n - k; d(x)) <= (value - y)/(1 - y) will
    do, that is P(Bin(n - k, (value - y)/(1 - y)) <= e) <= d(x).
    """
    if value <= top:
        return False
    cells = [(top * i / 16, top * (i + 1) / 16) for i in range(16)]
    tried = 0
    while cells:
        low, high = cells.pop()
        high = min(high, top)
        tried += 1
        if tried > _CELLS:
            return False
        spent = arb(0)
        for reference, level in levels:
            spent = spent + binomial_tail(reference, others, (arb(level) - low) / (1 - arb(low)))
        if certainly_le(binomial_tail(errors, others, (arb(value) - high) / (1 - arb(high))), spent):
            continue
        middle = (low + high) / 2
        if not low < middle < high or high - low < 1e-9 * top:
            return False
        cells += [(low, middle), (middle, high)]
    return True


def _guess(errors: int, others: int, levels: list[tuple[int, float]], top: float) -> float:
    """The same supremum in floats, on a grid that is finer near both ends."""
    import numpy as np
    from scipy.special import bdtr, betainccinv

    phi = top * (1 - np.cos(np.pi * np.arange(_GRID) / _GRID)) / 2
    spent = sum(bdtr(e, others, (level - phi) / (1 - phi)) for e, level in levels)
    return float(np.max(phi + (1 - phi) * betainccinv(errors + 1, others - errors, np.minimum(spent, 1.0))))
