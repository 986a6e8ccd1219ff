"""`explain`, `--help`: everything that has a name can be found and read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boundcalc.base.theory import glossary
from boundcalc.cli import GROUPS as LISTED
from boundcalc.cli._explain import GROUPS, entries
from tests.docs.commands import parsed
from tests.laws.test_options import commands

from .conftest import printed, run_line

COMMANDS = {name: line for names in LISTED.values() for name, line in names.items()}


def test_every_listed_name_is_explained() -> None:
    for group in GROUPS:
        for (name, *_), _ in entries(group):
            assert run_line("explain", name).exit_code == 0, name
    for word, meaning in glossary().items():
        assert meaning.split()[:4] == printed("explain", word.lower()).partition("Word")[2].split()[:4]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_that_are_valid_lines(name: str) -> None:
    text = printed(f"{name} --help")
    assert printed(f"{name} -h") == text
    examples = [line for line in text.splitlines() if f"    boundcalc {name}" in line]
    assert examples
    for line in examples:
        for part in re.split(" && ", re.split(r" {4,}| > ", line.strip())[0]):
            parsed(part)  # nothing is run


def test_the_documentation_names_every_command_and_its_lines_are_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in ("eval", "solve", "verify", "derive", "explain"):
        assert f"boundcalc {name}" in text
    known = {word for _, command in commands() for p in command.params for word in p.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--debug", "--help"} <= known
