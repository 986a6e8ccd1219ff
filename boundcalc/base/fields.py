"""Fields of dataclasses: their annotations carry checks, their metadata words, symbols and options.

`check_fields` holds an instance against its annotations; the command line, descriptions, prompts and symbols read
`specs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass
from functools import cache, partial
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, cast, get_args, get_origin, get_type_hints

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import json_name, letter

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
    """What is to be known of one field.

    Attributes:
        kind: of its values.
        choices: words it may be.
        words: what it is, in a few words of Markdown.
        latex: its symbol, where papers have one.
        help: of its own option; "" where --set gives it.
        label: how it is shown next to its value, where that is not its name.
        typical: a range of ordinary values.
    """

    kind: type
    choices: tuple[str, ...]
    words: str
    latex: str = ""
    help: str = ""
    label: str = ""
    typical: tuple[float, float] = (0.5, 4.0)


def declare(default: Any, words: str, **rest: Any) -> Any:
    """A field with what `specs` tells of it: its words, and `latex`, `help`, `label`, `typical` as in `Spec`."""
    return field(default=default, metadata={"words": words, **rest})


_Check = Callable[[str, Any], Any]


def _parts(hint: Any) -> tuple[type, tuple[str, ...], _Check | None]:
    """The type of a field's values, the words it may be, and its check: None where there is nothing to check."""
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            check = inner[1]
            return inner[0], tuple(getattr(check, "keywords", {}).get("options", ())), check
        case origin if origin is Literal:
            return str, inner, lambda name, value: validate.choice(name, value, inner)
        case origin if origin in (Union, UnionType):
            kind, choices, check = _parts(inner[0])
            return kind, choices, check and (lambda name, value: None if value is None else check(name, value))
    if isinstance(hint, type) and is_dataclass(hint):
        return hint, (), partial(_instance, hint)
    return hint, (), validate.flag if hint is bool else None


def _instance(cls: type, name: str, value: Any) -> Any:
    if not isinstance(value, cls):
        raise InvalidSetting(f"{name} must be of type {cls.__name__}, got {validate.shown(value)}")
    return value


@cache
def _checks(cls: type) -> tuple[tuple[str, str, _Check], ...]:
    hints = get_type_hints(cls, include_extras=True)
    checks = ((f, _parts(hints[f.name])[2]) for f in fields(cls))
    return tuple((f.name, letter(json_name(f)), check) for f, check in checks if check is not None)


@cache
def specs(cls: type) -> dict[str, Spec]:
    """The declared fields of a dataclass."""
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: Spec(*_parts(hints[f.name])[:2], **f.metadata) for f in fields(cls) if "words" in f.metadata}


def check_fields(instance: Any, prefix: str = "") -> None:
    """Hold a frozen dataclass against its annotations; whole floats are kept as integers.

    Raises:
        InvalidSetting: a field, called by its name after the prefix, has another value than its annotation allows.
    """
    for name, shown, check in _checks(type(instance)):
        value = getattr(instance, name)
        kept = check(prefix + shown, value)
        if type(kept) is int and kept is not value:
            object.__setattr__(instance, name, kept)


_LEFT_OUT = (None, False, 0, "none")
"""Values that say that something is not there."""


class Described:
    """A frozen dataclass with fields that nothing reads under certain values of others: `unread` says which."""

    __slots__ = ()

    def unread(self, name: str) -> str | None:
        """Why a field changes nothing here, or None where something depends on it."""
        del name
        return None

    def refuse_unread(self, name: str = "") -> None:
        """Refuses a field that was given and changes nothing here; without a name, all but those of default value."""
        for f in fields(cast("Any", self)):
            if name in ("", f.name) and (reason := self.unread(f.name)) is not None:
                value = getattr(self, f.name)
                if name or value != f.default:  # an array is of what is read
                    raise InvalidSetting(f"{f.name} = {validate.shown(value)} would change nothing: {reason}")

    def with_fields(self, **changes: Any) -> Self:
        """The same with some fields changed; what was there before counts as a default."""
        return self.from_defaults({f.name: getattr(self, f.name) for f in fields(cast("Any", self))}, changes)

    @classmethod
    def from_defaults(cls, defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> Self:
        """An instance of what is given, and of defaults as far as anything reads them besides it.

        What is given and not read is refused, unless it says that something is left out, which it is.
        """
        plain = {f.name: f.default for f in fields(cast("Any", cls))}
        values = {name: {**plain, **defaults, **changes}[name] for name in plain}
        unchecked: Any = SimpleNamespace(**values)
        if values.get("layers") is None:  # listed layers go with nothing else
            values |= {name: plain[name] for name in plain if name not in changes and cls.unread(unchecked, name)}
        new = cls(**values)
        for name, value in changes.items():
            if value not in _LEFT_OUT and not (isinstance(value, tuple) and not value):
                new.refuse_unread(name)
        return new
