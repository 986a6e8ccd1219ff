"""`boundcalc runs`: what is in a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from boundcalc.base.rounding import near
from boundcalc.cli.files import FileGroup
from boundcalc.cli.learning import chosen_runs, read_store_option, runs_option, store_option
from boundcalc.cli.options import write_json
from boundcalc.cli.text import mark, say_checked

_COLUMNS = ("task", "T", "m", "depth", "seed", "status", "steps", "train_error", "test_error", "gap")


@click.group(
    cls=FileGroup,
    epilog="""\b
Examples:
  boundcalc runs list --runs task=conjunction --runs T=64
  boundcalc runs show 3fa9
  boundcalc runs verify

A store is one SQLite file: copy it to move it, and read it with any program that reads SQLite.""",
)
def command() -> None:
    """Look at and check stored trials."""


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """A store to read; damaged records are named on stderr."""
    from boundcalc.lab.train.store import Store

    with Store(path, read_only=True) as store:
        yield store
        for text in store.damaged:
            click.echo(f"left out: {text}", err=True)


@command.command("list", short_help="A line per trial.")
@read_store_option
@runs_option
def list_runs(store_path: Path, runs: tuple[str, ...]) -> None:
    """A line per trial: its hash, what was trained, how it ended, its errors and gap."""
    from boundcalc.cli.text import Line, write_table
    from boundcalc.lab.train.store import summary_columns

    which = chosen_runs(runs)
    with _open(store_path) as store:
        records = list(store.select(**which))
        sweeps = store.sweeps()
    if not records:
        click.echo("no trials")
        return
    lines: list[Line] = []
    for record in records:
        values = summary_columns(record.config, record.result)
        cells = (near(values[c]) if isinstance(values[c], float) else str(values[c]) for c in _COLUMNS)
        lines.append(Line((record.hash[:12], *cells)))
    write_table(("hash", *_COLUMNS), lines, droppable=("steps", "status", "depth"))
    if sweeps:
        click.echo("sweeps: " + ", ".join(f"{name} ({count})" for name, count in sweeps.items()))


@command.command("show", short_help="All of one trial, as JSON.")
@read_store_option
@click.argument("hash_prefix", metavar="HASH")
def show(store_path: Path, hash_prefix: str) -> None:
    """The complete record of the trial whose hash begins so."""
    with _open(store_path) as store:
        write_json(store.find(hash_prefix).to_json())


@command.command("rm", short_help="Forget trials.")
@store_option
@click.argument("hashes", nargs=-1, required=True, metavar="HASH...")
def remove(store_path: Path, hashes: tuple[str, ...]) -> None:
    """Remove trials, and their certificates, by the first digits of their hashes."""
    from boundcalc.lab.train.store import Store

    with Store(store_path, create=False) as store:
        names = [store.named(prefix) for prefix in hashes]
        click.echo(f"{store.remove(names)} trials removed")


@command.command("verify", short_help="Check every record.")
@read_store_option
def verify(store_path: Path) -> None:
    """Check the file, every record's digest and hash, and its certificates; exit code 1 if any is wrong."""
    from boundcalc.lab.train.store import Store

    with Store(store_path, read_only=True) as store:
        problems, count = store.verify(), len(store)
    for problem in problems:
        click.echo(f"{mark(False)} {problem}", err=True)
    if problems:
        raise click.ClickException(f"{len(problems)} problems in {store_path}")
    say_checked(True, f"{count} trials, all as they were written")
