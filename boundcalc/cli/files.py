"""Options that name files: which are read, which are written and as what, and the command that keeps them apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output

_Files = Callable[[Path, Mapping[str, Any]], Sequence[Path]]
"""The files that an option leads to."""


class Input(click.Path):
    """A file or folder that is read."""

    def reads(self, value: Any) -> str:
        """The file that a value names."""
        return os.fspath(value)


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

    Attributes:
        files: of the path and the command's values, the files known in advance.
        appends: whether an existing file is continued, as a store is.
    """

    def __init__(self, files: _Files, *, appends: bool = False, **options: Any) -> None:
        super().__init__(path_type=Path, **options)
        self.files = files
        self.appends = appends


class _NameOrFile(Input):
    """The name of something known, or of a file that is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        del param, ctx
        return value


NAME_OR_FILE = _NameOrFile()
FILE = Input(dir_okay=False)
STORE = Input(dir_okay=False, path_type=Path)


def output_file(files: _Files = lambda file, values: [file], *, appends: bool = False) -> Output:
    """The type of an option that names a file to write."""
    return Output(files, appends=appends, dir_okay=False)


def output_folder(files: _Files = lambda folder, values: []) -> Output:
    """The type of an option that names a folder to write into."""
    return Output(files, file_okay=False)


class FileCommand(click.Command):
    """A command whose outputs replace none of its inputs, nor each other, nor anybody else's files."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if any(not output.type.appends for output in self.outputs if isinstance(output.type, Output)):
            self.params.append(
                click.Option(
                    ["--force"], is_flag=True, expose_value=True, help="Overwrite existing files (never an input)."
                )
            )

    @property
    def outputs(self) -> list[click.Parameter]:
        """The options that name what is written."""
        return [parameter for parameter in self.params if isinstance(parameter.type, Output)]

    def invoke(self, ctx: click.Context) -> Any:
        """Look at all files first: nothing is computed for an output that may not be written."""
        force = bool(ctx.params.pop("force", False))
        with output.command(dict(self._inputs(ctx)), force=force):
            outputs: list[Path] = []
            for parameter in self.outputs:
                path, kind = ctx.params.get(parameter.name or ""), parameter.type
                if path is not None and isinstance(kind, Output):
                    files = kind.files(path, ctx.params)
                    outputs += files
                    for file in files:
                        output.check(file, appends=kind.appends)
            output.apart(outputs)
            return super().invoke(ctx)

    def _inputs(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if isinstance(parameter.type, Input) and value is not None:
                said = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
                for path in value if isinstance(value, tuple) else (value,):
                    yield parameter.type.reads(path), said
