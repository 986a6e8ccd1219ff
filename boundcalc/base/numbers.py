"""Number systems of the search: plain floats, and floats kept as logarithms; minima by golden section."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from boundcalc.base.system import Number as Number
from boundcalc.base.system import NumberSystem as NumberSystem

_EXACT_INTEGER_LOG = 36.0
"""Above e^36 a float has no fractional part left, so a ceiling changes nothing it can represent."""


_CEIL_GUARD = 1 + 1e-12
"""Rounding may have pushed a quotient just below an integer; counting one more is safe, one less is not."""


_STIRLING = 17
"""From here on few terms of an asymptotic series are as good as floats."""
_FEW_TERMS = 24
_LOG_2_PI = math.log(2 * math.pi)


def _barnes_tail(z: float) -> float:
    """What log G(1+z) is above z^2/2 log z - 3z^2/4 + z/2 log(2 pi) - log(z)/12 + zeta'(-1), for large z."""
    square = 1 / (z * z)
    return square * (square * (1 / 1008 - square / 1440) - 1 / 240)


class FloatSystem:
    """Plain floats. Overflow raises `OverflowError`; the caller then uses `LOG`."""

    name = "float"
    pi = math.pi
    log = staticmethod(math.log)
    log1p = staticmethod(math.log1p)
    exp = staticmethod(math.exp)
    expm1 = staticmethod(math.expm1)
    sqrt = staticmethod(math.sqrt)
    lgamma = staticmethod(math.lgamma)
    minimum: Callable[..., Any] = staticmethod(min)
    maximum: Callable[..., Any] = staticmethod(max)
    number = staticmethod(float)

    @staticmethod
    def ceil(x: float) -> float:
        return math.ceil(x * _CEIL_GUARD)

    @staticmethod
    def lgamma_sum(x: float, count: int) -> float:
        """Term by term up to `_STIRLING`, beyond by the series of log G (Barnes), whose difference it is."""
        first = min(count, max(0, math.ceil(_STIRLING - x))) if count > _FEW_TERMS else count
        head = math.fsum([math.lgamma(x + i) for i in range(first)])
        n = count - first
        if not n:
            return head
        low = x + first - 1
        high, log_low, log_ratio = low + n, math.log(low), math.log1p(n / low)
        width = n * (low + high)  # of the squares
        leading = (width * log_low + high * high * log_ratio) / 2 - 0.75 * width + n * _LOG_2_PI / 2
        return head + leading - log_ratio / 12 + _barnes_tail(high) - _barnes_tail(low)


class LogFloat:
    """A real number kept as (sign, log of its absolute value): range 10^(+-10^300), float precision."""

    __slots__ = ("log", "sign")

    def __init__(self, log: float, sign: int = 1) -> None:
        self.log = log
        self.sign = sign if log != -math.inf else 0

    @staticmethod
    def of(x: float | LogFloat) -> LogFloat:
        if isinstance(x, LogFloat):
            return x
        small = _SMALL.get(x)
        if small is not None:
            return small
        return LogFloat(math.log(abs(x)), 1 if x > 0 else -1)

    def __add__(self, other: float | LogFloat) -> LogFloat:
        b = other if type(other) is LogFloat else LogFloat.of(other)
        if not b.sign:
            return self
        if not self.sign:
            return b
        big, small = (self, b) if self.log >= b.log else (b, self)
        ratio = math.exp(small.log - big.log)
        if big.sign == small.sign:
            return LogFloat(big.log + math.log1p(ratio), big.sign)
        return LogFloat(big.log + math.log1p(-ratio), big.sign) if ratio < 1 else LogFloat(-math.inf)

    __radd__ = __add__

    def __neg__(self) -> LogFloat:
        return LogFloat(self.log, -self.sign)

    def __sub__(self, other: float | LogFloat) -> LogFloat:
        b = other if type(other) is LogFloat else LogFloat.of(other)
        return self + LogFloat(b.log, -b.sign)

    def __rsub__(self, other: float | LogFloat) -> LogFloat:
        return -self + other

    def __mul__(self, other: float | LogFloat) -> LogFloat:
        b = other if type(other) is LogFloat else LogFloat.of(other)
        if not (self.sign and b.sign):
            return LogFloat(-math.inf, 0)
        return LogFloat(self.log + b.log, self.sign * b.sign)

    __rmul__ = __mul__

    def __truediv__(self, other: float | LogFloat) -> LogFloat:
        b = other if type(other) is LogFloat else LogFloat.of(other)
        if not b.sign:
            raise ZeroDivisionError
        return LogFloat(self.log - b.log, self.sign * b.sign)

    def __rtruediv__(self, other: float | LogFloat) -> LogFloat:
        return LogFloat.of(other) / self

    def __pow__(self, exponent: float | LogFloat) -> LogFloat:
        power = float(exponent)
        if self.sign < 0 and power != int(power):
            raise ValueError("a negative number has no real fractional power")
        if not self.sign:
            return LogFloat.of(0.0**power)
        return LogFloat(self.log * power, -1 if self.sign < 0 and power % 2 else 1)

    def _key(self) -> tuple[int, float]:
        return self.sign, self.sign * self.log if self.sign else 0.0

    def __lt__(self, other: float | LogFloat) -> bool:
        return self._key() < (other if type(other) is LogFloat else LogFloat.of(other))._key()

    def __le__(self, other: float | LogFloat) -> bool:
        return self._key() <= (other if type(other) is LogFloat else LogFloat.of(other))._key()

    def __gt__(self, other: float | LogFloat) -> bool:
        return self._key() > (other if type(other) is LogFloat else LogFloat.of(other))._key()

    def __ge__(self, other: float | LogFloat) -> bool:
        return self._key() >= (other if type(other) is LogFloat else LogFloat.of(other))._key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float | LogFloat) and self._key() == LogFloat.of(other)._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __float__(self) -> float:
        """The float nearest in size: infinite, or 0, beyond the range of floats."""
        if not self.sign:
            return 0.0
        return self.sign * (math.exp(self.log) if self.log < 709.0 else math.inf)

    def __repr__(self) -> str:
        return f"LogFloat({self.log!r}, sign={self.sign})"


