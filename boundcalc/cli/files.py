"""Options that name files: which are read, which are written and as what, and the command that keeps them apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import kinds, output
from boundcalc.cli.idle import Command

if TYPE_CHECKING:
    from pathlib import Path

_Kinds = Callable[["Path", Mapping[str, Any]], Mapping["Path", output.Kind]]
"""The files that an option leads to, with their kinds; what is not among them is not written."""


class Input(click.Path):
    """A file or folder that is read."""

    def reads(self, value: Any) -> str:
        """The file that a value names."""
        return os.fspath(value)


def _path(value: str | os.PathLike[str]) -> Path:
    from pathlib import Path  # where used: an option that is not given needs no path

    return Path(value)


class _PathInput(Input):
    """A file that is read, as a path."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> Any:
        return _path(value)


class PythonName(Input):
    """A name in a Python file, "module.py:make": the file is read (and executed)."""

    name = "file.py:name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        del param, ctx
        return value

    def reads(self, value: Any) -> str:
        return str(value).rpartition(":")[0] or str(value)


class Output(click.Path):
    """A file or folder that is written.

    `leads_to` tells the files that are known in advance; a folder may get others, and so may the folder beside a file
    whose name has the ending `folder`.
    """

    def __init__(self, leads_to: output.Kind | _Kinds, folder: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.leads_to = leads_to
        self.folder = folder

    def coerce_path_result(self, value: str | os.PathLike[str]) -> Any:
        return _path(value)

    def files(self, path: Path, values: Mapping[str, Any]) -> Mapping[Path, output.Kind]:
        """Each file that will be written, and its kind."""
        if isinstance(self.leads_to, output.Kind):
            return {path: self.leads_to}
        return self.leads_to(path, values)


class _NameOrFile(Input):
    """The name of something known, or of a file that is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        del param, ctx
        return value


NAME_OR_FILE = _NameOrFile()
FILE = Input(dir_okay=False)
STORE = _PathInput(dir_okay=False)


def output_file(leads_to: output.Kind | _Kinds, folder: str = "") -> Output:
    """The type of an option that names a file to write."""
    return Output(leads_to, folder, dir_okay=False)


def output_folder(leads_to: _Kinds = lambda folder, values: {}) -> Output:
    """The type of an option that names a folder to write into."""
    return Output(leads_to, file_okay=False)


def with_numbers(beside: output.Kind) -> _Kinds:
    """An image, and the JSON of its numbers beside it."""
    return lambda image, values: {image: kinds.IMAGE, image.with_suffix(".json"): beside}


class FileCommand(Command):
    """A command whose outputs replace none of its inputs, nor each other, nor anybody else's files."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.outputs:
            self.params.append(
                click.Option(
                    ["--force"], is_flag=True, expose_value=True, help="Replace whatever is there (never an input)."
                )
            )

    @property
    def outputs(self) -> list[click.Parameter]:
        """The options that name what is written."""
        return [parameter for parameter in self.params if isinstance(parameter.type, Output)]

    def invoke(self, ctx: click.Context) -> Any:
        """Look at all files first: nothing is computed for an output that may not be written."""
        force = bool(ctx.params.pop("force", False))
        reads = dict(self._inputs(ctx))
        writes: list[Path] = []
        files: dict[Path, output.Kind] = {}
        for parameter in self.outputs:
            path = ctx.params.get(parameter.name or "")
            if path is None:
                continue
            leads = parameter.type.files(_path(path), ctx.params)  # type: ignore[attr-defined]
            output.apart([*files, *leads])
            files |= leads
            folder: str = parameter.type.folder  # type: ignore[attr-defined]
            writes += [path, *leads, *([path.with_name(path.name + folder)] if folder else [])]
        with output.command(reads, writes, files, force=force):
            return super().invoke(ctx)

    def _inputs(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if isinstance(parameter.type, Input) and value is not None:
                said = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
                for path in value if isinstance(value, tuple) else (value,):
                    yield parameter.type.reads(path), said


class FileGroup(click.Group):
    """A group of such commands."""

    command_class = FileCommand
