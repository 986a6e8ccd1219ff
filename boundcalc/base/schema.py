"""Fields of dataclasses and their JSON: annotations carry the checks, metadata the words, symbols and options.

`read` is for what people write: what a file leaves out has its default, what it has besides the fields is refused.
`read_complete` is for proofs, whose meaning must not change with the version of the reader: a file is what `write`
makes of what was read, field by field, or it is refused.

A class of several kinds (layers) names them by `TAG`, the key that tells them apart, and `KINDS`, the classes by label.
A dataclass leaves the fields that `left_out` names out of its JSON, in both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache, partial
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.validate import choice, known_keys, letter, shown

T = TypeVar("T")
Name = Annotated[str, validate.word]
Size = Annotated[int, validate.size]
Count = Annotated[int, partial(validate.size, least=0)]
Stacked = Annotated[int, partial(validate.size, most=validate.MOST_STACKED)]
"""Blocks, or heads, which are gone through one by one."""
Positive = Annotated[float, validate.positive]
Length = Annotated[float, partial(validate.positive, zero=True)]
Share = Annotated[float, partial(validate.fraction, ends=False)]
ClosedShare = Annotated[float, partial(validate.fraction, ends=True)]


class Spec(NamedTuple):
    """What a field declares: the type of its values, the words it may be, and what it is, in Markdown.

    `latex`: its symbol, where papers have one; `help`: of its own option, "" where --set gives it; `label`: how it is
    shown next to its value, where that is not its name; `typical`: a range of ordinary values.
    """

    kind: type
    choices: tuple[str, ...]
    words: str
    latex: str = ""
    help: str = ""
    label: str = ""
    typical: tuple[float, float] = (0.5, 4.0)


def declare(default: Any, words: str, **rest: Any) -> Any:
    """A field with its words, and `latex`, `help`, `label`, `typical` as in `Spec`."""
    return field(default=default, metadata={"words": words, **rest})


@cache
def specs(cls: type) -> dict[str, Spec]:
    """The declared fields of a dataclass."""

    def kind(hint: Any) -> tuple[type, tuple[str, ...]]:
        inner = get_args(hint)
        if get_origin(hint) is Literal:
            return str, inner
        if get_origin(hint) is Annotated:
            return inner[0], tuple(getattr(inner[1], "keywords", {}).get("options", ()))
        return kind(inner[0]) if inner else (hint, ())

    return {f.name: Spec(*kind(_hints(cls)[f.name]), **f.metadata) for f in fields(cls) if "words" in f.metadata}


# -- checks and reading

_Check = Callable[[str, Any], Any]
_hints = cache(partial(get_type_hints, include_extras=True))


def check_fields(instance: Any, prefix: str = "") -> None:
    """Hold a frozen dataclass against its annotations; numbers stay what they are, but for whole floats.

    Raises:
        InvalidSetting: a field, called by its name after the prefix, has another value than its annotation allows.
    """
    for name, called, check in _checks(type(instance)):
        value = getattr(instance, name)
        kept = check(prefix + called, value)
        if kept is not value and not isinstance(kept, float):
            object.__setattr__(instance, name, kept)


@cache
def _checks(cls: type) -> tuple[tuple[str, str, _Check], ...]:
    hints = _hints(cls)
    return tuple((f.name, letter(_json_name(f)), _check(hints[f.name], json=False)) for f in fields(cls))


@cache
def _check(hint: Any, *, json: bool) -> _Check:
    """What checks a value of an annotation, or makes it of JSON; messages call it by the name that comes first."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return inner[1]
    if origin is Literal:
        return partial(choice, options=inner)
    if origin in (Union, UnionType):
        check = _check(inner[0], json=json)
        return lambda where, value: None if value is None else check(where, value)
    if origin is tuple:
        return partial(_tuple, tuple(_check(kind, json=json) for kind in inner if kind is not ...), inner[-1] is ...)
    if origin is not None:
        return partial(_mapping, _check(inner[1], json=json))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Any:
        return lambda where, value: value
    return partial(_read if json else _instance, hint)


def _check_text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidSetting(f"{where} must be a text, got {shown(value)}")
    return value


_PLAIN: Mapping[object, _Check] = {
    bool: validate.flag,
    str: _check_text,
    int: partial(validate.size, least=-(2**validate.MOST_BITS), most=2**validate.MOST_BITS),
    float: validate.number,
}


def _instance(cls: type, where: str, value: Any) -> Any:
    if not isinstance(value, cls):
        raise InvalidSetting(f"{where} must be of type {cls.__name__}, got {shown(value)}")
    return value


