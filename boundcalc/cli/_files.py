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


class NameOrFile(Input):
    """A file that is read, a name in a Python file that is executed ("module.py:make"), or a known name."""

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


NAME_OR_FILE = NameOrFile()
FILE = Input(dir_okay=False)
OUTPUT_FOLDER = Output(lambda folder, values: [], file_okay=False)


def output_file(files: _Files = lambda file, values: [file], *, appends: bool = False) -> Output:
    """The type of an option that names a file to write."""
    return Output(files, appends=appends, dir_okay=False)


class FileCommand(click.Command):
    """A command whose outputs replace none of its inputs, nor each other, nor anybody else's files."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outputs = [(p, p.type) for p in self.params if isinstance(p.type, Output)]
        if not all(kind.appends for _, kind in self.outputs):
            words = "Overwrite existing files (never an input)."
            self.params.append(click.Option(["--force"], is_flag=True, help=words))

    def invoke(self, ctx: click.Context) -> Any:
        """Look at all files first: nothing is computed for an output that may not be written."""
        force = bool(ctx.params.pop("force", False))
        with output.command(dict(self._inputs(ctx)), force=force):
            outputs: list[Path] = []
            for parameter, kind in self.outputs:
                if (path := ctx.params.get(parameter.name or "")) is not None:
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
                for path in value if isinstance(value, tuple) else (value,):
                    yield parameter.type.reads(path), parameter.opts[0]
