"""Statements about the risk of one predictor (docs/certificates.md proves them), and their binomial limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb, fmpz

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import certainly_le, upper_float
from boundcalc.base.schema import Count, Length, Size, read_complete

T = TypeVar("T")
_SURE_BITS = 48
"""Relative precision of a tail below which it is computed by the other incomplete beta function, a slower one."""
_LEAST_LOG = -700.0
"""Probabilities with a smaller logarithm are below every float."""


@dataclass(frozen=True, slots=True)
class PredictorStatement:
    """A statement about the risk of one predictor.

    Attributes:
        name: how certificates name it; docs/certificates.md says and proves it under this name.
        facts: a dataclass of what it needs to know; it refuses facts that no run can have.
        value: an upper bound of the risk from the facts and delta, rounded up.
    """

    name: str
    facts: type
    value: Callable[[Any, float], float]

    def read(self, facts: object) -> Any:
        """The facts of a JSON object, complete and possible together."""
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


def bits_of(probability: Fraction) -> float:
    """-log2 of a probability, rounded up."""
    top, bottom = arb(fmpz(probability.denominator)), arb(fmpz(probability.numerator))
    return max(0.0, upper_float((top.log() - bottom.log()) / arb.const_log2()))


# -- H, G7, G15, G15p: a predictor or rule fixed before the examples, or one of countably many that share delta


@dataclass(frozen=True)
class ErrorCount:
    """Errors of a predictor, or of a rule, among examples that test.

    Attributes:
        errors: wrong ones among the examples that test; of a rule also those without answer.
        n: examples that may be picked or that test.
    """

    errors: Count
    n: Size

    def __post_init__(self) -> None:
        if self.errors > self.n:
            raise InvalidSetting(f"{self.errors} errors among {self.n} examples")


@dataclass(frozen=True)
class _Coded(ErrorCount):
    """Also the length of the code word of the predictor or rule."""

    bits: Length


def _holdout(facts: ErrorCount, delta: float) -> float:
    return limit(facts.errors, facts.n, arb(delta).log())


def _occam(facts: _Coded, delta: float) -> float:
    return limit(facts.errors, facts.n, arb(delta).log() - arb(facts.bits) * arb.const_log2())


H, G15P = PredictorStatement("H", ErrorCount, _holdout), PredictorStatement("G15p", ErrorCount, _holdout)
G7, G15 = PredictorStatement("G7", _Coded, _occam), PredictorStatement("G15", _Coded, _occam)


# -- binomial tails as enclosures, the confidence limits they prove, and the guesses in floats they start from


def binomial_tail(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) <= errors), enclosed: 1 - I_p(errors + 1, n - errors); p may be an enclosure within [0, 1]."""
    if errors >= n:
        return arb(1)
    p = arb(p)
    tail = 1 - p.beta_lower(errors + 1, n - errors, True)
    return tail if tail.rel_accuracy_bits() >= _SURE_BITS else (1 - p).beta_lower(n - errors, errors + 1, True)


def binomial_mass(errors: int, n: int, p: arb | float) -> arb:
    """P(Bin(n, p) = errors), enclosed."""
    return arb.bin_uiui(n, errors) * arb(p) ** errors * (1 - arb(p)) ** (n - errors)


def limit(errors: int, n: int, log_delta: arb) -> float:
    """Clopper and Pearson's upper limit, rounded up: the largest p with P(Bin(n, p) <= errors) >= exp(log_delta)."""
    delta, guess = log_delta.exp(), float_limit(errors, n, float(log_delta))
    return rounded_up(guess, lambda p: certainly_le(binomial_tail(errors, n, p), delta))


def float_limit(errors: int, n: int, log_delta: float) -> float:
    """The same limit by SciPy: a guess for `limit` and for searches, never a certificate."""
    if errors >= n:
        return 1.0
    if errors == 0:
        return -math.expm1(log_delta / n)
    if log_delta < _LEAST_LOG:
        return root(lambda p: float(binomial_tail(errors, n, p).log()) - log_delta, errors / n)
    from scipy.special import betainccinv

    return float(betainccinv(errors + 1, n - errors, math.exp(log_delta)))


def root(falling: Callable[[float], float], low: float) -> float:
    """The root in [low, 1] of a function that falls, by bisection down to neighbouring floats."""
    high = 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def rounded_up(guess: float, holds: Callable[[float], bool], step: float = 1e-13, most: float = 1e-2) -> float:
    """The guess, or the first value a little above it for which `holds` is certain; 1 where there is none."""
    while step <= most:
        value = guess + step * min(guess, 1 - guess)
        if value >= 1:
            return 1.0
        if value > guess and holds(value):
            return value
        step *= 4
    return 1.0
