"""What the commands about training share: their options, the default store, and which of its trials are meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from boundcalc.cli.options import NUMBER, all_of, number, option, pairs, several
from boundcalc.lab.train.certify import METHODS

STORE = "boundcalc-runs.db"


def default_store() -> Path:
    """Where trials are kept by default."""
    return Path(os.environ.get("BOUNDCALC_STORE", STORE))


certify_options = all_of(
    several(
        "--certify methods",
        "Certify a predictor's risk by this method, within --delta (repeatable).",
        kind=click.Choice((*METHODS, "all")),
    ),
    option("--delta", NUMBER, "Failure probability.", 0.05),
    option("--prefix", NUMBER, "Share of the examples that certified training starts from.", 0.0, show_default=False),
)
"""What is certified of what a trial's data teach, as `methods`, `delta` and `prefix`."""


def runs_of(texts: Sequence[str]) -> dict[str, Any]:
    """What --runs chooses trials by: numbers where values are numbers."""
    chosen: dict[str, Any] = {}
    for name, text in pairs("--runs", texts, "task=conjunction or T=128").items():
        value = number(text) if name not in ("task", "sweep", "status", "law") else None
        chosen[name] = text if value is None else int(value) if value == int(value) else value
    return chosen


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
