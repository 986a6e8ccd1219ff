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
device_option = click.option(
    "--device",
    type=click.Choice(("auto", "cpu", "cuda", "mps")),
    default="auto",
    show_default=True,
    help="Where to compute.",
)


def chosen_runs(texts: Sequence[str]) -> dict[str, Any]:
    """What --runs says, for `Store.select`."""
    from boundcalc.base import validate
    from boundcalc.base.errors import InvalidSetting

    chosen: dict[str, Any] = {}
    for text in texts:
        name, value = run_pair(text)
        validate.known_keys("--runs", {name: value}, ("task", "T", "m", "sweep"))
        if name in chosen:
            raise InvalidSetting(f"--runs gives {name} twice")
        chosen[name] = validate.size(f"--runs {name}", value, least=0) if name in ("T", "m") else value
    return chosen


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


def say_positions(trials: Iterable[Any]) -> None:
    """Rows of a user's own data carry no positions by default; a message says so."""
    for trial in trials:
        own = trial.task.kind == "arrays" or trial.task.origin is not None
        if own and trial.architecture.positions == "none" and trial.architecture.seq_len > 1:
            click.echo(
                "rows carry no positions, so no function of their order can be learned; "
                "--set model.positions=learned adds them",
                err=True,
            )
            return
