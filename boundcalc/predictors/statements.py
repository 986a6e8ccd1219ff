"""Statements about the risk of one predictor: facts and values. docs/certificates.md proves them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from flint import arb, fmpz

from boundcalc.base import theory
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import certainly_le, upper_float
from boundcalc.base.schema import Length, read_complete
from boundcalc.predictors.tails import binomial_mass, binomial_tail, limit, rounded_up, turn

MOST = 10**9
"""Largest count in a certificate."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PredictorStatement:
    """A statement about the risk of one predictor.

    Attributes:
        name: how certificates name it; docs/certificates.md says and proves it under this name.
        facts: a dataclass of what it needs to know, each with its "words"; it refuses facts that no run can have.
        value: an upper bound of the risk from the facts and delta, rounded up.
    """

    name: str
    facts: type
    value: Callable[[Any, float], float]

    @property
    def entry(self) -> theory.Entry:
        """What it says, and why."""
        return theory.page("certificates.md")[self.name]

    @property
    def meanings(self) -> dict[str, str]:
        """What each fact is, in words."""
        return {f.name: f.metadata["words"] for f in fields(self.facts)}

    def read(self, facts: object) -> Any:
        """The facts of a JSON object: each there, none too much, all possible together."""
        return read_as(self.facts, f"facts of {self.name}", facts)

    def risk(self, claimed: object, delta: float) -> float:
        """The bound from facts as they stand in a certificate."""
        facts = self.read(claimed)
        if not 0 < delta < 1:
            raise CertificateError(f"delta must lie between 0 and 1, got {delta!r}")
        return min(1.0, self.value(facts, delta))


def read_as(kind: type[T], what: str, data: object) -> T:
    """A dataclass from the JSON object of all its fields."""
    try:
        return read_complete(kind, data, what)
    except InvalidSetting as error:
        raise CertificateError(str(error)) from None


