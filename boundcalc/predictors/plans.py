"""Plans of Pick-to-Learn: what is fixed before the examples and shares delta, and what G10r promises of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

from flint import arb

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import certainly_le
from boundcalc.base.schema import ClosedShare, Count, Size, check_fields
from boundcalc.predictors._statements import ErrorCount, H, PredictorStatement, binomial_tail, limit, rounded_up

_References = tuple[tuple[Count, ClosedShare], ...]
"""Numbers of errors that a bound is made for, each with its share of delta."""


def _check_references(references: _References) -> None:
    """Refuse shares that are 0 or exceed 1 together (exactly, as floats), and a number of errors twice."""
    if any(share == 0 for _, share in references) or sum(Fraction(share) for _, share in references) > 1:
        raise InvalidSetting(f"the shares of references must be positive and come to at most 1, got {references}")
    if len({errors for errors, _ in references}) != len(references):
        raise InvalidSetting(f"references name a number of errors twice: {references}")


# -- G10r: predictors that learned from few picked examples and answer for all the others

_GRID = 96


@dataclass(frozen=True)
class _Picked(ErrorCount):
    """Also how many examples were picked and learned from, and what the bound was made for, fixed beforehand."""

    picks: Count
    references: _References

    def __post_init__(self) -> None:
        _check_references(self.references)
        others, most = self.n - self.picks, max((errors for errors, _ in self.references), default=self.n)
        if self.errors > others:
            raise InvalidSetting(f"{self.errors} errors among the {others} examples that were not picked")
        if 0 < others <= most:
            raise InvalidSetting(f"references of less than {others} errors are needed: there are as many others")


@lru_cache(maxsize=4096)
def _few_picks(facts: _Picked, delta: float) -> float:
    """G10r's bound of the risk, rounded up."""
    errors, n, picks = facts.errors, facts.n, facts.picks
    if picks + errors >= n:
        return 1.0
    if picks == 0:
        return limit(errors, n, arb(delta).log())
    levels = [(e, limit(picks + e, n, (arb(share) * arb(delta)).log())) for e, share in facts.references]
    if len(levels) == 1 and levels[0][0] == errors:
        return levels[0][1]
    top, others = min(level for _, level in levels), n - picks

    def holds(value: float) -> bool:
        return value > top and _covers(value, errors, others, levels, 0.0, top)

    return rounded_up(_guess(errors, others, levels, top), holds, step=5e-4, most=0.2)


G10R = PredictorStatement("G10r", _Picked, _few_picks)


def _covers(
    value: float, errors: int, others: int, levels: list[tuple[int, float]], low: float, high: float, cuts: int = 30
) -> bool:
    """Whether phi + (1 - phi) CP(e; n - k; d(phi)) <= value for every phi in [low, high].

    There d is at least d(low), and the rest grows with phi: so CP(e; n - k; d(low)) <= (value - high)/(1 - high) will
    do, that is P(Bin(n - k, (value - high)/(1 - high)) <= e) <= d(low). Where it does not hold the cell is halved.
    """
    spent = sum((binomial_tail(e, others, (arb(level) - low) / (1 - arb(low))) for e, level in levels), arb(0))
    if certainly_le(binomial_tail(errors, others, (arb(value) - high) / (1 - arb(high))), spent):
        return True
    middle, ends = (low + high) / 2, (value, errors, others, levels)
    return cuts > 0 and _covers(*ends, low, middle, cuts - 1) and _covers(*ends, middle, high, cuts - 1)


def _guess(errors: int, others: int, levels: list[tuple[int, float]], top: float) -> float:
    """The same supremum in floats, on a grid that is finer near both ends."""
    import numpy as np
    from scipy.special import bdtr, betainccinv

    phi = top * (1 - np.cos(np.pi * np.arange(_GRID) / _GRID)) / 2
    spent = sum(bdtr(e, others, (level - phi) / (1 - phi)) for e, level in levels)
    return float(np.max(phi + (1 - phi) * betainccinv(errors + 1, others - errors, np.minimum(spent, 1.0))))


# -- members of a plan


@dataclass(frozen=True, slots=True)
class Member:
    """One stop of one run.

    Attributes:
        prefix: examples the run starts from, and does not answer for.
        batches: how many are picked in each round up to this stop; none for holdout.
        seed: of the learner.
        references: for a fixed number of picks, the numbers of errors its bound is made for, with shares of its delta.
    """

    prefix: Count = 0
    batches: tuple[Size, ...] = ()
    seed: Count = 0
    references: _References = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if bool(self.references) != bool(self.batches):
            raise InvalidSetting("references belong to runs with picks: give both, batches and references, or none")
        _check_references(self.references)

    @property
    def stop(self) -> int:
        """Picks at this stop."""
        return sum(self.batches)

    def facts(self, examples: int) -> tuple[str, dict[str, Any]]:
        """The statement that its number follows from, and what this needs of so many examples besides the errors."""
        n = {"n": examples - self.prefix}
        return ("G10r", {**n, "picks": self.stop, "references": self.references}) if self.batches else ("H", n)

    def risk(self, errors: int, examples: int, delta: float) -> float:
        """The bound that so many errors left would prove."""
        name, facts = self.facts(examples)
        return (G10R if name == "G10r" else H).risk({"errors": errors, **facts}, delta)


def stops(
    n: int, batches: Sequence[int], at: Sequence[int], *, prefix: int = 0, seed: int = 0, clean: float = 0.5
) -> tuple[Member, ...]:
    """Stops of one trajectory with n candidates: after how many picks its number may be taken.

    `clean` is the part of each stop's delta that is spent on no errors being left; the rest is for one error in eight.
    Between and around them the bound is within a few per cent of the best.
    """
    sums = [0, *accumulate(batches)]
    if set(at) - set(sums):
        raise InvalidSetting(f"no round ends at {min(set(at) - set(sums))} picks: rounds end at {sums[1:]}")
    members: list[Member] = []
    for stop in (stop for stop in at if stop < n):
        many, rounds = (n - stop) // 8, tuple(batches[: sums.index(stop)])
        references = ((0, clean), (many, 1 - clean)) if many and clean < 1 else ((0, 1.0),)
        members.append(Member(prefix, rounds, seed, references if rounds else ()))
    return tuple(members)


def default_splits(m: int, *, seed: int = 0) -> tuple[Member, ...]:
    """Holdout: a quarter, a half or three quarters train."""
    return tuple(Member(prefix, seed=seed) for prefix in sorted({max(1, m * part // 4) for part in (1, 2, 3)} - {m}))


_FIRST = 32
"""Examples that Pick-to-Learn starts from by default: from nothing, the worst examples teach slowly."""
_ONE_BY_ONE = (2, 3, 4, 5, 7, 10)
"""Stops of a run that picks one example at a time."""
_BY_MORE = (4, 4, 8, 16)
"""Rounds behind a long prefix; every one ends in a stop."""


def default_picks(m: int, *, seed: int = 0) -> tuple[Member, ...]:
    """Pick-to-Learn: one pick at a time after a few examples, from two seeds; larger rounds after a quarter of them.

    The long run is for what few examples do not teach; it costs its parts of delta, and time only where the short ones
    leave room.
    """
    short, long = min(_FIRST, m // 8), m // 4
    alternatives: list[Member] = []
    for s in (seed, seed + 1):
        alternatives += stops(m - short, [1] * _ONE_BY_ONE[-1], _ONE_BY_ONE, prefix=short, seed=s, clean=0.875)
    alternatives += stops(m - long, _BY_MORE, list(accumulate(_BY_MORE)), prefix=long, seed=seed)
    return tuple(alternatives)
