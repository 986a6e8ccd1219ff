"""JSON read strictly, by one line for each kind of object that says which fields it has and what each may be."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, Never

from ._numbers import Refused, demand


class Record(SimpleNamespace):
    """What was read, by names."""

    def but(self, **changes: Any) -> Any:
        """The same with some fields changed."""
        return type(self)(**vars(self) | changes)


def parse(text: str) -> Any:
    """The value of a JSON text without keys given twice, NaN, infinities and numbers beyond floats."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Refused(f"it is not JSON that can be read: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    demand(len(entries) == len(pairs), f"a key is given twice in one object: {', '.join(key for key, _ in pairs):.80}")
    return entries


def _no_number(word: str) -> Never:
    raise Refused(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    demand(math.isfinite(float(text)), f"{text:.40} is beyond every float")
    return float(text)


def keys(where: str, data: Any, needs: Any, may: Any = ()) -> Mapping[str, Any]:
    """A JSON object with just these keys, and some that it may have."""
    demand(isinstance(data, dict), f"{where} is no JSON object")
    demand(set(needs) <= set(data), f"{where} does not give {sorted(set(needs) - set(data))[:1]}")
    strange = set(data) - set(needs) - set(may)
    demand(not strange, f"{where} has {sorted(strange)[:1]!s:.60}, which nothing reads")
    return data


@cache
def _fields(line: str) -> Mapping[str, str]:
    return dict(field.split(":") for field in line.split())


def read(line: str, where: str, data: Any, may: str = "", kind: type[Record] = Record) -> Any:
    """The record of a JSON object with the fields of a line such as "d:size bias:name? how:cls|mean"."""
    needs, more = _fields(line), _fields(may)
    fields = keys(where, data, needs, more)
    return kind(**{name: value({**needs, **more}[name], f"{where}.{name}", entry) for name, entry in fields.items()})


def record(line: str) -> Callable[[str, Any], Any]:
    """A reader of objects with the fields of a line."""
    return lambda where, data: read(line, where, data)


def value(word: str, where: str, data: Any) -> Any:
    """A value of a kind; "kind?" may be null, "kind*" is a list of them, "a|b" one of some words."""
    if word[-1] == "?":
        return None if data is None else value(word[:-1], where, data)
    if word[-1] == "*":
        demand(isinstance(data, list), f"{where} is no list")
        return tuple(value(word[:-1], f"{where}[{i}]", entry) for i, entry in enumerate(data))
    if word in KINDS:
        return KINDS[word](where, data)
    return reader(lambda entry: isinstance(entry, str) and entry in word.split("|"), f"one of {word}")(where, data)


def reader(fits: Callable[[Any], bool], what: str) -> Callable[[str, Any], Any]:
    """A reader of what fits."""

    def read_one(where: str, data: Any) -> Any:
        demand(fits(data), f"{where} is {what}, got {data!r:.40}")
        return data

    return read_one


def ranged(low: float, high: float, *, apart: bool = False, whole: bool = False) -> Callable[[str, Any], Any]:
    """A reader of numbers in a range, its ends apart or not; whole ones are written without a point."""

    def fits(data: Any) -> bool:
        number = isinstance(data, int if whole else (int, float)) and not isinstance(data, bool)
        return number and (low < data < high if apart else low <= data <= high)

    return reader(fits, f"a {'whole ' * whole}number from {low:g} to {high:g}")


_MOST = sys.float_info.max
KINDS: dict[str, Callable[[str, Any], Any]] = {
    "size": ranged(1, 10**18, whole=True),
    "stacked": ranged(1, 10**5, whole=True),
    "index": ranged(0, 10**18, whole=True),
    "number": ranged(-1e300, 1e300),
    "positive": ranged(0, _MOST, apart=True),
    "length": ranged(0, _MOST),
    "share": ranged(0, 1),
    "chance": ranged(0, 1, apart=True),
    "flag": reader(lambda data: isinstance(data, bool), "true or false"),
    "text": reader(lambda data: isinstance(data, str), "a text"),
    "name": reader(lambda data: isinstance(data, str) and data.isidentifier() and len(data) <= 80, "a name"),
    "object": lambda where, data: keys(where, data, (), data),
}
