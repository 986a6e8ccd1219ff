"""Fifty digits, and how this checker says no."""

import math
from collections.abc import Mapping
from typing import Any

import mpmath

Real = Any
DIGITS = 50
MP = mpmath.MPContext()
MP.dps = DIGITS


class Refused(Exception):
    """A certificate that cannot be read, or whose claim does not follow."""


def num(x: Real) -> Real:
    """A number, exactly as given."""
    return MP.mpf(x)


def grown(x: Real) -> float:
    """The least float that is not below."""
    y = float(x)
    return y if num(y) >= x else math.nextafter(y, math.inf)


def demand(holds: Any, what: str) -> None:
    """A side condition; its failure is reported."""
    if not bool(holds):
        raise Refused(what)


def unknown(what: str, name: object) -> Refused:
    """What this checker does not know it refuses by name."""
    return Refused(f"it does not know the {what} {name!r:.80}")


def within(choice: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuses a choice that has not just these parameters, each in its range."""
    lemma, params = choice.lemma, choice.params
    demand(params.keys() == ranges.keys(), f"{lemma} takes the parameters {', '.join(ranges)}")
    for name, (low, high) in ranges.items():
        demand(low <= num(params[name]) <= high, f"{lemma} needs {low} <= {name} <= {high}")
