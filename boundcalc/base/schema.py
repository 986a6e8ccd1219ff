"""The one reader and writer of JSON, made from the annotations of dataclasses.

`read` is for what people write: what a file leaves out has its default, what it has besides the fields is refused.
`read_complete` is for proofs, whose meaning must not change with the version of the reader: a file is what `write`
makes of what was read, field by field, or it is refused.

A class of several kinds (layers) names them by `TAG`, the key that tells them apart, and `KINDS`, the classes by label.
A dataclass leaves the fields that `left_out` names out of its JSON, in both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from boundcalc.base.errors import InvalidSetting

T = TypeVar("T")

LETTERS: Mapping[str, str] = {"T": "seq_len", "m": "n_train", "gamma": "margin"}
"""Letters of papers, and the fields of a setting they stand for: each is accepted wherever the other is."""
_LETTER_OF = {word: letter for letter, word in LETTERS.items()}
_MOST_BITS = 1000
_MOST_SHOWN, _MOST_LISTED = 80, 6
_PLAIN: Mapping[object, tuple[str, Callable[[Any], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    str: ("a text", lambda value: isinstance(value, str)),
    int: ("a whole number", lambda value: _is_number(value) and value == int(value)),
    float: ("a number", lambda value: _is_number(value)),
}


def shown(value: object) -> str:
    """A value as messages quote it: on one line, and not much of it."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
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
    from difflib import get_close_matches

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


def brief(values: Mapping[str, Any]) -> str:
    """Fields in one line, as a prompt shows them."""
    return ", ".join(
        name if value is True else f"{letter(name)} {getattr(value, 'name', value)}" for name, value in values.items()
    )


def first_of(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are."""
    listed = list(names)
    more = f", and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
    return ", ".join(listed[:_MOST_LISTED]) + more


# -- writing


def write(value: Any, *, complete: bool = False) -> Any:
    """A value as JSON: of dataclasses the fields that differ from their defaults, or all of them."""
    kind = type(value)
    if is_dataclass(kind):
        out: dict[str, Any] = {}
        if hasattr(kind, "TAG"):
            if kind.KINDS.get(value.label) is not kind:
                raise InvalidSetting(f"{kind.TAG} {value.label!r} is not registered, so a file cannot name it")
            out[kind.TAG] = value.label
        absent = value.left_out() if hasattr(kind, "left_out") else ()
        for f in fields(kind):
            inner = getattr(value, f.name)
            if f.name not in absent and (complete or not _same(inner, f)):
                out[json_name(f)] = write(inner, complete=complete)
        return out
    if isinstance(value, Mapping):
        return {str(key): write(inner, complete=complete) for key, inner in value.items()}
    return [write(inner, complete=complete) for inner in value] if isinstance(value, tuple | list) else value


def _same(value: Any, f: Field[Any]) -> bool:
    return value == (f.default_factory() if f.default_factory is not MISSING else f.default)


def json_name(f: Field[Any]) -> str:
    """The name of a field in JSON."""
    return f.metadata.get("json", f.name)


# -- reading


def read(kind: type[T], data: object, where: str) -> T:
    """A dataclass from JSON; raises `InvalidSetting` naming the place of what does not fit."""
    try:
        return _read(kind, data, where)
    except RecursionError:
        raise InvalidSetting(f"{where} is nested too deep") from None


def read_complete(kind: type[T], data: object, where: str) -> T:
    """The same of JSON that gives every field, as `write` does."""
    value = read(kind, data, where)
    refuse_difference(where, data, write(value, complete=True))
    return value


_hints = cache(get_type_hints)


def _read(kind: Any, data: Any, where: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return data
    if origin in (Union, UnionType):
        return None if data is None and NoneType in args else _read(args[0], data, where)
    if origin is Literal:
        return choice(where, data, args)
    if origin is tuple:
        return _read_tuple(args, data, where)
    if origin is not None:  # a mapping
        if not isinstance(data, Mapping):
            raise InvalidSetting(f"{where} must be a JSON object, got {shown(data)}")
        return {str(key): _read(args[1], inner, f"{where}.{key:.60}") for key, inner in data.items()}
    if kind in _PLAIN:
        what, fits = _PLAIN[kind]
        if not fits(data):
            raise InvalidSetting(f"{where} must be {what}, got {shown(data)}")
        return int(data) if kind is int else data
    if hasattr(kind, "TAG"):
        if not isinstance(data, Mapping) or kind.TAG not in data:
            raise InvalidSetting(f"{where} must be a JSON object with a key {kind.TAG!r}, got {shown(data)}")
        label = choice(f"{where}: {kind.TAG}", data[kind.TAG], kind.KINDS)
        return _object(
            kind.KINDS[label], {key: inner for key, inner in data.items() if key != kind.TAG}, f"{where} ({label})"
        )
    return _object(kind, data, where)


def _read_tuple(args: tuple[Any, ...], data: object, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise InvalidSetting(f"{where} must be a list, got {shown(data)}")
    kinds = (args[0],) * len(data) if args[-1] is Ellipsis else args
    if len(data) != len(kinds):
        raise InvalidSetting(f"{where} must be a list of {len(kinds)}, got {shown(data)}")
    return tuple(_read(kind, inner, f"{where}[{i}]") for i, (kind, inner) in enumerate(zip(kinds, data, strict=True)))


def _object(kind: Any, data: object, where: str) -> Any:
    declared = {json_name(f): f for f in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in known_keys(where, data, declared).items():
        values[declared[key].name] = _read(_hints(kind)[declared[key].name], value, f"{where}.{key}")
    missing = [key for key, f in declared.items() if f.name not in values and f.default is MISSING is f.default_factory]
    if missing:
        raise InvalidSetting(f"{where} does not give {missing[0]!r}")
    try:
        return kind(**values)
    except InvalidSetting as error:
        raise InvalidSetting(f"{where}: {error}") from None


def _is_number(value: object) -> bool:
    """Whether a value is a number that a float can hold."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value.bit_length() <= _MOST_BITS
    return isinstance(value, float) and value - value == 0


def refuse_difference(where: str, data: object, full: object) -> None:
    """Refuses JSON that is not what it should be, naming the first such place."""
    if isinstance(full, dict):
        if not isinstance(data, Mapping):
            raise InvalidSetting(f"{where} must be a JSON object")
        for key in full:
            if key not in data:
                raise InvalidSetting(f"{where} does not give {key!r}, and nothing may be left to defaults")
        for key, value in cast("Mapping[str, object]", data).items():
            if key not in full:
                raise InvalidSetting(f"{where} has a field {shown(key)} that nothing reads")
            refuse_difference(f"{where}.{key:.60}", value, full[key])
    elif isinstance(full, list):
        if not isinstance(data, list | tuple) or len(data) != len(full):
            raise InvalidSetting(f"{where} must be a list of {len(full)}")
        for i, (a, b) in enumerate(zip(data, full, strict=True)):
            refuse_difference(f"{where}[{i}]", a, b)
    else:
        whole = isinstance(data, int) or not isinstance(full, int)  # 8.0 is not how 8 is written
        if data != full or not whole or isinstance(data, bool) != isinstance(full, bool):
            raise InvalidSetting(f"{where} = {shown(data)} does not fit the rest: it must be {shown(full)}")
