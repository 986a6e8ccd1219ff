"""Progress on stderr: a status line by rich on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import click


class Live:
    """Shows the newest state, on a terminal in one line that goes at the end.

    Elsewhere each is a line, at most one in `every` seconds, or nothing if `quiet`.
    """

    def __init__(self, every: float = 0.0, *, quiet: bool = False) -> None:
        self.every, self.quiet, self.last, self.status = every, quiet, -every, None
        if sys.stderr.isatty():
            from rich.console import Console

            self.status = Console(stderr=True).status("")

    def show(self, text: str, *, final: bool = False) -> None:
        """Show the newest."""
        if self.status is not None:
            from rich.markup import escape

            self.status.start()
            self.status.update(escape(text))
        elif not self.quiet and (final or time.monotonic() - self.last >= self.every):
            self.last = time.monotonic()
            click.echo(text, err=True)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self.status is not None:
            self.status.stop()


def counted(points: Iterable[Any], total: int) -> Iterator[Any]:
    """The points of a grid, counted on a terminal."""
    with Live(quiet=True) as live:
        for done, point in enumerate(points):
            live.show(f"{done} of {total} points")
            yield point


@contextmanager
def trials_counted() -> Iterator[Callable[[str, int, int], None]]:
    """What shows how many trials or certificates a store has."""
    with Live(every=10.0) as live:
        yield lambda what, done, total: live.show(f"{done} of {total} {what} are in the store", final=done == total)
