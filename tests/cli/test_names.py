"""`list`, `explain`, `--help`: everything that has a name can be found and read."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path

import click
import pytest

from boundcalc.base.prose import plain
from boundcalc.cli import COMMANDS, main
from boundcalc.cli.catalogue import GROUPS, entries
from boundcalc.formulas.theorems import POLICIES, THEOREMS
from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
from boundcalc.setting import PRESETS
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.statements.texts import STATEMENTS
from tests.laws.test_options import commands

from .conftest import Run, one_line


def test_list_names_everything(run: Run) -> None:
    listed = {entry["name"] for entry in json.loads(run("list", "--format", "json").stdout)}
    assert listed == {*STATEMENTS, *ABOUT_ONE, *THEOREMS, *POLICIES, *PRESETS, *STRATEGIES}
    text = run("list").stdout
    assert all(re.search(rf"^{re.escape(name)} ", text, re.MULTILINE) for name in listed)


def test_groups_can_be_listed_alone(run: Run) -> None:
    for group in GROUPS:
        names = [entry["name"] for entry in json.loads(run("list", group, "--format", "json").stdout)]
        assert names == [entry.name for entry in entries(group)]
        assert names
    assert run("list", "theorem").exit_code == 2


def test_lemmas_and_theorems_show_their_source(run: Run) -> None:
    assert re.search(r"^T2 .*Edelman 2022", run("list", "lemmas").stdout, re.MULTILINE)
    assert all(entry.source for group in ("lemmas", "statements", "theorems") for entry in entries(group))


def test_every_strategy_has_a_title() -> None:
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert strategy.title
        assert set(strategy.uses) <= STATEMENTS.keys()


@pytest.mark.parametrize("name", ["T2", "t2", "G1", "PUB"])
def test_statements_are_explained_in_full(run: Run, name: str) -> None:
    statement = STATEMENTS[name.upper()]
    found = json.loads(run("explain", name, "--format", "json").stdout)
    assert found["statement"] == statement.entry.says
    assert found.get("proof", "") == statement.entry.proof
    text = run("explain", name).stdout
    assert found.get("arguments", "") == ", ".join(statement.arguments)
    for title in ("Title", "Statement", "Source", *(["Proof"] if statement.entry.proof else [])):
        assert re.search(rf"^{title} ", text, re.MULTILINE)
    flat = " ".join(text.split())
    assert " ".join(plain(statement.entry.proof or statement.entry.says).split()[:6]) in flat


def test_theorems_are_explained_with_what_the_paper_has_otherwise(run: Run) -> None:
    for name, theorem in THEOREMS.items():
        found = json.loads(run("explain", name, "--format", "json").stdout)
        assert found["formulas"] == ", ".join(theorem.quantities)
        if name not in STATEMENTS:
            assert found["says"] == theorem.statement
            assert all(line in found["differs"] for line in theorem.differences())


def test_every_listed_name_is_explained(run: Run) -> None:
    for group in GROUPS:
        for entry in entries(group):
            assert run("explain", entry.name, "--format", "json").exit_code == 0, entry.name


def test_unknown_names_suggest_near_ones(run: Run) -> None:
    for got, meant in (("T22", "T2"), ("gpt", "gpt2"), ("trager", "trauger")):
        outcome = run("explain", got)
        assert outcome.exit_code == 2
        assert f"did you mean {meant!r}?" in one_line(outcome)
    assert "see boundcalc list" in one_line(run("explain", "qqqqqq"))


def _present(name: str) -> bool:
    try:
        importlib.import_module(COMMANDS[name][0].partition(":")[0])
    except ModuleNotFoundError as error:
        return (error.name or "").startswith("boundcalc")  # a command that does not exist is a defect, not an extra
    return True


PRESENT = [name for name in COMMANDS if _present(name)]


@pytest.mark.parametrize("name", PRESENT)
def test_every_command_has_help_with_examples(run: Run, name: str) -> None:
    for option in ("--help", "-h"):
        outcome = run(name, option)
        assert outcome.exit_code == 0
        assert f"boundcalc {name}" in outcome.stdout
        assert "Examples:" in outcome.stdout


def test_examples_of_the_help_are_valid_lines(run: Run) -> None:
    """Every line of an example parses (nothing is run)."""
    for name in ("eval", "solve", "verify", "list", "explain"):
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
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(' '.join(line.split()[:3]))}", text, re.MULTILINE)


def test_version(run: Run) -> None:
    from boundcalc import __version__

    assert run("--version").stdout == f"boundcalc {__version__}\n"


def test_the_documentation_names_every_command_and_its_lines_are_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in ("eval", "solve", "verify", "derive", "list", "explain"):
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
