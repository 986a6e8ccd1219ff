"""Progress on stderr: bars on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from boundcalc.checkpoints.audit import Progress as Told


def _bar(what: str, *columns: ProgressColumn | str, transient: bool = False) -> Progress:
    """A text, a bar, and what stands behind it; transient: gone when it is full."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    return Progress(what, BarColumn(), *columns, console=Console(stderr=True), transient=transient)


def counted(points: Iterator[Any], total: int) -> Iterator[Any]:
    """The points of a grid, with a bar if there is a terminal."""
    if not sys.stderr.isatty():
        return points
    from rich.console import Console
    from rich.progress import track

    return iter(track(points, "sweep", total, console=Console(stderr=True), transient=True))


@contextmanager
def measuring() -> Iterator[Told | None]:
    """Tells what is measured of a checkpoint, and how much is left; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TimeRemainingColumn

    shown = _bar("{task.description:20}", "{task.percentage:>3.0f}%", TimeRemainingColumn(), transient=True)
    with shown as bar:
        task = bar.add_task("reading", total=None)

        def show(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        yield show


class Live:
    """One line that is redrawn on a terminal; lines elsewhere."""

    def __init__(self) -> None:
        self.redraw = sys.stderr.isatty()
        self.shown = False

    def show(self, text: str) -> None:
        """Show the newest."""
        click.echo(f"\r{text:<79}" if self.redraw else text, err=True, nl=not self.redraw)
        self.shown = True

    def end(self) -> None:
        """Leave the line."""
        if self.shown and self.redraw:
            click.echo("", err=True)


# -- trials

_EVERY = 10.0
"""Seconds between lines."""


def clock(seconds: float) -> str:
    """A duration a person can read."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def kept(store: Any, trials: Iterable[Any]) -> Iterator[Callable[[str, int, int], None]]:
    """What shows how many trials or certificates a store has: bars on a terminal; elsewhere lines, some seconds apart.

    After an interruption the number of the finished trials. The terminal is left as it was.
    """
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    bar = _bar("{task.description}", MofNCompleteColumn(), TimeRemainingColumn()) if sys.stderr.isatty() else None
    tasks: dict[str, Any] = {}
    last = -_EVERY

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        if bar is not None:
            bar.start()
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)
        elif time.monotonic() - last >= _EVERY or done == total:
            last = time.monotonic()
            click.echo(f"{done} of {total} {what} are in the store", err=True)

    try:
        yield show
    except KeyboardInterrupt:
        count = len(store.hashes() & {trial.hash for trial in trials})
        click.echo(f"\ninterrupted: {count} trials kept in {store.path}; run the same command again to go on", err=True)
        raise
    finally:
        if bar is not None:
            bar.stop()
