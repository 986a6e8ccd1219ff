"""Reading numbers from the command line, and writing them so that they stay upper bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import click


def number(text: str) -> float | None:
    """A float, also from 10^6 and 1_000_000; None where it is no number."""
    base, power, exponent = text.replace("_", "").partition("^")
    try:
        return float(base) ** float(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def exactly(text: str) -> int | None:
    """A whole number to its last digit (1e30 is no float); None where it is none, or beyond the range of floats."""
    found = number(text)
    if found is None or isinstance(found, complex) or not math.isfinite(found):
        return None
    base, power, exponent = text.replace("_", "").partition("^")
    try:
        exact = int(base) ** int(exponent) if power else Fraction(base)
    except ValueError:
        exact = found
    return int(exact) if exact == int(exact) else None


class Number(click.ParamType):
    """A real number: 0.05, 5e-2, 10^-3."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = number(value)
        if found is None or isinstance(found, complex):
            self.fail(f"needs a number such as 0.05 or 1e-3, got {value!r}", param, ctx)
        return found


class Whole(click.ParamType):
    """A whole number: 512, 1e6, 10^6, 1_000_000."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return int(value)
        except ValueError:
            pass
        found = exactly(value)
        if found is None:
            self.fail(f"needs a whole number such as 512, 1e6 or 10^6, got {value!r}", param, ctx)
        return found


NUMBER, WHOLE = Number(), Whole()

_MOST_EXPONENT = 300


def upper(log10: float, digits: int = 4) -> str:
    """The number 10^log10, rounded up to so many digits; beyond the range of floats, as 10^x."""
    if log10 == -math.inf:
        return "0"
    if abs(log10) > _MOST_EXPONENT:
        return f"10^{math.ceil(log10 * 10) / 10:.1f}"
    exponent = math.floor(log10)
    steps = 10 ** (digits - 1)
    whole = math.ceil(10 ** (log10 - exponent) * steps * (1 + 1e-14))
    if whole >= 10 * steps:
        whole, exponent = whole // 10, exponent + 1
    if not -4 <= exponent < 6:
        return f"{whole / steps:.{digits - 1}f}e{exponent:+03d}"
    return f"{whole / steps * 10.0**exponent:.{max(0, digits - 1 - exponent)}f}"


def short(x: float) -> str:
    """A number as people write it: 512, 10^6, 3.1e6, 0.05."""
    if not math.isfinite(x):
        return str(x)
    if x and abs(x) >= 1e5:
        power = round(math.log10(abs(x)))
        if x == 10.0**power:
            return f"10^{power}"
        return f"{x:.6g}".replace("e+0", "e").replace("e+", "e")
    return f"{x:.6g}"
