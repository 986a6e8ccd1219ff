"""What is fixed before the examples: members of a list that shares delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.predictors.certificate import equal_shares
from boundcalc.predictors.statements import count, read_as, shares

_References = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One stop of one run, with its part of delta.

    Attributes:
        prefix: examples the run starts from, and does not answer for.
        batches: how many are picked in each round up to this stop; none for holdout.
        seed: of the learner.
        references: for a fixed number of picks, the numbers of errors its bound is made for, with shares of `delta`.
        delta: its part of the failure probability; 0 until `shared`.
    """

    prefix: int = 0
    batches: tuple[int, ...] = ()
    seed: int = 0
    references: _References = ()
    delta: float = 0.0

    def __post_init__(self) -> None:
        count("prefix", self.prefix)
        count("seed", self.seed)
        for batch in self.batches:
            count("a batch", batch, 1)
        if bool(self.references) != bool(self.batches):
            raise InvalidSetting("references belong to runs with picks: give both, batches and references, or none")
        if self.references:
            shares("references", self.references)

    @property
    def stop(self) -> int:
        """Picks at this stop."""
        return sum(self.batches)

    @property
    def statement(self) -> str:
        """What its number follows from."""
        return "G10r" if self.batches else "H"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Member:
        """A member from an alternative without its delta."""
        return read_as(cls, "an alternative", {**data, "delta": 0})


def shared(members: Iterable[Member], delta: float) -> tuple[Member, ...]:
    """The members, each with an equal part of delta."""
    alternatives = tuple(members)
    if not alternatives:
        raise InvalidSetting("a plan needs at least one member")
    return tuple(replace(member, delta=equal_shares(delta, len(alternatives))) for member in alternatives)


def splits(prefixes: Iterable[int], *, seed: int = 0) -> tuple[Member, ...]:
    """Holdout: a model per prefix, tested on the rest."""
    return tuple(Member(prefix=prefix, seed=seed) for prefix in prefixes)


def stops(
    n: int, batches: Sequence[int], at: Sequence[int], *, prefix: int = 0, seed: int = 0, clean: float = 0.5
) -> tuple[Member, ...]:
    """Stops of one trajectory with n candidates: after how many picks its number may be taken.

    `clean` is the share of each stop's delta that is spent on no errors being left; the rest is for one error in eight.
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


def default_splits(m: int, delta: float, *, seed: int = 0) -> tuple[Member, ...]:
    """Holdout: a quarter, a half or three quarters train."""
    return shared(splits(sorted({max(1, m * part // 4) for part in (1, 2, 3)} - {m}), seed=seed), delta)


_FIRST = 32
"""Examples that Pick-to-Learn starts from by default: from nothing, the worst examples teach slowly."""
_ONE_BY_ONE = (2, 3, 4, 5, 7, 10)
"""Stops of a run that picks one example at a time."""
_BY_MORE = (4, 4, 8, 16)
"""Rounds behind a long prefix; every one ends in a stop."""


def default_picks(m: int, delta: float, *, prefix: int | None = None, seed: int = 0) -> tuple[Member, ...]:
    """Pick-to-Learn: one pick at a time after a few examples, from two seeds; larger rounds after a quarter of them.

    The long run is for what few examples do not teach; it costs its shares of delta, and time only where the short ones
    leave room. A requested long prefix is also tested as it is: holdout is among its members.
    """
    alternatives: list[Member] = []
    short = min(_FIRST, m // 8) if prefix is None else prefix
    if short <= _FIRST:
        rounds = [1] * _ONE_BY_ONE[-1]
        for s in (seed, seed + 1):
            alternatives += stops(m - short, rounds, _ONE_BY_ONE, prefix=short, seed=s, clean=0.875)
    else:
        alternatives += splits([short], seed=seed)
    if prefix is None or prefix > _FIRST:
        long = m // 4 if prefix is None else prefix
        alternatives += stops(m - long, _BY_MORE, list(accumulate(_BY_MORE)), prefix=long, seed=seed)
    return shared(alternatives, delta)
