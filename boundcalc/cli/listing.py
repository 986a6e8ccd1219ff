"""`boundcalc list`."""

from __future__ import annotations

import click

from boundcalc.cli.catalogue import GROUPS, MORE, Entry, entries
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import Line, say, write_table

_FIRST = ("theorems", "policies", "presets")
"""Groups that are shown where none is named; of the others, how many they are."""
_LAST = {
    "theorems": "source",
    "statements": "source",
    "lemmas": "source",
    "policies": "lemmas",
    "certificates": "source",
    "presets": "sizes",
    "strategies": "is based on",
    "figures": "shows",
    "tasks": "fields",
    "sweeps": "task",
    "families": "model types",
}


@click.command(
    name="list",
    short_help="Bounds, theorems, lemmas, tasks and figures by name, with sources.",
    epilog="""\b
Examples:
  boundcalc list
  boundcalc list lemmas
  boundcalc list policies --format json
  boundcalc list figures""",
)
@click.argument("group", type=click.Choice((*GROUPS, *MORE)), required=False)
@form_option("table", "json")
def command(group: str | None, form: str) -> None:
    """Theorems, policies, statements and lemmas of the calculus, presets and strategies, with their sources.

    Without a name theorems, policies and presets. By name also figures, tasks, sweeps and families: what plot, train,
    sweep and norms take.
    """
    listed = [entry for name in ([group] if group else GROUPS) for entry in entries(name)]
    if form == "json":
        write_json([entry._asdict() for entry in listed])
        return
    _tables([entry for entry in listed if group or entry.group in _FIRST])
    if group is None:
        sizes = {name: sum(entry.group == name for entry in listed) for name in GROUPS if name not in _FIRST}
        say(f"Also {', '.join(f'{size} {name}' for name, size in sizes.items())}: boundcalc list lemmas, ...")


def _tables(listed: list[Entry]) -> None:
    for group in dict.fromkeys(entry.group for entry in listed):
        write_table((group, "", _LAST[group]), [Line(entry[1:]) for entry in listed if entry.group == group])
        say()
    say("boundcalc explain NAME says more about each.")
