"""Commands as documents show them, and what a command line means, without running it."""

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
    """Command lines of a page: in blocks, and in cells of tables."""
    text = text.replace("\\\n", " ")
    fences = re.findall(r"^```([^`\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    blocks = [block for language, block in fences if language.strip() in ("", "sh", "{command}")]
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    lines += [line.strip() for line in re.findall(r"^    (boundcalc .*)$", text, re.MULTILINE)]
    lines += re.findall(r"^\| `(boundcalc [^`]+)` \|", text, re.MULTILINE)
    found = [line.partition(" # ")[0].partition("  #")[0].strip() for line in lines if line.startswith("boundcalc ")]
    typed = [line for line in dict.fromkeys(found) if not line.endswith(".")]  # which ends a sentence
    return [line for line in typed if not _PLACE.search(line)]


def parsed(line: str) -> dict[str, Any]:
    """The options of a command line, as the command understands them."""
    _, *words = shlex.split(line, comments=True)
    context = click.Context(main, info_name="boundcalc", **main.context_settings)  # click remembers the names of --help
    command: click.Command = main
    while isinstance(command, click.Group):
        name, *words = words
        inner = command.get_command(context, name)
        if inner is None:
            raise click.UsageError(f"there is no command {name}")
        command = inner
    return command.make_context(command.name, list(words), parent=context).params
