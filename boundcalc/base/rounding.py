"""Every printed number as text, in one style: upper bounds rounded up, guarantees down, estimates to the nearest."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

_MOST_EXPONENT = 300
_LN10 = math.log(10)
_OPPOSITE = {ROUND_CEILING: ROUND_FLOOR, ROUND_FLOOR: ROUND_CEILING, ROUND_HALF_EVEN: ROUND_HALF_EVEN}


def up(x: float, digits: int = 4) -> str:
    """An upper bound: what is read is at least x."""
    return _plain(x, digits, ROUND_CEILING)


def down(x: float, digits: int = 4) -> str:
    """A guarantee, a lower bound: what is read is at most x."""
    return _plain(x, digits, ROUND_FLOOR)


def near(x: float, digits: int = 4) -> str:
    """An estimate, which is no bound: the nearest number of so many digits."""
    return _plain(x, digits, ROUND_HALF_EVEN)


def percent(share: float, digits: int = 2, *, by: Callable[[float, int], str] = near) -> str:
    """A share of a whole in percent; of a bound, `by` is `up` or `down`."""
    return f"{by(100 * share, digits)}%"


def upper(log10: float, digits: int = 4) -> str:
    """The upper bound 10^log10, rounded up; beyond the range of floats, as 10^x."""
    if log10 == -math.inf:
        return "0"
    if log10 == math.inf:
        return "inf"
    if abs(log10) > _MOST_EXPONENT:
        above = Decimal(log10) * (1 + Decimal("1e-14") * (1 if log10 > 0 else -1))
        return f"10^{above.quantize(Decimal('0.1'), ROUND_CEILING)}"
    lost = Decimal(1) + Decimal("1e-14") + Decimal(abs(log10)) * Decimal("3e-15")  # by the caller's logarithm
    exact = Context(prec=40, Emin=-(10**4), Emax=10**4)
    return _rounded_digits(exact.multiply(exact.power(Decimal(10), Decimal(log10)), lost), digits, ROUND_CEILING)


def log_up(log: float) -> float:
    """A float above a logarithm that rounded operations made."""
    return log + 4 * math.ulp(log)


def log10_up(log: float) -> float:
    """A natural logarithm as a base-10 one, not below it."""
    return log_up(log / _LN10)


def value_up(log: float) -> float:
    """The upper bound e^log, at most 1."""
    value = 1.0 if log >= 0 else math.exp(log)
    return min(1.0, log_up(value))


def at_least(x: float) -> str:
    """A size that is needed, such as m: not below x, short where x is."""
    return _size(x, ROUND_CEILING)


def at_most(x: float) -> str:
    """A size that is allowed, such as a depth: not above x, short where x is."""
    return _size(x, ROUND_FLOOR)


def short(x: float) -> str:
    """A number that bounds nothing, as people write it: 512, 10^6, 3.1e6, 0.05."""
    return _size(x, ROUND_HALF_EVEN)


def confidence(delta: float) -> str:
    """The probability 1 - delta: delta rounded up to four digits, taken from 1; never shown as 1."""
    above = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(delta))
    level = 1 - above
    return f"1 - {above.normalize():g}" if len(str(level)) > 14 else f"{level.normalize():f}"


def _plain(x: float, digits: int, rounding: str) -> str:
    if not math.isfinite(x):
        return str(x)
    if x == 0:
        return "0"
    if x < 0:
        return "-" + _rounded_digits(-Decimal(x), digits, _OPPOSITE[rounding])
    return _rounded_digits(Decimal(x), digits, rounding)


def _rounded_digits(x: Decimal, digits: int, rounding: str) -> str:
    """So many digits of a positive number."""
    rounded = Context(prec=digits, rounding=rounding, Emin=-(10**4), Emax=10**4).plus(x)
    exponent = rounded.adjusted()
    if not -4 <= exponent < 6:
        return _power(f"{rounded.scaleb(-exponent):.{digits - 1}f}", exponent)
    return f"{rounded:.{max(0, digits - 1 - exponent)}f}"


def _power(head: str, exponent: int) -> str:
    """A number with its power of ten: 1.225e6, 2.999e-05."""
    return f"{head}e{exponent}" if exponent > 0 else f"{head}e-{-exponent:02d}"


def _size(x: float, rounding: str) -> str:
    """Up to six digits of a number, which stands for itself: its shortest decimal, not its binary value."""
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    rounded = Context(prec=6, rounding=rounding).create_decimal(repr(x) if isinstance(x, float) else x).normalize()
    exponent = rounded.adjusted() if rounded else 0
    head = rounded.scaleb(-exponent).normalize()
    if exponent >= 5 and abs(head) == 1:
        return f"{'-' * (head < 0)}10^{exponent}"
    if -5 < exponent < 6:
        return f"{rounded:f}"
    return _power(f"{head:f}", exponent)