def count(name: str, value: object, least: int = 0) -> int:
    """A whole number from `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise CertificateError(f"{name} must be a whole number from {least} to {MOST}, got {value!r}")
    return value


def positive_count(name: str, value: object) -> int:
    """A whole number from 1."""
    return count(name, value, 1)


def real(name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CertificateError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def bits_of(probability: Fraction) -> float:
    """-log2 of a probability, rounded up."""
    top, bottom = arb(fmpz(probability.denominator)), arb(fmpz(probability.numerator))
    return max(0.0, upper_float((top.log() - bottom.log()) / arb.const_log2()))


def shares(name: str, value: object) -> tuple[tuple[int, float], ...]:
    """Pairs (errors, share): shares positive and together at most 1 (exactly, as floats), no errors twice."""
    if not isinstance(value, list | tuple) or not value:
        raise CertificateError(f"{name} must be a list of pairs [errors, share of delta], got {value!r}")
    steps: list[tuple[int, float]] = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise CertificateError(f"{name} must hold pairs [errors, share of delta], got {pair!r}")
        steps.append((count(f"errors of {name}", pair[0]), real(f"a share of {name}", pair[1])))
    if any(share <= 0 for _, share in steps) or sum(Fraction(share) for _, share in steps) > 1:
        raise CertificateError(f"the shares of {name} must be positive and come to at most 1, got {value!r}")
    if len({errors for errors, _ in steps}) != len(steps):
        raise CertificateError(f"{name} names a number of errors twice")
    return tuple(steps)


# -- H, G7, G15, G15p: a predictor or rule fixed before the examples, or one of countably many that share delta


@dataclass(frozen=True)
class ErrorCount:
    """Errors of a predictor, or of a rule, among examples that test."""

    errors: Annotated[int, count] = field(
        metadata={"words": "wrong ones among the examples that test; of a rule also those without answer"}
    )
    n: Annotated[int, positive_count] = field(metadata={"words": "examples that may be picked or that test"})

    def __post_init__(self) -> None:
        if self.errors > self.n:
            raise InvalidSetting(f"{self.errors} errors among {self.n} examples")


@dataclass(frozen=True)
class _Coded(ErrorCount):
    bits: Length = field(metadata={"words": "length of the code word of the predictor or rule"})


@lru_cache(maxsize=4096)
def _confidence_limit(errors: int, n: int, delta: float) -> float:
    """CP(errors; n; delta), rounded up."""
    return limit(errors, n, arb(delta).log())


def _holdout(facts: ErrorCount, delta: float) -> float:
    return _confidence_limit(facts.errors, facts.n, delta)


def _occam(facts: _Coded, delta: float) -> float:
    return limit(facts.errors, facts.n, arb(delta).log() - arb(facts.bits) * arb.const_log2())


H, G15P = PredictorStatement("H", ErrorCount, _holdout), PredictorStatement("G15p", ErrorCount, _holdout)
G7, G15 = PredictorStatement("G7", _Coded, _occam), PredictorStatement("G15", _Coded, _occam)

# -- G6': PAC-Bayes for weights drawn once from a posterior and tested on the examples the posterior was made from


@dataclass(frozen=True)
class _Drawn(ErrorCount):
    nats: float = field(metadata={"words": "log of dQ_S/dP at the weights drawn, and log of the draws made"})


def _log_weight(errors: int) -> arb:
    """Log of q(e) = 6 / (pi (e + 1))^2, a law on the counts fixed before any data."""
    return (6 / (arb.pi() * (errors + 1)) ** 2).log()


def _single_draw(facts: _Drawn, delta: float) -> float:
    errors, n = facts.errors, facts.n
    if errors >= n:
        return 1.0
    level = arb(delta).log() + _log_weight(errors) - arb(facts.nats)
    high = turn(lambda p: bool(binomial_mass(errors, n, p).log() >= level), errors / n)

    def holds(p: float) -> bool:
        beyond = certainly_le(arb(errors), arb(p) * n)  # from there on the mass falls
        return beyond and certainly_le(binomial_mass(errors, n, p).log(), level)

    return rounded_up(high, holds)


G6_PRIME = PredictorStatement("G6'", _Drawn, _single_draw)

# -- G10r: predictors that learned from few picked examples and answer for all the others

_GRID = 96
_CELLS = 6000
"""Cells after which a candidate is given up."""


@lru_cache(maxsize=4096)
def joint_limit(errors: int, n: int, picks: int, references: tuple[tuple[int, float], ...], delta: float) -> float:
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

    def holds(value: float) -> bool:
        return _covers(value, errors, others, levels, top)

    return rounded_up(_guess(errors, others, levels, top), holds, step=5e-4, most=0.2)


def _covers(value: float, errors: int, others: int, levels: list[tuple[int, float]], top: float) -> bool:
    """Whether phi + (1 - phi) CP(e; n - k; d(phi)) <= value for every phi below `top`; d is 1 from there on.

    On a cell [x, y] d is at least d(x), and the rest grows with phi: so CP(e; n - k; d(x)) <= (value - y)/(1 - y) will
    do, that is P(Bin(n - k, (value - y)/(1 - y)) <= e) <= d(x).
    """
    if value <= top:
        return False
    cells, tried = [(top * i / 16, top * (i + 1) / 16) for i in range(16)], 0
    while cells:
        low, high = cells.pop()
        high, tried = min(high, top), tried + 1
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


@dataclass(frozen=True)
class _Picked(ErrorCount):
    picks: Annotated[int, count] = field(metadata={"words": "examples that were picked and learned from"})
    references: Annotated[Any, shares] = field(
        metadata={"words": "numbers of errors the bound was made for, with shares of delta, fixed beforehand"}
    )

    def __post_init__(self) -> None:
        others, most = self.n - self.picks, max(errors for errors, _ in self.references)
        if self.errors > others:
            raise InvalidSetting(f"{self.errors} errors among the {others} examples that were not picked")
        if 0 < others <= most:
            raise InvalidSetting(f"a reference of {most} errors, but only {others} others")


def _few_picks(facts: _Picked, delta: float) -> float:
    return joint_limit(facts.errors, facts.n, facts.picks, facts.references, delta)


G10R = PredictorStatement("G10r", _Picked, _few_picks)
STATEMENTS: dict[str, PredictorStatement] = {s.name: s for s in (H, G7, G10R, G15, G15P, G6_PRIME)}
"""Every statement by name; certificates are read with it."""
