"""Checks of values that users give; a refusal says what was got and what is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import short

MOST = 10**18
"""Sizes above this are a slip of the keyboard, not a Transformer."""
MOST_STACKED = 10**5
"""Blocks, or heads, that are gone through one by one."""
LETTERS: Mapping[str, str] = {"T": "seq_len", "m": "n_train", "gamma": "margin"}
"""Letters of papers, and the fields of a setting they stand for: each is accepted wherever the other is."""
_LETTER_OF = {word: letter for letter, word in LETTERS.items()}
MOST_BITS = 1000
"""Whole numbers beyond this have no float."""
_MOST_SHOWN = 80


def shown(value: object) -> str:
    """A value as messages quote it: on one line, and not much of it."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def letter(name: str) -> str:
    """How papers and the command line call a field: T for seq_len, the name itself where there is no letter."""
    return _LETTER_OF.get(name, name)


def spelling(name: str, options: Iterable[str]) -> str:
    """The known name that a letter stands for, or the letter that a field's name stands for; else the name itself."""
    names = frozenset(options)
    return next((word for word in (name, LETTERS.get(name), letter(name)) if word in names), name)


def hint(name: str, options: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name it is closest to."""
    near = get_close_matches(name, list(options), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of the given words."""
    words = tuple(options)
    word = spelling(value, words) if isinstance(value, str) else None
    if word not in words:
        raise InvalidSetting(f"{name} must be one of {', '.join(words)}; got {shown(value)}{hint(str(value), words)}")
    return word


def known_keys(where: str, data: object, options: Iterable[str]) -> Mapping[str, Any]:
    """A JSON object that has no key besides the known ones, by which spellings of them are replaced."""
    if not isinstance(data, Mapping):
        raise InvalidSetting(f"{where} must be a JSON object, got {shown(data)}")
    names = tuple(options)
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = spelling(str(key), names)
        if name not in names:
            raise InvalidSetting(f"{where} has no {shown(key)}{hint(str(key), names)}; it knows {', '.join(names)}")
        if name in values:
            raise InvalidSetting(f"{where} gives {name} twice: {key} is another name of it; leave one out")
        values[name] = value
    return values


def _is_symbol(name: str, value: Any) -> bool:
    """Whether a value has SymPy symbols in it, for `closed_form`; refuses one that may be 0 or less."""
    if not getattr(value, "free_symbols", None):
        return False
    if not value.is_positive:
        raise InvalidSetting(f"{name} = {value} must be positive: use boundcalc.symbols or Symbol(..., positive=True)")
    return True


def size(name: str, value: Any, *, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`; floats that are whole (1e6) are taken as such."""
    if _is_symbol(name, value):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)  # NumPy's integers too
    elif not isinstance(value, float) or not math.isfinite(value) or value != int(value):
        raise InvalidSetting(f"{name} must be a whole number, got {shown(value)}")
    if not least <= value <= most:
        raise InvalidSetting(f"{name} must lie between {least} and {short(most)}, got {shown(value)}")
    return int(value)


def number(name: str, value: Any) -> float:
    """A finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSetting(f"{name} must be a number, got {shown(value)}")
    if value.bit_length() > MOST_BITS if isinstance(value, int) else not math.isfinite(value):
        raise InvalidSetting(f"{name} must be a number that is finite, got {shown(value)}")
    return value


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0 (or at least 0)."""
    if _is_symbol(name, value):
        return value
    if number(name, value) < 0 or (value == 0 and not zero):
        raise InvalidSetting(f"{name} must be finite and {'at least' if zero else 'above'} 0, got {shown(value)}")
    return float(value)


def fraction(name: str, value: Any, *, ends: bool) -> float:
    """A number in (0, 1), or in [0, 1] with `ends`."""
    if _is_symbol(name, value):
        return value
    if not 0 <= number(name, value) <= 1 or (value in (0, 1) and not ends):
        raise InvalidSetting(f"{name} must lie in {'[0, 1]' if ends else '(0, 1)'}, got {shown(value)}")
    return float(value)


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
