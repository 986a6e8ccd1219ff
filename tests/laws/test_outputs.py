"""Law: an output destroys nothing. Every command, every option that writes, every file it reads or finds there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli._options import FileCommand, Input, Output
from tests.laws.test_options import commands

COMMANDS = list(commands())
NOTES = b"notes of somebody else\n"


def reads(command: click.Command) -> list[click.Parameter]:
    return [p for p in command.params if isinstance(p.type, Input)]


def writes(command: click.Command) -> list[click.Parameter]:
    return [p for p in command.params if isinstance(p.type, Output)]


def words(command: click.Command, given: dict[str, str]) -> list[str]:
    """A line with these values, and something for whatever else the command requires."""
    options: list[str] = []
    arguments: list[str] = []
    for p in command.params:
        example = p.type.choices[0] if isinstance(p.type, click.Choice) else "conjunction" if p.name == "task" else "8"
        value = given.get(p.name or "", example if p.required else None)
        if value is not None and isinstance(p, click.Argument):
            arguments.append(value)
        elif value is not None:
            options += [p.opts[0], value]
    return [*options, *arguments]


def links(file: Path) -> dict[str, Path]:
    """Names of one file."""
    soft, hard = file.with_name(f"soft{file.suffix}"), file.with_name(f"hard{file.suffix}")
    soft.symlink_to(file)
    os.link(file, hard)
    return {"name": file, "dotted": file.parent / "." / file.name, "symlink": soft, "hard link": hard}


def destroyed(
    command: click.Command, out: click.Parameter, source: click.Parameter, folder: Path, force: bool
) -> list[str]:
    """By which names of an input an output destroyed it, or was not refused."""
    found: list[str] = []
    for suffix in (".json", ".png", ".safetensors", ".db"):
        file = folder / f"input{suffix}"
        file.write_bytes(NOTES)
        for how, name in links(file).items():
            line = words(command, {source.name or "": str(file), out.name or "": str(name)}) + ["--force"] * force
            outcome = CliRunner().invoke(command, line)
            if file.read_bytes() != NOTES or outcome.exit_code == 0 or isinstance(outcome.exception, RuntimeError):
                found.append(f"{how} of {file.name}")
        for left in folder.iterdir():
            left.unlink()
    return found


PAIRS = [
    pytest.param(command, out, source, id=f"{name} {out.opts[0]} over {source.opts[0]}")
    for name, command in COMMANDS
    for out in writes(command)
    for source in reads(command)
    if isinstance(out.type, click.Path) and out.type.file_okay
]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("command", "out", "source"), PAIRS)
def test_no_output_replaces_an_input(
    command: click.Command, out: click.Parameter, source: click.Parameter, force: bool, tmp_path: Path
) -> None:
    assert destroyed(command, out, source, tmp_path, force) == []


def test_every_path_of_every_command_is_declared_as_read_or_as_written() -> None:
    for name, command in COMMANDS:
        for p in command.params:
            assert not isinstance(p.type, click.Path) or isinstance(p.type, Input | Output), (name, p.name)
        assert isinstance(command, FileCommand) or not writes(command), name
        replaced = [p for p in writes(command) if p.name != "store_path"]  # a store is added to
        assert any(p.name == "force" for p in command.params) == bool(replaced), name
    assert len(PAIRS) > 15


def test_a_command_that_overwrites_is_noticed(tmp_path: Path) -> None:
    @click.command()
    @click.argument("model", type=Input())
    @click.option("--out", type=click.Path())
    @click.option("--force", is_flag=True)
    def rogue(model: str, out: str, force: bool) -> None:
        Path(out).write_text("{}")

    source, out, _ = rogue.params
    assert len(destroyed(rogue, out, source, tmp_path, force=False)) == 16


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    output.write_json(file, {"a": 1})
    with pytest.raises(InvalidSetting, match="exists: choose another name"):
        output.write_json(file, {})
    assert json.loads(file.read_text()) == {"a": 1}
    output.write_json(file, {}, force=True)
    with output.command({str(file): "--from"}, force=True), pytest.raises(InvalidSetting, match="is an input"):
        output.write_json(file, {"b": 1})
    with output.command({}, force=True):
        output.write_json(file, {"c": 1})
    assert json.loads(file.read_text()) == {"c": 1}
