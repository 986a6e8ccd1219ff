"""A group that imports a command when it is run, and reports every error in one line."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import click

from boundcalc.base.errors import BoundcalcError, InvalidSetting, Unsupported
from boundcalc.base.validate import hint

_USAGE, FAILURE, _INTERRUPTED, _BROKEN_PIPE = 2, 1, 130, 141
_SHORT_LIST = 12
EXTRA_OF = {name: "train" for name in ("torch", "joblib", "safetensors")} | {"matplotlib": "plot"}
EXTRA_OF |= {name: name for name in ("ray", "dask")}
"""The extra that installs a library."""


class LazyGroup(click.Group):
    """Commands by the title they are listed under: name -> one line of help; each is `command` of its module."""

    def __init__(
        self, *args: Any, groups: Mapping[str, Mapping[str, str]], removed: Mapping[str, str], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.groups, self.removed = groups, removed

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.groups.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f"boundcalc.cli._{cmd_name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        for name in (" ".join(args[:1]), " ".join(args[:2])):
            if name in self.removed:
                raise click.UsageError(f"the command {name!r} is gone: {self.removed[name]}", ctx)
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            raise click.UsageError(near(f"no command {args[0]!r}", args[0], self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in names.items()])

    def main(self, args: Sequence[str] | None = None, *positional: Any, **options: Any) -> Any:
        """Run, and turn what goes wrong into one line on stderr and an exit code."""
        typed = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in typed
        warnings.formatwarning = lambda message, *_, **__: f"boundcalc: {_one_line(str(message))}\n"
        try:
            words = [word for word in typed if word != "--debug"]
            code = super().main(words, *positional, **{**options, "standalone_mode": False})
            sys.stdout.flush()
        except SystemExit as error:  # of click, where the reader of the output went away
            code = _BROKEN_PIPE if isinstance(error.__context__, BrokenPipeError) else error.code
        except BrokenPipeError:
            code = _BROKEN_PIPE
        except (KeyboardInterrupt, click.Abort):
            code = _INTERRUPTED
        except Exception as error:
            if debug:
                raise
            text, code = _message(error)
            click.echo(_one_line(text) if text.count("\n") < _SHORT_LIST else text, err=True)
        if code == _BROKEN_PIPE:  # the interpreter's last flush shall not complain either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code if isinstance(code, int) else 0)


def near(problem: str, got: str, choices: Sequence[str]) -> str:
    """A problem with an unknown name, and the known name it may have been meant for."""
    listed = f"known: {', '.join(choices)}" if len(choices) <= _SHORT_LIST else "see boundcalc explain"
    return problem + (hint(got, choices) or f"; {listed}")


def _message(error: Exception) -> tuple[str, int]:
    """The line that reports an error, and its exit code."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "boundcalc"
        text = error.format_message().rstrip(".")
        if type(error).__name__ == "NoArgsIsHelpError":
            return text, _USAGE
        return f"{command}: {text} (see {command} --help)", _USAGE
    if isinstance(error, click.ClickException):
        return f"boundcalc: {error.format_message()}", error.exit_code
    if isinstance(error, BoundcalcError):
        return f"boundcalc: {error}", _USAGE if isinstance(error, InvalidSetting | Unsupported) else FAILURE
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").partition(".")[0]
        if library in EXTRA_OF:
            install = f"in a clone of boundcalc, pip install '.[{EXTRA_OF[library]}]'"
            return f"boundcalc: this needs {library}, which is not installed: {install}", FAILURE
    if isinstance(error, OSError):
        name = error.filename or "standard output"  # files are named by those who write them
        return f"boundcalc: {name}: {error.strerror or error}", FAILURE
    if isinstance(error, MemoryError) or "memory" in str(error).lower():
        return f"boundcalc: out of memory: ask for less at once ({error})", FAILURE
    text = f"boundcalc: internal error: {type(error).__name__}: {error}; --debug shows where, please report it"
    return text, FAILURE


def _one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())
