"""Compares a value of the library, in all three number systems, with 50 digits of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, NumberSystem
from tests.oracle.covers_mp import MP, Mpf

TOLERANCE = 1e-12
_ROUNDING = MP.mpf(10) ** -40
"""The oracle is rounded too."""


def as_mpf(x: arb) -> Mpf:
    """An exact ball (of radius 0) as a 50-digit number."""
    mantissa, exponent = x.man_exp()
    return MP.mpf(int(mantissa)) * MP.mpf(2) ** int(exponent)


def disagreements(value: Callable[[NumberSystem], Any], truth: Any, tolerance: float = TOLERANCE) -> list[str]:
    """Where floats or logs are off by more than a relative tolerance, or the interval misses the truth."""
    return [
        problem
        for ns in (FLOAT, LOG, INTERVAL)
        for name, found, expected in _pairs(value(ns), truth)
        for problem in _compare(ns, name, found, MP.mpf(expected), tolerance)
    ]


def _pairs(found: Any, truth: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(truth, Mapping):
        missing = set(truth) - set(found)
        if missing:
            raise KeyError(f"no value for {missing}")
        for name in truth:
            yield name, found[name], truth[name]
    else:
        yield "value", found, truth


def _compare(ns: NumberSystem, name: str, found: Any, truth: Mpf, tolerance: float) -> Iterator[str]:
    if ns is INTERVAL:
        ball = arb(found)
        low, high = as_mpf(ball.lower()), as_mpf(ball.upper())
        if high < truth * (1 - _ROUNDING):
            yield f"interval {name}: upper end {MP.nstr(high, 20)} is below {MP.nstr(truth, 20)}"
        if low > truth * (1 + _ROUNDING) or high - low > abs(truth) * MP.mpf(10) ** -25:
            yield f"interval {name}: [{MP.nstr(low, 20)}, {MP.nstr(high, 20)}] does not enclose {MP.nstr(truth, 20)}"
    elif ns is LOG:
        value = LogFloat.of(found)
        if truth == 0 or value.sign == 0:
            if value.sign or truth:
                yield f"log {name}: {value} for {MP.nstr(truth, 20)}"
        elif value.sign != MP.sign(truth) or abs(value.log - MP.log(abs(truth))) > tolerance * max(1.0, abs(value.log)):
            yield f"log {name}: {value} for log {MP.nstr(MP.log(abs(truth)), 20)}"
    elif abs(MP.mpf(found) - truth) > tolerance * abs(truth):
        yield f"float {name}: {found!r} for {MP.nstr(truth, 20)}"
