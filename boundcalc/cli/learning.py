"""What the commands about training share: options, progress on a terminal and in logs, the default store."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from boundcalc.base import kinds
from boundcalc.cli import files
from boundcalc.lab.train.progress import Progress

F = TypeVar("F", bound=Callable[..., Any])

_STORE = "boundcalc-runs.db"


def default_store() -> Path:
    """Where trials are kept unless told otherwise."""
    return Path(os.environ.get("BOUNDCALC_STORE", _STORE))


def _store_option(kind: click.ParamType) -> Callable[[F], F]:
    return click.option(
        "--store",
        "store_path",
        type=kind,
        default=default_store,
        show_default=f"$BOUNDCALC_STORE or {_STORE}",
        help="SQLite file of results.",
    )


def read_store_option(function: F) -> F:
    """--store, of a command that looks at results."""
    return _store_option(files.STORE)(function)


def store_option(function: F) -> F:
    """--store, of a command that adds or removes results."""
    return _store_option(files.output_file(kinds.STORE, ".weights"))(function)


def runs_option(function: F) -> F:
    """--runs, of a command that chooses among stored trials."""
    return click.option(
        "--runs",
        "runs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Which trials: task, T, m, s, law, sweep, status (repeatable).",
    )(function)


_CHOOSES = ("task", "T", "m", "s", "law", "sweep", "status")
_ENDS = ("done", "diverged")


def chosen_runs(texts: Sequence[str]) -> dict[str, Any]:
    """What --runs says, for `Store.select`; of sweeps there may be several."""
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.setting import validate

    found: dict[str, Any] = {}
    sweeps: list[str] = []
    for text in texts:
        name, value = run_pair(text)
        (name,) = validate.known_keys("--runs", {name: value}, _CHOOSES)
        if name == "sweep":
            sweeps.append(str(value))
        elif name in found:
            raise InvalidSetting(f"--runs gives {name} twice")
        else:
            found[name] = value
    for name in found.keys() & {"T", "m", "s"}:
        found[name] = validate.size(f"--runs {name}", found[name], least=0)
    if "law" in found:
        validate.choice("law", found["law"], ("balanced", "natural"))
    if "status" in found:
        validate.choice("status", found["status"], _ENDS)
    return found | ({"sweep": sweeps} if sweeps else {})


def run_pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE of --runs: a number where it is one."""
    from boundcalc.base.errors import InvalidSetting
    from boundcalc.cli.values import number

    name, equals, value = text.partition("=")
    if not equals or not value:
        raise InvalidSetting(f"--runs is NAME=VALUE, such as task=conjunction or T=128; got {text!r}")
    amount = number(value) if name not in ("task", "sweep", "status", "law") else None
    whole = amount is not None and amount == int(amount)
    return name, value if amount is None else int(amount) if whole else amount


def device_option(function: F) -> F:
    """--device."""
    return click.option(
        "--device",
        type=click.Choice(("auto", "cpu", "cuda", "mps")),
        default="auto",
        show_default=True,
        help="Where to compute.",
    )(function)


def say_positions(trials: Iterable[Any]) -> None:
    """Rows of a user's own data carry no positions unless asked for, which whoever trains on them must know."""
    for trial in trials:
        own = trial.task.kind == "arrays" or trial.task.origin is not None
        if own and trial.architecture.positions == "none" and trial.architecture.seq_len > 1:
            click.echo(
                "rows carry no positions, so no function of their order can be learned; "
                "--set model.positions=learned adds them",
                err=True,
            )
            return


def _say_kept(store: Any, trials: Iterable[Any]) -> None:
    """After an interruption: what is there, and how to go on."""
    kept = len(store.hashes() & {trial.hash for trial in trials})
    click.echo(f"\ninterrupted: {kept} trials kept in {store.path}; run the same command again to go on", err=True)


def clock(seconds: float) -> str:
    """A duration a person can read."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Log(Progress):
    """Progress as lines, a few seconds apart: for files and pipes."""

    def __init__(self, every: float = 10.0) -> None:
        self.every = every
        self.last = time.monotonic()
        self.what = "trials"

    def begin(self, done: int, total: int, what: str = "trials") -> None:
        """How much is there already."""
        self.what = what
        click.echo(f"{done} of {total} {what} are in the store", err=True)

    def advance(self, trials: int, done: int, total: int, left: float | None) -> None:
        """One line now and then."""
        del trials
        if time.monotonic() - self.last >= self.every or done == total:
            self.last = time.monotonic()
            eta = "" if left is None or done == total else f", about {clock(left)} left"
            click.echo(f"{done} of {total} {self.what}{eta}", err=True)

    def note(self, text: str) -> None:
        """A line of its own."""
        click.echo(text, err=True)


class Bar(Progress):
    """Progress as a bar, on a terminal."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self.bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=False,
        )
        self.task: Any = None

    def begin(self, done: int, total: int, what: str = "trials") -> None:
        """Show the bar."""
        self.bar.start()
        self.task = self.bar.add_task(what, completed=done, total=total, left="")

    def advance(self, trials: int, done: int, total: int, left: float | None) -> None:
        """Move it."""
        del trials
        eta = "" if left is None or done == total else f"about {clock(left)} left"
        self.bar.update(self.task, completed=done, left=eta)

    def note(self, text: str) -> None:
        """A line above it."""
        self.bar.console.print(text, markup=False)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self.bar.stop()


@contextmanager
def watched(quiet: bool = False) -> Iterator[Progress]:
    """A bar on a terminal, lines elsewhere, nothing when asked to be quiet; the terminal is left as it was."""
    progress = Progress() if quiet else Bar() if sys.stderr.isatty() else Log()
    try:
        yield progress
    finally:
        progress.stop()


@contextmanager
def kept(store: Any, trials: Iterable[Any], quiet: bool) -> Iterator[Any]:
    """The same for trials that a store takes one by one: an interruption says what is there."""
    with watched(quiet) as progress:
        try:
            yield progress
        except KeyboardInterrupt:
            _say_kept(store, trials)
            raise