_SMALL: dict[float, LogFloat] = {x: LogFloat(math.log(x)) for x in range(1, 65)}
_SMALL |= {-x: LogFloat(math.log(x), -1) for x in range(1, 10)} | {0: LogFloat(-math.inf, 0)}
"""The constants of formulas, made once."""


class LogSystem:
    """`LogFloat`s: floats that neither overflow nor underflow."""

    name = "log"
    pi = LogFloat(math.log(math.pi))
    number = staticmethod(LogFloat.of)
    minimum: Callable[..., Any] = staticmethod(min)
    maximum: Callable[..., Any] = staticmethod(max)

    @staticmethod
    def log(x: LogFloat | float) -> LogFloat:
        value = x if type(x) is LogFloat else LogFloat.of(x)
        if value.sign <= 0:
            raise ValueError("log needs a positive number")
        return LogFloat.of(value.log)

    @staticmethod
    def log1p(x: LogFloat | float) -> LogFloat:
        value = x if type(x) is LogFloat else LogFloat.of(x)
        if value.log < -1.0 or value.sign < 0:
            return LogFloat.of(math.log1p(float(value))) if value.log > -700 else value
        return LogFloat.of((1 + value).log)

    @staticmethod
    def exp(x: LogFloat | float) -> LogFloat:
        return LogFloat(float(x))

    @staticmethod
    def expm1(x: LogFloat | float) -> LogFloat:
        value = x if type(x) is LogFloat else LogFloat.of(x)
        if value.log < 1.0:
            return LogFloat.of(math.expm1(float(value))) if value.log > -700 else value
        return LogFloat(float(value)) - 1 if value.sign > 0 else LogSystem.exp(value) - 1

    @staticmethod
    def sqrt(x: LogFloat | float) -> LogFloat:
        value = x if type(x) is LogFloat else LogFloat.of(x)
        if value.sign > 0:
            return LogFloat(value.log * 0.5)
        return value**0.5

    @staticmethod
    def ceil(x: LogFloat | float) -> LogFloat:
        value = x if type(x) is LogFloat else LogFloat.of(x)
        if value.log > _EXACT_INTEGER_LOG:
            return value * _CEIL_GUARD
        return LogFloat.of(math.ceil(float(value) * _CEIL_GUARD))

    @staticmethod
    def lgamma(x: LogFloat | float) -> LogFloat:
        return LogFloat.of(math.lgamma(float(x)))

    @staticmethod
    def lgamma_sum(x: LogFloat | float, count: int) -> LogFloat:
        return LogFloat.of(FLOAT.lgamma_sum(float(x), count))


FLOAT = FloatSystem()
LOG = LogSystem()


def log_add(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


def log_sum(xs: list[float]) -> float:
    """Log of the sum of e^x."""
    top = max(xs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum([math.exp(x - top) for x in xs]))


_RATIO = (math.sqrt(5) - 1) / 2


def golden(cost: Callable[[float], Any], low: float, high: float, steps: int) -> float:
    """Where a cost that falls and then rises is nearly least between two ends: one look a step."""
    a, b = high - _RATIO * (high - low), low + _RATIO * (high - low)
    left, right = cost(a), cost(b)
    for _ in range(steps):
        if left < right:
            high, b, right = b, a, left
            a = high - _RATIO * (high - low)
            left = cost(a)
        else:
            low, a, left = a, b, right
            b = low + _RATIO * (high - low)
            right = cost(b)
    return (low + high) / 2
