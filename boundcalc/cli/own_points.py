"""The options that name measurements of one's own, for every command that draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from boundcalc.cli.files import FILE


def points_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --points and --column, whose values come as `points` and `columns`."""
    column = click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME=COLUMN",
        help="Which column of --points holds what (repeatable).",
    )
    points = click.option(
        "--points", type=FILE, multiple=True, metavar="CSV", help="Your own measurements: m, train, test, n_test, seed."
    )
    return points(column(function))
