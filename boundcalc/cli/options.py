"""Options that several commands have, each said once, and the JSON that --format asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from boundcalc.cli.files import FILE, output_file

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Option = Callable[[Any], Any]


def all_of(options: Sequence[_Option]) -> Callable[[_Function], _Function]:
    """Adds options in the order in which --help lists them."""

    def added(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return added


def form_option(*forms: str) -> _Option:
    """--format, of which the first is the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


def write_json(document: Any, **options: Any) -> None:
    """A document, for programs."""
    import json

    click.echo(json.dumps(document, indent=1, **options))


bounds_option = click.option("--bound", "bounds", multiple=True, help="Only this bound (repeatable).")
why_option = click.option(
    "--why", is_flag=True, help="What the best bound is made of, what it depends on, which change helps most."
)


def certificate_options(which: str) -> Callable[[_Function], _Function]:
    """--certificate and --certificate-risk, of the bound that is meant."""
    return all_of(
        [
            click.option(
                "--certificate",
                type=output_file(),
                help=f"Write the certificate of the best gap bound{which}.",
            ),
            click.option(
                "--certificate-risk",
                type=output_file(),
                help="Write the certificate of its risk bound.",
            ),
        ]
    )


points_options = all_of(
    [
        click.option(
            "--points",
            type=FILE,
            multiple=True,
            metavar="CSV",
            help="Your own measurements: m, train, test, n_test, seed.",
        ),
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="NAME=COLUMN",
            help="Which column of --points holds what (repeatable).",
        ),
    ]
)
"""Your own measurements, as `points` and `columns`."""
