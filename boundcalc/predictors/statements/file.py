"""The value of G10f: how many of a finite file can be wrong, every number of grabbed examples in turn."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.intervals import certainly_le, upper_float
from boundcalc.predictors.tails import hypergeometric_tail

_References = tuple[tuple[int, float], ...]


@lru_cache(maxsize=4096)
def file_limit(errors: int, n: int, picks: int, file: int, references: _References, delta: float) -> float:
    """The largest share of errors on the other file - n examples, rounded up."""
    rest, others = file - n, n - picks
    if others <= 0:
        return 1.0
    # With no picks the one hypergeometric limit serves every number of errors.
    made_for = references if picks else ((errors, sum(share for _, share in references)),)
    levels = [(e, _first(e, n, picks, file, arb(share) * arb(delta))) for e, share in made_for]
    if len(levels) == 1 and levels[0][0] == errors:
        most = levels[0][1] - 1
    else:
        most = _most(errors, n, picks, file, levels)
    return min(1.0, upper_float(arb(max(0, min(most - errors, rest))) / rest))


def _first(errors: int, n: int, picks: int, file: int, delta: arb) -> int:
    """The least v with P(Hyp(file, k + v, n) <= k + errors) <= delta, for certain."""
    low, high = errors, file - picks + 1
    while low < high:
        middle = (low + high) // 2
        if middle > file - picks or certainly_le(hypergeometric_tail(picks + errors, file, picks + middle, n), delta):
            high = middle
        else:
            low = middle + 1
    return low


def _most(errors: int, n: int, picks: int, file: int, levels: list[tuple[int, int]]) -> int:
    """The largest g + w that is not excluded: max over g, d(g) < 1, of g + max{w: P(Hyp(.., w, ..) <= e) > d(g)}."""
    most, drawn = errors, n - picks
    for grabbed in range(min(first for _, first in levels)):
        population = file - picks - grabbed
        if population < drawn:
            break
        spent = arb(0)
        for e, first in levels:
            spent = spent + (
                hypergeometric_tail(e, population, first - grabbed, drawn) if first - grabbed <= population else arb(0)
            )
        low, high = max(errors, most - grabbed), population + 1  # the least w that is excluded lies in here
        if low > population:
            continue
        while low < high:
            middle = (low + high) // 2
            if middle > population or certainly_le(hypergeometric_tail(errors, population, middle, drawn), spent):
                high = middle
            else:
                low = middle + 1
        most = max(most, grabbed + low - 1)
    return most
