"""`explain`, `--help`: everything that has a name can be found and read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from boundcalc.cli import GROUPS as LISTED
from boundcalc.cli import main
from boundcalc.cli._explain import GROUPS, entries
from tests.laws.test_options import commands

from .conftest import Run

COMMANDS = {name: line for names in LISTED.values() for name, line in names.items()}


def test_every_listed_name_is_explained(run: Run) -> None:
    for group in GROUPS:
        for entry in entries(group):
            assert run("explain", entry[0]).exit_code == 0, entry


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(run: Run, name: str) -> None:
    for option in ("--help", "-h"):
        outcome = run(name, option)
        assert outcome.exit_code == 0
        assert f"boundcalc {name}" in outcome.stdout
        assert "Examples:" in outcome.stdout


def test_examples_of_the_help_are_valid_lines(run: Run) -> None:
    """Every line of an example parses (nothing is run)."""
    for name in ("eval", "solve", "verify", "explain"):
        examples = [line for line in run(name, "--help").stdout.splitlines() if line.startswith("    boundcalc ")]
        assert examples
        for example in examples:
            for line in example.split("&&"):
                words = shlex.split(line.partition(" > ")[0])
                command = main.get_command(click.Context(main), words[1])
                assert command is not None
                command.make_context(words[1], words[2:])


def test_the_table_of_commands_is_what_the_help_shows(run: Run) -> None:
    text = run("--help").stdout
    for name, line in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(' '.join(line.split()[:3]))}", text, re.MULTILINE)


def test_the_documentation_names_every_command_and_its_lines_are_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in ("eval", "solve", "verify", "derive", "explain"):
        assert f"boundcalc {name}" in text
    known = {
        word
        for _, command in commands()
        for p in command.params
        if isinstance(p, click.Option)
        for word in (*p.opts, *p.secondary_opts)
    }
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--debug", "--help"}:
        assert option in known, option
