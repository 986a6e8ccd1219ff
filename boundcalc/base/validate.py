"""Checks of values that users give; a refusal says what was got and what is needed."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import choice as choice
from boundcalc.base.schema import known_keys as known_keys
from boundcalc.base.schema import shown as shown

MOST = 10**18
"""Sizes above this are a slip of the keyboard, not a Transformer."""
MOST_STACKED = 10**5
"""Blocks, or heads, that are gone through one by one."""
_MOST_NAME = 80


def is_symbol(name: str, value: Any) -> bool:
    """Whether a value has SymPy symbols in it, for `closed_form`; refuses one that may be 0 or less."""
    if not getattr(value, "free_symbols", None):
        return False
    if not value.is_positive:
        raise InvalidSetting(f"{name} = {value} must be positive: use boundcalc.symbols or Symbol(..., positive=True)")
    return True


def size(name: str, value: Any, *, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`; floats that are whole (1e6) are taken as such."""
    if is_symbol(name, value):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)  # NumPy's integers too
    elif not isinstance(value, float) or not math.isfinite(value) or value != int(value):
        raise InvalidSetting(f"{name} must be a whole number, got {shown(value)}")
    if not least <= value <= most:
        power = len(str(most)) - 1
        end = f"10^{power}" if most == 10**power else most
        raise InvalidSetting(f"{name} must lie between {least} and {end}, got {shown(value)}")
    return int(value)


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0 (or at least 0)."""
    if is_symbol(name, value):
        return value
    if not _in(name, value, 0, math.inf, low=zero, high=False):
        raise InvalidSetting(f"{name} must be finite and {'at least' if zero else 'above'} 0, got {shown(value)}")
    return float(value)


def fraction(name: str, value: Any, *, ends: bool) -> float:
    """A number in (0, 1), or in [0, 1] with `ends`."""
    if is_symbol(name, value):
        return value
    if not _in(name, value, 0, 1, low=ends, high=ends):
        raise InvalidSetting(f"{name} must lie in {'[0, 1]' if ends else '(0, 1)'}, got {shown(value)}")
    return float(value)


def _in(name: str, value: Any, least: float, most: float, *, low: bool, high: bool) -> bool:
    """Whether a number that a float can hold lies in an interval, whose ends count or not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a number, got {shown(value)}")
    held = not isinstance(value, int) or value.bit_length() <= 1000
    return held and (least < value < most or (low and value == least) or (high and value == most))


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidSetting(f"{name} must be true or false, got {shown(value)}")
    return value


def word(name: str, value: object) -> str:
    """A name that norms can be filed under."""
    if not isinstance(value, str) or not value.isidentifier() or len(value) > _MOST_NAME:
        raise InvalidSetting(f"{name} must be a name like W_V, got {shown(value)}")
    return value
