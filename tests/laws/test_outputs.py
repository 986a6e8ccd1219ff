"""Law: an output destroys nothing. Every command, every option that writes, every file it reads or finds there."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc.base import output
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.cli import main
from boundcalc.cli.files import FileCommand, Input, Output

Leaf = tuple[tuple[str, ...], click.Command]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


LEAVES = list(leaves(main))
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
        value = given.get(p.name or "")
        if value is None and p.required:
            value = (
                p.type.choices[0] if isinstance(p.type, click.Choice) else "conjunction" if p.name == "task" else "8"
            )
        if value is None:
            continue
        (arguments if isinstance(p, click.Argument) else options).extend(
            [value] if isinstance(p, click.Argument) else [p.opts[0], value]
        )
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
    pytest.param(command, out, source, id=f"{' '.join(path)} {out.opts[0]} over {source.opts[0]}")
    for path, command in LEAVES
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


FILES = [
    pytest.param(command, out, id=f"{' '.join(path)} {out.opts[0]}")
    for path, command in LEAVES
    for out in writes(command)
    if isinstance(out.type, click.Path) and out.type.file_okay
]


@pytest.mark.parametrize(("command", "out"), FILES)
def test_no_output_replaces_what_somebody_else_wrote(
    command: click.Command, out: click.Parameter, tmp_path: Path
) -> None:
    for suffix in (".json", ".png", ".safetensors", ".csv", ".txt"):
        file = tmp_path / f"precious{suffix}"
        file.write_bytes(NOTES)
        outcome = CliRunner().invoke(command, words(command, {out.name or "": str(file)}))
        assert isinstance(outcome.exception, BoundcalcError), outcome.output
        assert file.read_bytes() == NOTES
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
        file.unlink()


def test_every_path_of_every_command_is_declared_as_read_or_as_written() -> None:
    for path, command in LEAVES:
        for p in command.params:
            assert not isinstance(p.type, click.Path) or isinstance(p.type, Input | Output), (path, p.name)
        assert isinstance(command, FileCommand) or not writes(command), path
        assert any(p.name == "force" for p in command.params) == bool(writes(command)), path
    assert len(PAIRS) > 15
    assert len(FILES) > 12


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


# -- one place writes


_WRITERS = {
    "write_text",
    "write_bytes",
    "savefig",
    "save_file",
    "savez",
    "savez_compressed",
    "tofile",
    "to_csv",
    "mkdir",
    "makedirs",
    "rename",
    "replace",
}


def writers(source: str) -> list[str]:
    """Calls that write files, or make folders."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = (
            node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
        )
        mode = next(
            (
                a.value
                for a in [*node.args[:2], *(k.value for k in node.keywords if k.arg == "mode")]
                if isinstance(a, ast.Constant)
                and isinstance(a.value, str)
                and a.value
                and set(a.value) <= set("rwaxbt+")
                and set(a.value) & set("wax+")
            ),
            None,
        )
        if (
            (name == "open" and mode)
            or (name in _WRITERS - {"replace"} and owner != "output" and isinstance(node.func, ast.Attribute))
            or (name == "replace" and owner == "os")
        ):
            found.append(f"{name} in line {node.lineno}")
    return found


_ALLOWED = {
    "predictors/data.py": "writes to the part that output.writing gives",
    "base/output.py": "the one place",
    "laws/families.py": "writes to a temporary folder of its own",
    "laws/brought/tasks.py": "writes to a temporary folder of its own",
    "lab/figures/canvas.py": "draws to the part that output.writing gives",
    "lab/train/store.py": "SQLite writes by itself; the folder of weights beside it",
}


def test_one_module_writes_all_files() -> None:
    root = Path(boundcalc.__file__).parent
    found = {
        path.relative_to(root).as_posix(): calls
        for path in sorted(root.rglob("*.py"))
        if (calls := writers(path.read_text(encoding="utf-8")))
    }
    assert found.keys() - _ALLOWED.keys() == set(), found


def test_a_module_that_writes_by_itself_is_noticed() -> None:
    assert len(writers("open(p, 'w')\np.write_text('x')\nnp.savez(p)\nos.replace(a, b)\npath.open('ab')")) == 5
    assert writers("open(p)\nopen(p, 'rb')\noutput.write_text(p, t)\ns.replace('a', 'b')") == []
