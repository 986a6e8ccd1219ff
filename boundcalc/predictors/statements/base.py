"""What a statement about one predictor is: its text, the facts it needs, and its value from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from boundcalc.base import theory
from boundcalc.base.errors import CertificateError

MOST = 10**9
"""Largest count a certificate may speak of."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """One number a statement rests on: how it is read, and what it means."""

    read: Callable[[str, object], Any]
    meaning: str


@dataclass(frozen=True, slots=True)
class PredictorStatement:
    """A statement about the risk of one predictor.

    Attributes:
        name: how certificates name it; docs/certificates.md says and proves it under this name.
        facts: what it needs to know, by name.
        value: an upper bound of the risk from the facts and delta, rounded up; facts have been read.
        consistent: what is wrong with facts that no run can have, or None.
    """

    name: str
    facts: Mapping[str, Fact]
    value: Callable[[Facts, float], float]
    consistent: Callable[[Facts], str | None]

    @property
    def entry(self) -> theory.Entry:
        """What it says, and why."""
        return theory.page("certificates.md")[self.name]

    def read(self, given: object) -> dict[str, Any]:
        """The facts of a JSON object: each there, none too much, all possible together."""
        if not isinstance(given, Mapping):
            raise CertificateError(f"facts are a JSON object, got {type(given).__name__}")
        for name in given:
            if name not in self.facts:
                raise CertificateError(f"{self.name} has no fact {name!r}; it rests on {', '.join(self.facts)}")
        for name in self.facts:
            if name not in given:
                raise CertificateError(f"{self.name} needs the fact {name!r}: {self.facts[name].meaning}")
        found = {name: fact.read(name, given[name]) for name, fact in self.facts.items()}
        wrong = self.consistent(found)
        if wrong is not None:
            raise CertificateError(f"facts of {self.name}: {wrong}")
        return found

    def risk(self, given: object, delta: float) -> float:
        """The bound from facts as they stand in a certificate."""
        facts = self.read(given)
        if not 0 < delta < 1:
            raise CertificateError(f"delta must lie between 0 and 1, got {delta!r}")
        return min(1.0, self.value(facts, delta))


def count(name: str, value: object) -> int:
    """A whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise CertificateError(f"{name} must be a whole number from 0 to {MOST}, got {value!r}")
    return value


def positive_count(name: str, value: object) -> int:
    """A whole number from 1."""
    if count(name, value) == 0:
        raise CertificateError(f"{name} must be at least 1")
    return int(value)  # type: ignore[call-overload]


def real(name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CertificateError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def shares(name: str, value: object) -> tuple[tuple[int, float], ...]:
    """Pairs (count, share), shares positive and together at most 1 (exactly, as the floats they are)."""
    if not isinstance(value, list | tuple) or not value:
        raise CertificateError(f"{name} must be a list of pairs [errors, share of delta], got {value!r}")
    found: list[tuple[int, float]] = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise CertificateError(f"{name} must hold pairs [errors, share of delta], got {pair!r}")
        share = real(f"a share of {name}", pair[1])
        if share <= 0:
            raise CertificateError(f"a share of {name} must be positive, got {share!r}")
        found.append((count(f"errors of {name}", pair[0]), share))
    if sum(Fraction(share) for _, share in found) > 1:
        raise CertificateError(f"the shares of {name} come to more than 1: {[share for _, share in found]}")
    return tuple(found)


ERRORS = Fact(count, "wrong ones among the examples that test")
N = Fact(positive_count, "examples that may be picked or that test")


def errors_within(facts: Facts) -> str | None:
    """No more errors than examples."""
    if facts["errors"] > facts["n"]:
        return f"{facts['errors']} errors among {facts['n']} examples"
    return None
