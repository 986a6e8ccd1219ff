"""`boundcalc runs`: what is in a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import near
from boundcalc.cli.learning import chosen_runs, read_store_option, runs_option
from boundcalc.cli.options import write_json
from boundcalc.cli.text import Line, mark, say_checked, write_table

_COLUMNS = ("task", "T", "m", "depth", "seed", "status", "steps", "train_error", "test_error", "gap")


@click.command(
    epilog="""\b
Examples:
  boundcalc runs --runs task=conjunction --runs T=64
  boundcalc runs 3fa9
  boundcalc runs --verify
  boundcalc runs 3fa9 --forget

A store is one SQLite file: copy it to move it, and read it with any program that reads SQLite.""",
)
@click.argument("hashes", nargs=-1, metavar="[HASH]...")
@read_store_option
@runs_option
@click.option("--verify", is_flag=True, help="Check the file, every record's digest and hash, and its certificates.")
@click.option("--forget", is_flag=True, help="Remove the trials of these hashes, and their certificates.")
def command(hashes: tuple[str, ...], store_path: Path, runs: tuple[str, ...], verify: bool, forget: bool) -> None:
    """Stored trials: a line for each, or all of those whose hashes begin so, as JSON.

    With --verify, the exit code is 1 if anything is wrong.
    """
    from boundcalc.lab.train.store import Store

    if sum(map(bool, (verify, forget or hashes, runs))) > 1:
        raise InvalidSetting("name trials by HASH or by --runs; --verify is about all of them")
    if forget and not hashes:
        raise InvalidSetting("--forget needs the hashes of the trials")
    which = chosen_runs(runs)
    if forget:
        with Store(store_path, create=False) as store:
            store.remove([store.named(prefix) for prefix in hashes])
        click.echo(f"{len(hashes)} trials removed")
        return
    with Store(store_path, create=False) as store:
        if verify:
            _verify(store)
            return
        for prefix in hashes:
            write_json(asdict(store.find(prefix)))
        if not hashes:
            _list(store, which)
        for text in store.damaged:
            click.echo(f"left out: {text}", err=True)


def _list(store: Any, which: Mapping[str, Any]) -> None:
    """A line per trial: its hash, what was trained, how it ended, its errors and gap."""
    lines: list[Line] = []
    for record in store.records(**which):
        values = record.summary
        cells = (near(values[c]) if isinstance(values[c], float) else str(values[c]) for c in _COLUMNS)
        lines.append(Line((record.hash[:12], *cells)))
    if not lines:
        click.echo("no trials")
        return
    write_table(("hash", *_COLUMNS), lines, droppable=("steps", "status", "depth"))
    if sweeps := store.sweeps():
        click.echo("sweeps: " + ", ".join(f"{name} ({count})" for name, count in sweeps.items()))


def _verify(store: Any) -> None:
    problems = store.verify()
    for problem in problems:
        click.echo(f"{mark(False)} {problem}", err=True)
    if problems:
        raise click.ClickException(f"{len(problems)} problems in {store.path}")
    say_checked(True, f"{len(store.hashes())} trials, all as they were written")
