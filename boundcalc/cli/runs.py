"""`boundcalc runs`: what is in a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from boundcalc.cli.files import STORE, FileGroup, output_file
from boundcalc.cli.learning import chosen_runs, read_store_option, runs_option, store_option
from boundcalc.cli.options import all_of, form_option, write_json


@click.group(
    cls=FileGroup,
    name="runs",
    short_help="List, show, export, import, verify and remove stored trials.",
    epilog="""\b
Examples:
  boundcalc runs list --runs task=conjunction --runs T=64
  boundcalc runs show 3fa9
  boundcalc runs export --format csv -o runs.csv
  boundcalc runs verify --rerun 3""",
)
def command() -> None:
    """Look at, move and check stored trials."""


_filters = all_of([read_store_option, runs_option])


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """A store to read; what was left out is said."""
    from boundcalc.lab.train.store import Store

    with Store(path, create=False, read_only=True) as store:
        yield store
        for said in store.damaged:
            click.echo(f"left out: {said}", err=True)


@command.command("list", short_help="A line per trial.")
@_filters
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="Lines at most.")
def list_runs(store_path: Path, limit: int, runs: tuple[str, ...]) -> None:
    """A line per trial: its hash, what was trained, how it ended, its errors and gap."""
    from boundcalc.lab.train.record import summary_columns

    which = chosen_runs(runs)
    with _open(store_path) as store:
        records = list(store.select(**which))
        sweeps = store.sweeps()
    if not records:
        click.echo("no trials")
        return
    columns = ("task", "T", "m", "depth", "seed", "status", "steps", "train_error", "test_error", "gap")
    rows: list[tuple[str, ...]] = [("hash", *columns)]
    for record in records[:limit]:
        values = summary_columns(record.config, record.result)
        cells = [f"{values[c]:.4f}" if isinstance(values[c], float) else str(values[c]) for c in columns]
        rows.append((record.hash[:12], *cells))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if len(records) > limit:
        click.echo(f"... {len(records) - limit} more: --limit {len(records)}, or runs export")
    if sweeps:
        click.echo("sweeps: " + ", ".join(f"{name} ({count})" for name, count in sweeps.items()))


@command.command("show", short_help="All of one trial, as JSON.")
@read_store_option
@click.argument("hash_prefix", metavar="HASH")
def show(store_path: Path, hash_prefix: str) -> None:
    """The complete record of the trial whose hash begins so."""
    with _open(store_path) as store:
        write_json(store.find(hash_prefix).to_json())


@command.command("export", short_help="Trials as csv, json or parquet.")
@_filters
@form_option("csv", "json", "parquet")
@click.option("-o", "--out", "output", type=output_file(), help="File (unset: standard output).")
def export_runs(store_path: Path, form: str, output: Path | None, runs: tuple[str, ...]) -> None:
    """A row per trial (csv, parquet), or complete records that can be imported elsewhere (json)."""
    from boundcalc.lab.train.export import export

    which = chosen_runs(runs)
    with _open(store_path) as store:
        text = export(store.select(**which), form, output)
    if text:
        click.echo(text, nl=False)


@command.command("import", short_help="Take over trials of another store or JSON export.")
@store_option
@click.argument("source", type=STORE)
def import_runs(store_path: Path, source: Path) -> None:
    """Records are checked first; those that are here already are left as they are."""
    from boundcalc.lab.train.export import read_records
    from boundcalc.lab.train.store import Store

    records = read_records(source)
    with Store(store_path) as store:
        added = store.merge(records)
    click.echo(f"{added} trials added, {len(records) - added} were there")


@command.command("rm", short_help="Forget trials.")
@store_option
@click.argument("hashes", nargs=-1, required=True, metavar="HASH...")
def remove(store_path: Path, hashes: tuple[str, ...]) -> None:
    """Remove trials, and their weights, by the first digits of their hashes."""
    from boundcalc.lab.train.store import Store

    with Store(store_path, create=False) as store:
        names = [store.named(prefix) for prefix in hashes]
        click.echo(f"{store.remove(names)} trials removed")


@command.command("verify", short_help="Check every record; train some again.")
@read_store_option
@click.option("--rerun", type=click.IntRange(0), default=0, help="Also train so many trials again, and compare.")
def verify(store_path: Path, rerun: int) -> None:
    """Check the file, every record's digest and hash, and the kept weights; exit code 1 if anything is wrong."""
    with _open(store_path) as store:
        problems = store.verify()
        count = len(store)
        if rerun and not problems:
            from boundcalc.lab.train.rerun import rerun_some

            problems = rerun_some(store, rerun)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise click.ClickException(f"{len(problems)} problems in {store_path}")
    again = f"; {min(rerun, count)} trained again, with the same result" if rerun else ""
    click.echo(f"{count} trials, all as they were written{again}")
