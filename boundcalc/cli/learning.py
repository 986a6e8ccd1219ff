"""What the commands about training share: their options, the default store, and which of its trials are meant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from boundcalc.cli import files

_STORE = "boundcalc-runs.db"


def default_store() -> Path:
    """Where trials are kept by default."""
    return Path(os.environ.get("BOUNDCALC_STORE", _STORE))


def _store_option(kind: click.ParamType) -> Callable[[Any], Any]:
    return click.option(
        "--store",
        "store_path",
        type=kind,
        default=default_store,
        show_default=f"$BOUNDCALC_STORE or {_STORE}",
        help="SQLite file of results.",
    )


read_store_option = _store_option(files.STORE)
"""--store, of a command that looks at results."""
store_option = _store_option(files.output_file(appends=True))
"""--store, of a command that adds or removes results."""
runs_option = click.option(
    "--runs",
    "runs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Which trials: task, T, m, sweep (repeatable).",
)
"""--runs, of a command that chooses among stored trials."""


def runs_of(texts: Sequence[str]) -> dict[str, Any]:
    """What --runs chooses trials by: numbers where values are numbers."""
    from boundcalc.cli.values import number, pairs

    chosen: dict[str, Any] = {}
    for name, text in pairs("--runs", texts, "task=conjunction or T=128").items():
        value = number(text) if name not in ("task", "sweep", "status", "law") else None
        chosen[name] = text if value is None else int(value) if value == int(value) else value
    return chosen


def chosen_runs(texts: Sequence[str]) -> dict[str, Any]:
    """The same, for `Store.select`."""
    from boundcalc.base import validate

    chosen = validate.known_keys("--runs", runs_of(texts), ("task", "T", "m", "sweep"))
    sizes = {name: validate.size(f"--runs {name}", chosen[name], least=0) for name in ("T", "m") if name in chosen}
    return {**chosen, **sizes}


def say_positions(trials: Iterable[Any]) -> None:
    """Rows of a user's own data carry no positions by default; a message says so."""
    for trial in trials:
        own = trial.task.kind == "arrays" or trial.task.file
        if own and trial.architecture.positions == "none" and trial.architecture.seq_len > 1:
            click.echo(
                "rows carry no positions, so no function of their order can be learned; "
                "--set model.positions=learned adds them",
                err=True,
            )
            return
