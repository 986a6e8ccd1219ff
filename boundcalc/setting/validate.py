"""Checks of user-given values that say what was got and what is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any, TypeVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.words import spelling

T = TypeVar("T")

MOST = 10**18
"""Sizes above this are a slip of the keyboard, not a Transformer."""
MOST_STACKED = 10**5
"""Blocks, or heads, that are gone through one by one."""
_MOST_BITS = 1000
_MOST_SHOWN = 80


def shown(value: object) -> str:
    """A value as messages quote it: on one line, and not much of it."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _finite(value: float) -> bool:
    """Whether a float can hold a number."""
    return value.bit_length() <= _MOST_BITS if isinstance(value, int) else math.isfinite(value)


def _symbolic(name: str, value: Any, *assumptions: str) -> bool:
    """Whether a value is a sympy expression with symbols in it; such a value is judged by what it is assumed to be."""
    if not getattr(value, "free_symbols", None):
        return False
    for assumption in assumptions:
        if not getattr(value, f"is_{assumption}"):
            raise InvalidSetting(
                f"{name} = {value} must be {' and '.join(assumptions)}: use the symbols of boundcalc.base.symbols, "
                f"or declare sympy.Symbol(..., {', '.join(f'{word}=True' for word in assumptions)})"
            )
    return True


def size(name: str, value: Any, *, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`; floats that are whole (1e6) are taken as such."""
    if _symbolic(name, value, "integer", "positive"):
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
    if _symbolic(name, value, "nonnegative" if zero else "positive"):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a number, got {shown(value)}")
    if not _finite(value) or value < 0 or (value == 0 and not zero):
        need = "at least 0" if zero else "above 0"
        raise InvalidSetting(f"{name} must be finite and {need}, got {shown(value)}")
    return float(value)


def fraction(name: str, value: Any, *, ends: bool) -> float:
    """A number in (0, 1), or in [0, 1] with `ends`."""
    if _symbolic(name, value, "nonnegative" if ends else "positive"):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a number, got {shown(value)}")
    if not _finite(value) or not (0 <= value <= 1 if ends else 0 < value < 1):
        raise InvalidSetting(f"{name} must lie in {'[0, 1]' if ends else '(0, 1)'}, got {shown(value)}")
    return float(value)


def set_size(
    instance: object, field: str, name: str = "", *, least: int = 1, most: int = MOST, optional: bool = False
) -> None:
    """Check a size of a frozen dataclass and keep it as an integer (or, where it is optional, as None)."""
    value = getattr(instance, field)
    if value is not None or not optional:
        object.__setattr__(instance, field, size(name or field, value, least=least, most=most))


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of the given words."""
    known = tuple(options)
    found = spelling(value, known) if isinstance(value, str) else None
    if found not in known:
        from boundcalc.base.words import hint  # only refusals need it

        end = hint(str(value), known)
        raise InvalidSetting(f"{name} must be one of {', '.join(known)}; got {shown(value)}{end}")
    return found


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidSetting(f"{name} must be true or false, got {shown(value)}")
    return value


def word(name: str, value: object) -> str:
    """A name that norms can be filed under."""
    if not isinstance(value, str) or not value.isidentifier() or len(value) > _MOST_SHOWN:
        raise InvalidSetting(f"{name} must be a name like W_V, got {shown(value)}")
    return value


def known_keys(where: str, data: object, known: Iterable[str]) -> Mapping[str, Any]:
    """A JSON object that has no key beside the known ones, by which spellings of them are replaced."""
    if not isinstance(data, Mapping):
        raise InvalidSetting(f"{where} must be a JSON object, got {type(data).__name__}")
    names = tuple(known)
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = spelling(str(key), names)
        if name not in names:
            from boundcalc.base.words import hint

            raise InvalidSetting(f"{where} has no {shown(key)}{hint(str(key), names)}; it knows {', '.join(names)}")
        if name in found:
            raise InvalidSetting(f"{where} gives {name} twice: {key} is another name of it; leave one out")
        found[name] = value
    return found


def from_fields(where: str, cls: type[T], data: object) -> T:
    """A dataclass from a JSON object of its fields."""
    names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    return cls(**known_keys(where, data, names))


def to_fields(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as a JSON object."""
    out: dict[str, Any] = {}
    for f in fields(instance):
        value = getattr(instance, f.name)
        if value != f.default:
            out[f.name] = value
    return out
