"""Checks of user-given values that say what was got and what is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

from boundcalc.errors import InvalidSetting

T = TypeVar("T")

MOST = 10**18
"""Sizes above this are a slip of the keyboard, not a Transformer."""


def symbolic(name: str, value: Any, *assumptions: str) -> bool:
    """Whether a value is a sympy expression with symbols in it; such a value is judged by what it is assumed to be."""
    if not getattr(value, "free_symbols", None):
        return False
    for assumption in assumptions:
        if not getattr(value, f"is_{assumption}"):
            raise InvalidSetting(
                f"{name} = {value} must be {' and '.join(assumptions)}: use the symbols of boundcalc.symbols, "
                f"or declare sympy.Symbol(..., {', '.join(f'{word}=True' for word in assumptions)})"
            )
    return True


def size(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number of at least `least`; floats that are whole (1e6) are taken as such."""
    if symbolic(name, value, "integer", "positive"):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a whole number, got {value!r}")
    if isinstance(value, float) and not (math.isfinite(value) and value == int(value)):
        raise InvalidSetting(f"{name} must be a whole number, got {value!r}")
    if not least <= value <= MOST:
        raise InvalidSetting(f"{name} must lie between {least} and 10^18, got {value:g}")
    return int(value)


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0 (or at least 0)."""
    if symbolic(name, value, "nonnegative" if zero else "positive"):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        need = "at least 0" if zero else "above 0"
        raise InvalidSetting(f"{name} must be finite and {need}, got {value!r}")
    return float(value)


def fraction(name: str, value: Any, *, ends: bool) -> float:
    """A number in (0, 1), or in [0, 1] with `ends`."""
    if symbolic(name, value, "nonnegative" if ends else "positive"):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InvalidSetting(f"{name} must be a number, got {value!r}")
    if not (0 <= value <= 1 if ends else 0 < value < 1):
        raise InvalidSetting(f"{name} must lie in {'[0, 1]' if ends else '(0, 1)'}, got {value!r}")
    return float(value)


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of the given words."""
    known = tuple(options)
    if not isinstance(value, str) or value not in known:
        near = get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidSetting(f"{name} must be one of {', '.join(known)}; got {value!r}{hint}")
    return value


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidSetting(f"{name} must be true or false, got {value!r}")
    return value


def known_keys(where: str, data: object, known: Iterable[str]) -> Mapping[str, Any]:
    """A JSON object that has no key beside the known ones."""
    if not isinstance(data, Mapping):
        raise InvalidSetting(f"{where} must be a JSON object, got {type(data).__name__}")
    names = tuple(known)
    for key in data:
        if key not in names:
            near = get_close_matches(str(key), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidSetting(f"{where} has no {key!r}{hint}; it knows {', '.join(names)}")
    return data


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
