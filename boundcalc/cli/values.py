"""Reading numbers from the command line; how they are written is `base.rounding`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import plain_digits
from boundcalc.base.rounding import short as short
from boundcalc.base.rounding import upper as upper


def number(text: str) -> float | None:
    """A float, also from 10^6 and 1_000_000; None where it is no number."""
    base, power, exponent = text.replace("_", "").partition("^")
    try:
        plain_digits(text)
        return float(base) ** float(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def exactly(text: str) -> int | None:
    """A whole number to its last digit (1e30 is no float); None where it is none, or beyond the range of floats."""
    value = number(text)
    if value is None or isinstance(value, complex) or not math.isfinite(value):
        return None
    from fractions import Fraction

    base, power, exponent = text.replace("_", "").partition("^")
    try:
        exact = int(base) ** int(exponent) if power else Fraction(base)
    except ValueError:
        exact = value
    return int(exact) if exact == int(exact) else None


def shown(value: Any) -> str:
    """A value of a setting, as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short(value) if isinstance(value, int | float) else str(value)


def pairs(option: str, words: Iterable[str], example: str) -> dict[str, str]:
    """NAME=VALUE of a repeated option, each name once."""
    values: dict[str, str] = {}
    for word in words:
        name, _, text = word.partition("=")
        if not name or not text:
            raise InvalidSetting(f"{option} is NAME=VALUE, such as {example}; got {word!r}")
        if name in values:
            raise InvalidSetting(f"{option} gives {name!r} twice")
        values[name] = text
    return values


class _Number(click.ParamType):
    """A real number: 0.05, 5e-2, 10^-3."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        parsed = number(value)
        if parsed is None or isinstance(parsed, complex):
            self.fail(f"needs a number such as 0.05 or 1e-3, got {value!r}", param, ctx)
        return parsed


class _Whole(click.ParamType):
    """A whole number: 512, 1e6, 10^6, 1_000_000."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return int(plain_digits(value))
        except ValueError:
            pass
        whole = exactly(value)
        if whole is None:
            self.fail(f"needs a whole number such as 512, 1e6 or 10^6, got {value!r}", param, ctx)
        return whole


NUMBER, WHOLE = _Number(), _Whole()
