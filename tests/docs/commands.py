"""Commands in tables of documents, and what a command line means, without running it; test_blocks.py runs blocks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click

from boundcalc.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_PLACE = re.compile(r"(^|[ =@/])[A-Z][A-Z_]+[0-9]?([ .:,=]|$)|\.\.\.|\[|\||<|\u2026|[?]")
"""NAME, FILE, MODEL ..., alternatives: not a command to type as it stands."""


def shown(text: str) -> list[str]:
    """Command lines in the first cells of tables."""
    lines = re.findall(r"^\| `(boundcalc [^`]+)` \|", text, re.MULTILINE)
    return [line for line in dict.fromkeys(lines) if not _PLACE.search(line)]


def parsed(line: str) -> dict[str, Any]:
    """The options of a command line, as the command understands them."""
    _, name, *words = shlex.split(line, comments=True)
    context = click.Context(main, info_name="boundcalc", **main.context_settings)  # click remembers the names of --help
    command = main.get_command(context, name)
    if command is None:
        raise click.UsageError(f"there is no command {name}")
    return command.make_context(command.name, words, parent=context).params
