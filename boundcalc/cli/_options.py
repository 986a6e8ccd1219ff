"""Options: how they are declared and read, which have no effect, and how those that name files are kept apart."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name, parse_json, plain_digits
from boundcalc.base.rounding import short

# -- values


def number(text: str) -> float | None:
    """A float, also from 10^6 and 1_000_000; None where it is no real number."""
    base, power, exponent = text.replace("_", "").partition("^")
    try:
        plain_digits(text)
        value = float(base) ** float(exponent) if power else float(base)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return value if isinstance(value, float) else None


def whole(text: str) -> int | None:
    """A whole number, to its last digit where all are written; None where it is none, or beyond the range of floats."""
    value = number(text)
    if value is None or not math.isfinite(value) or value != int(value):
        return None
    return int(text) if text.isdecimal() else int(value)


def shown(value: Any) -> str:
    """A value of a setting, as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short(value) if isinstance(value, int | float) else str(value)


def pairs(option: str, words: Iterable[str], example: str) -> dict[str, str]:
    """NAME=VALUE of a repeated option, each name once."""
    values: dict[str, str] = {}
    for word in words:
        name, _, text = word.partition("=")
        if not name or not text:
            raise InvalidSetting(f"{option} is NAME=VALUE, such as {example}; got {word!r}")
        if name in values:
            raise InvalidSetting(f"{option} gives {name!r} twice")
        values[name] = text
    return values


def assignments(words: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE of --set, repeated: the values are JSON where they are, else text."""

    def value(name: str, text: str) -> Any:
        try:
            json.loads(text)
        except ValueError:
            return text
        return parse_json(text, f"--set {name}")

    return {name: value(name, text) for name, text in pairs("--set", words, "lr=0.01").items()}


class _Number(click.ParamType):
    """A number as people write it; `read` gives None for what is none."""

    def __init__(self, name: str, read: Callable[[str], Any], examples: str) -> None:
        self.name, self.read, self.examples = name, read, examples

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        parsed = self.read(value) if isinstance(value, str) else value
        if parsed is None:
            self.fail(f"needs a {self.name} such as {self.examples}, got {value!r}", param, ctx)
        return parsed


TYPES: dict[Any, click.ParamType] = {
    bool: click.BOOL,
    str: click.STRING,
    float: _Number("number", number, "0.05, 1e-3 or 10^-3"),
    int: _Number("whole number", whole, "512, 1e6 or 10^6"),
}


# -- declaring options

_Option = Callable[[Any], Any]


def option(names: str, kind: Any, words: str = "", default: Any = None, **more: Any) -> _Option:
    """An option by its names, the type of its value (`bool` is a flag), its help and its default."""
    if kind is bool:
        return click.option(*names.split(), is_flag=True, default=bool(default), help=words, **more)
    more = {"show_default": default is not None} | more
    return click.option(*names.split(), type=TYPES.get(kind, kind), default=default, help=words, **more)


def several(names: str, words: str, metavar: str | None = None, kind: Any = str) -> _Option:
    """An option that may be repeated."""
    return click.option(*names.split(), multiple=True, type=TYPES.get(kind, kind), metavar=metavar, help=words)


def all_of(*options: _Option) -> _Option:
    """Options in the order in which --help lists them."""

    def added(function: Any) -> Any:
        for add in reversed(options):
            function = add(function)
        return function

    return added


def form_option(*forms: str) -> _Option:
    """--format, of which the first is the default."""
    return option("--format form", click.Choice(forms), default=forms[0])


def write_json(document: Any, **options: Any) -> None:
    """A document, for programs."""
    click.echo(json.dumps(document, indent=1, **options))


# -- options without effect


def refuse_given(why: str, *names: str) -> None:
    """Refuse each of these parameters of the running command that was given, and say why it has no effect."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source not in (None, ParameterSource.DEFAULT):
            raise InvalidSetting(f"{max(parameter.opts, key=len)} has no effect {why}")


def refuse_others(why: str, takes: Collection[str]) -> None:
    """Refuse each parameter that was given besides those that something takes."""
    refuse_given(why, *(set(click.get_current_context().params) - {*takes, "force"}))


# -- files


class Input(click.Path):
    """A file or folder that is read, or a name in a Python file that is executed ("module.py:make")."""


class Output(click.Path):
    """A file or folder that is written; a store `appends`: where it exists, it is continued."""

    def __init__(self, *, appends: bool = False, **options: Any) -> None:
        super().__init__(path_type=Path, **options)
        self.appends = appends


FILE, FILE_OR_FOLDER = Input(dir_okay=False), Input()
NEW_FILE, NEW_FOLDER, STORE = Output(dir_okay=False), Output(file_okay=False), Output(dir_okay=False, appends=True)


class FileCommand(click.Command):
    """A command whose outputs replace none of its inputs, nor each other, nor anybody else's files."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if any(isinstance(p.type, Output) and not p.type.appends for p in self.params):
            words = "Overwrite existing files (never an input)."
            self.params.append(click.Option(["--force"], is_flag=True, help=words))

    def invoke(self, ctx: click.Context) -> Any:
        """Look at all files first: nothing is computed for an output that may not be written."""
        force = bool(ctx.params.pop("force", False))
        reads: dict[str, str] = {}
        outputs: list[tuple[Path, Output]] = []
        for parameter in self.params:
            kind, value = parameter.type, ctx.params.get(parameter.name or "")
            values: tuple[Any, ...] = () if value is None else value if isinstance(value, tuple) else (value,)
            if isinstance(kind, Input):
                words = map(os.fspath, values)
                reads |= {w.rpartition(":")[0] if is_name(w) else w: parameter.opts[0] for w in words}
            if isinstance(kind, Output) and kind.file_okay:
                outputs += [(path, kind) for path in values]
        with output.command(reads, force=force):
            for path, kind in outputs:
                output.check(path, appends=kind.appends)
            output.apart(path for path, _ in outputs)
            return super().invoke(ctx)


def command_with(examples: str) -> Callable[[Any], click.Command]:
    """A command whose help ends in these examples, and in the text after them."""
    return click.command(cls=FileCommand, epilog=f"\b\nExamples:\n{examples}")


bounds_option = several("--bound bounds", "Only this bound (repeatable).")
