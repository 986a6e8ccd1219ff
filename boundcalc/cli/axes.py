"""Reading sweep axes: T=64:65536:x2, m=1e3:1e9:log7, C=0.5:2:lin4, heads=1,2,4."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, short
from boundcalc.base.schema import hint, spelling
from boundcalc.cli.setting import BY_NAME, Entry
from boundcalc.cli.values import WHOLE, number
from boundcalc.engine.sweep import MOST_POINTS

_FORMS = "first:last:x2, first:last:log7, first:last:lin4 or a,b,c"


def parse_axes(texts: Iterable[str]) -> dict[str, tuple[Entry, list[Any]]]:
    """The axes by the name they were typed with; raises `InvalidSetting` in one line."""
    axes: dict[str, tuple[Entry, list[Any]]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = spelling(name.strip().removeprefix("--").replace("-", "_"), BY_NAME)
        if not equals or not values:
            raise InvalidSetting(f"a sweep axis is NAME=VALUES with VALUES {_FORMS}; got {text!r}")
        if name not in BY_NAME or BY_NAME[name].field in ("normaliser_c", "normaliser_mu"):
            raise InvalidSetting(_unknown(name))
        if name in axes:
            raise InvalidSetting(f"the sweep axis {name!r} is given twice: write its values in one --sweep")
        axes[name] = BY_NAME[name], _values(name, BY_NAME[name], values)
    total = math.prod(len(values) for _, values in axes.values())
    if total > MOST_POINTS:
        raise InvalidSetting(f"a sweep may have 10^6 points, got {total}: take coarser or fewer axes")
    return axes


def _unknown(name: str) -> str:
    return f"no sweep axis {name!r}" + (hint(name, BY_NAME) or "; axes are the fields of a setting, such as T, m, C")


def _values(name: str, option: Entry, text: str) -> list[Any]:
    if option.type is str:
        return [word.strip() for word in text.split(",")]
    if option.type is bool:
        return [option.read(word.strip()) for word in text.split(",")]
    found = _spaced(name, text) if ":" in text else [_finite(name, word) for word in text.split(",")]
    if option.type is not WHOLE:
        return found
    if ":" in text:
        return list(dict.fromkeys(round(value) for value in found))
    for value in found:
        if value != int(value):
            raise InvalidSetting(f"sweep {name}: {name} must be a whole number, got {short(value)}")
    return [int(value) for value in found]


def _finite(name: str, text: str) -> float:
    found = number(text.strip())
    if found is None or isinstance(found, complex) or not math.isfinite(found):
        raise InvalidSetting(f"sweep {name}: {text.strip()!r} is no finite number; VALUES are {_FORMS}")
    return found


def _spaced(name: str, text: str) -> list[float]:
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidSetting(f"sweep {name}: a range is first:last:STEP with STEP x2, log7 or lin4; got {text!r}")
    first, last, step = _finite(name, parts[0]), _finite(name, parts[1]), parts[2].strip()
    if step.startswith("x"):
        return _geometric(name, first, last, _finite(name, step[1:]))
    for word, space in (("log", _logarithmic), ("lin", _linear)):
        if step.startswith(word):
            count = _finite(name, step[3:])
            if count != int(count) or not (2 if first != last else 1) <= count <= MOST_POINTS:
                raise InvalidSetting(f"sweep {name}: {step!r} must name 2 to 10^6 points, such as {word}7")
            return space(name, first, last, int(count))
    raise InvalidSetting(f"sweep {name}: STEP is x2 (a factor), log7 or lin4 (numbers of points); got {step!r}")


def _both_positive(name: str, first: float, last: float) -> None:
    if first <= 0 or last <= 0:
        raise InvalidSetting(
            f"sweep {name}: a geometric range needs ends above 0, got {short(first)}:{short(last)}; use linN"
        )


def _geometric(name: str, first: float, last: float, factor: float) -> list[float]:
    _both_positive(name, first, last)
    if factor <= 0 or factor == 1 or (last != first and (last > first) != (factor > 1)):
        way = "above 1" if last > first else "between 0 and 1"
        raise InvalidSetting(
            f"sweep {name}: from {short(first)} to {short(last)} the factor must be {way}, got x{short(factor)}"
        )
    count = math.floor(math.log(last / first) / math.log(factor) + 1e-9) + 1
    if count > MOST_POINTS:
        raise InvalidSetting(
            f"sweep {name}: x{short(factor)} makes {count} points, 10^6 are allowed: take a larger factor"
        )
    return [first * factor**i for i in range(count)]


def _logarithmic(name: str, first: float, last: float, count: int) -> list[float]:
    _both_positive(name, first, last)
    return _between(first, last, count, lambda share: first * (last / first) ** share)


def _linear(name: str, first: float, last: float, count: int) -> list[float]:
    del name
    return _between(first, last, count, lambda share: first + (last - first) * share)


def _between(first: float, last: float, count: int, at: Callable[[float], float]) -> list[float]:
    """Both ends exactly, the rest to 12 digits."""
    inner = [float(near(at(i / (count - 1)), 12)) for i in range(1, count - 1)]
    return [first, *inner, last][:count]
