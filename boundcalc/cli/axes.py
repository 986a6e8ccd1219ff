"""Reading sweep axes: T=64:65536:x2, m=1e3:1e9:log7, C=0.5:2:lin4, heads=1,2,4."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near, short
from boundcalc.base.validate import hint, spelling
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
    values = _spaced(name, text) if ":" in text else [_finite(name, word) for word in text.split(",")]
    if option.type is not WHOLE:
        return values
    if ":" in text:
        return list(dict.fromkeys(round(value) for value in values))
    for value in values:
        if value != int(value):
            raise InvalidSetting(f"sweep {name}: {name} must be a whole number, got {short(value)}")
    return [int(value) for value in values]


def _finite(name: str, text: str) -> float:
    value = number(text.strip())
    if value is None or isinstance(value, complex) or not math.isfinite(value):
        raise InvalidSetting(f"sweep {name}: {text.strip()!r} is no finite number; VALUES are {_FORMS}")
    return value


def _spaced(name: str, text: str) -> list[float]:
    """first:last:x2 (a factor), first:last:log7 or first:last:lin4 (so many points)."""
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidSetting(f"sweep {name}: a range is first:last:STEP with STEP x2, log7 or lin4; got {text!r}")
    first, last, step = _finite(name, parts[0]), _finite(name, parts[1]), parts[2].strip()
    if not step.startswith("lin") and min(first, last) <= 0:
        raise InvalidSetting(
            f"sweep {name}: a geometric range needs ends above 0, got {short(first)}:{short(last)}; use linN"
        )
    if step.startswith("x"):
        factor = _finite(name, step[1:])
        if factor <= 0 or factor == 1 or (last != first and (last > first) != (factor > 1)):
            way = "above 1" if last > first else "between 0 and 1"
            raise InvalidSetting(
                f"sweep {name}: from {short(first)} to {short(last)} the factor must be {way}, got x{short(factor)}"
            )
        count = math.floor(math.log(last / first) / math.log(factor) + 1e-9) + 1
    elif step[:3] in ("log", "lin"):
        factor, size = 0.0, _finite(name, step[3:])
        if size != int(size) or not (2 if first != last else 1) <= size <= MOST_POINTS:
            raise InvalidSetting(f"sweep {name}: {step!r} must name 2 to 10^6 points, such as {step[:3]}7")
        count = int(size)
    else:
        raise InvalidSetting(f"sweep {name}: STEP is x2 (a factor), log7 or lin4 (numbers of points); got {step!r}")
    if count > MOST_POINTS:
        raise InvalidSetting(f"sweep {name}: {step} makes {count} points, 10^6 are allowed: take a larger factor")
    if factor:
        return [first * factor**i for i in range(count)]
    shares = (i / (count - 1) for i in range(1, count - 1))
    linear = step.startswith("lin")
    inner = (first + (last - first) * share if linear else first * (last / first) ** share for share in shares)
    return [first, *(float(near(value, 12)) for value in inner), last][:count]  # the ends exactly
