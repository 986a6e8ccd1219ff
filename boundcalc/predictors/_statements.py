"""Statements about the risk of one predictor: facts and values. docs/certificates.md proves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from flint import arb, fmpz

from boundcalc.base import theory
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import upper_float
from boundcalc.base.schema import Count, Length, Size, read_complete
from boundcalc.predictors._tails import limit

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
        """The statement and its proof, as the page has them."""
        return theory.page("certificates.md")[self.name]

    @property
    def meanings(self) -> dict[str, str]:
        """The meaning of each fact, in words."""
        return {f.name: f.metadata["words"] for f in fields(self.facts)}

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
    """Errors of a predictor, or of a rule, among examples that test."""

    errors: Count = field(
        metadata={"words": "wrong ones among the examples that test; of a rule also those without answer"}
    )
    n: Size = field(metadata={"words": "examples that may be picked or that test"})

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
