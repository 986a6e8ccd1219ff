"""The one table of fields: what is to be known of a field of a setting stands next to it, where it is declared.

`check_fields` holds an instance against it; the command line, descriptions, prompts and symbols read it by `specs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from functools import cache
from typing import Any, Literal, NamedTuple

from boundcalc.base import validate
from boundcalc.base.schema import letter


class Spec(NamedTuple):
    """What is to be known of one field.

    Attributes:
        kind: of its values.
        words: what it is, in a few words of Markdown.
        latex: its symbol, where papers have one.
        help: of its own option; "" where --set gives it.
        label: how it is shown next to its value, where that is not its name.
        least, most: of its values; `ends`: whether a number may be 0 (a share: 0 or 1).
        optional: whether it may be None.
        choices: words it may be.
        typical: a range of ordinary values.
    """

    kind: Literal["whole", "number", "share", "flag", "word"]
    words: str
    latex: str = ""
    help: str = ""
    label: str = ""
    least: int = 1
    most: int = validate.MOST
    ends: bool = False
    optional: bool = False
    choices: tuple[str, ...] = ()
    typical: tuple[float, float] = (0.5, 4.0)

    def check(self, name: str, value: Any) -> Any:
        """The value as it is kept; raises `InvalidSetting` where it cannot be one of this field."""
        if value is None and self.optional:
            return None
        if self.kind == "whole":
            return validate.size(name, value, least=self.least, most=self.most)
        if self.kind == "number":
            validate.positive(name, value, zero=self.ends)
        elif self.kind == "share":
            validate.fraction(name, value, ends=self.ends)
        elif self.kind == "flag":
            validate.flag(name, value)
        else:
            return validate.choice(name, value, self.choices)
        return value


def _declare(default: Any, spec: Spec) -> Any:
    return field(default=default, metadata={"spec": spec})


def whole(default: Any, words: str, **rest: Any) -> Any:
    """A field that is a whole number, from 1 unless `least` is given; `optional` where its default is None."""
    return _declare(default, Spec("whole", words, optional=default is None, **rest))


def number(default: Any, words: str, **rest: Any) -> Any:
    """A field that is a number above 0, or with `ends` at least 0."""
    return _declare(default, Spec("number", words, optional=default is None, **rest))


def share(default: Any, words: str, **rest: Any) -> Any:
    """A field that lies between 0 and 1, with `ends` from 0 to 1."""
    return _declare(default, Spec("share", words, **rest))


def flag(default: bool, words: str, **rest: Any) -> Any:
    """A field that is true or false."""
    return _declare(default, Spec("flag", words, **rest))


def word(default: str, words: str, choices: Iterable[str], **rest: Any) -> Any:
    """A field that is one of some words."""
    return _declare(default, Spec("word", words, choices=tuple(choices), **rest))


@cache
def specs(cls: type) -> dict[str, Spec]:
    """The declared fields of a dataclass."""
    return {f.name: f.metadata["spec"] for f in fields(cls) if "spec" in f.metadata}


def check_fields(instance: Any) -> None:
    """Hold a frozen dataclass against what its fields declare; whole floats are kept as integers."""
    for name, spec in specs(type(instance)).items():
        value = getattr(instance, name)
        kept = spec.check(letter(name), value)
        if kept is not value:
            object.__setattr__(instance, name, kept)