def _tuple(checks: tuple[_Check, ...], any_length: bool, where: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidSetting(f"{where} must be a list, got {shown(value)}")
    if any_length:
        checks = checks * len(value)
    if len(value) != len(checks):
        raise InvalidSetting(f"{where} must be a list of {len(checks)}, got {shown(value)}")
    return tuple(check(f"{where}[{i}]", x) for i, (check, x) in enumerate(zip(checks, value, strict=True)))


def _mapping(check: _Check, where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(f"{where} must be a JSON object, got {shown(value)}")
    return {str(key): check(f"{where}.{key:.60}", inner) for key, inner in value.items()}


def _read(kind: Any, where: str, data: Any) -> Any:
    """A dataclass, or one of the kinds that a tag tells apart."""
    if hasattr(kind, "TAG"):
        if not isinstance(data, Mapping) or kind.TAG not in data:
            raise InvalidSetting(f"{where} must be a JSON object with a key {kind.TAG!r}, got {shown(data)}")
        label = choice(f"{where}: {kind.TAG}", data[kind.TAG], kind.KINDS)
        data = {key: inner for key, inner in data.items() if key != kind.TAG}
        kind, where = kind.KINDS[label], f"{where} ({label})"
    declared = {_json_name(f): f for f in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in known_keys(where, data, declared).items():
        name = declared[key].name
        values[name] = _check(_hints(kind)[name], json=True)(f"{where}.{key}", value)
    for key, f in declared.items():
        if f.name not in values and f.default is MISSING is f.default_factory:
            raise InvalidSetting(f"{where} does not give {key!r}")
    try:
        return kind(**values)
    except InvalidSetting as error:
        raise InvalidSetting(f"{where}: {error}") from None


def read(kind: type[T], data: object, where: str) -> T:
    """A dataclass from JSON; raises `InvalidSetting` naming the place of what does not fit."""
    try:
        return _read(kind, where, data)
    except RecursionError:
        raise InvalidSetting(f"{where} is nested too deep") from None


def read_complete(kind: type[T], data: object, where: str) -> T:
    """The same of JSON that gives every field, as `write` does."""
    value = read(kind, data, where)
    _refuse_difference(where, data, write(value, complete=True))
    return value


def _refuse_difference(where: str, data: Any, full: Any) -> None:
    """Refuses JSON that is not what it should be, naming the first such place."""
    if isinstance(full, dict) and isinstance(data, Mapping):
        for key in (*full, *data):
            if key not in data:
                raise InvalidSetting(f"{where} does not give {key!r}, and nothing may be left to defaults")
            if key not in full:
                raise InvalidSetting(f"{where} has a field {shown(key)} that nothing reads")
            _refuse_difference(f"{where}.{key:.60}", data[key], full[key])
    elif isinstance(full, list) and isinstance(data, list | tuple) and len(data) == len(full):
        for i, (a, b) in enumerate(zip(data, full, strict=True)):
            _refuse_difference(f"{where}[{i}]", a, b)
    else:
        whole = isinstance(data, int) or not isinstance(full, int)  # 8.0 is not how 8 is written
        if data != full or not whole or isinstance(data, bool) != isinstance(full, bool):
            raise InvalidSetting(f"{where} = {shown(data)} does not fit the rest: it must be {shown(full)}")


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
            if f.name not in absent and (complete or inner != _default(f)):
                out[_json_name(f)] = write(inner, complete=complete)
        return out
    if isinstance(value, Mapping):
        return {str(key): write(inner, complete=complete) for key, inner in value.items()}
    return [write(inner, complete=complete) for inner in value] if isinstance(value, tuple | list) else value


def _json_name(f: Any) -> str:
    """The name of a field in JSON."""
    return f.metadata.get("json", f.name)


def _default(f: Any) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


# -- parts of a setting

_LEFT_OUT = (None, False, 0, "none")
"""Values that say that something is not there."""


class Described:
    """A frozen dataclass whose prompt is short, with fields that nothing reads under certain values of others.

    `SHOWN`: fields that the prompt shows also where they have their defaults.
    """

    __slots__ = ()
    SHOWN: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        words: list[str] = []
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.name in self.SHOWN or value != _default(f):
                several = isinstance(value, Mapping) or (isinstance(value, tuple) and any(map(is_dataclass, value)))
                name = f.name if several or value is True else letter(f.name)
                text = "" if value is True else str(len(value)) if several else str(getattr(value, "name", value))
                words.append(f"{text} {name}" if several else f"{name} {text}".rstrip())
        return f"{type(self).__name__}({', '.join(words)})"

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return write(self)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """An instance from its JSON object."""
        return read(cls, data, cls.__name__.lower())

    def unread(self, name: str) -> str | None:
        """Why a field changes nothing here, or None where something depends on it."""
        return None

    def refuse_unread(self, name: str = "") -> None:
        """Refuses a field that was given and changes nothing here; without a name, all but those of default value."""
        for f in fields(self):  # type: ignore[arg-type]
            if name in ("", f.name) and (reason := self.unread(f.name)) is not None:
                value = getattr(self, f.name)
                if name or value != f.default:  # an array is of what is read
                    raise InvalidSetting(f"{f.name} = {shown(value)} would change nothing: {reason}")

    def with_fields(self, **changes: Any) -> Self:
        """The same with some fields changed; what was there before counts as a default."""
        return self.from_defaults({f.name: getattr(self, f.name) for f in fields(self)}, changes)  # type: ignore[arg-type]

    @classmethod
    def from_defaults(cls, defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> Self:
        """An instance of what is given, and of defaults as far as anything reads them besides it.

        What is given and not read is refused, unless it says that something is left out, which it is.
        """
        plain = {f.name: f.default for f in fields(cls)}  # type: ignore[arg-type]
        values = {name: {**plain, **defaults, **changes}[name] for name in plain}
        unchecked: Any = SimpleNamespace(**values)
        if values.get("layers") is None:  # listed layers go with nothing else
            values |= {name: plain[name] for name in plain if name not in changes and cls.unread(unchecked, name)}
        new = cls(**values)
        for name, value in changes.items():
            if value not in _LEFT_OUT and not (isinstance(value, tuple) and not value):
                new.refuse_unread(name)
        return new
