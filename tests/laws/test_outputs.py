"""Law: an output destroys nothing. Every command, every option that writes, every file it reads or finds there."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc.base import kinds, output
from boundcalc.base.errors import InvalidSetting
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
        assert isinstance(outcome.exception, InvalidSetting), outcome.output
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


def test_an_option_that_is_not_declared_as_an_output_cannot_write(tmp_path: Path) -> None:
    with output.command({}, [tmp_path / "a.json"]):
        output.write_json(tmp_path / "a.json", {}, kinds.NORMS)
        with pytest.raises(RuntimeError, match="not declared as an output"):
            output.write_json(tmp_path / "b.json", {}, kinds.NORMS)


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
    "lab/plot/render.py": "draws to the part that output.writing gives",
    "lab/represent/export.py": "writes to the part that output.writing gives",
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
    assert writers("open(p)\nopen(p, 'rb')\noutput.write_text(p, t, k)\ns.replace('a', 'b')") == []


# -- kinds


def _sqlite(path: Path, application: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()


def _safetensors(path: Path, metadata: dict[str, str]) -> None:
    header = json.dumps({"__metadata__": metadata}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def _figure(path: Path, **changes: Any) -> None:
    data = {"format": "boundcalc-figure/1", "spec": {}, "data": {"x": [1]}}
    data["digest"] = kinds.with_digest({"x": [1]})["digest"]
    path.write_text(json.dumps(data | changes, indent=2))


def _predictor() -> dict[str, Any]:
    body = {"format": "boundcalc-predictor-certificate/1", "delta": 0.05}
    return body | {"sha256": kinds.with_digest(body)["digest"]}


RECORD = {"hash": "a", "config": {}, "result": {}, "digest": "b"}
OURS: dict[str, tuple[output.Kind, str, Callable[[Path], object]]] = {
    "certificate": (
        kinds.CERTIFICATE,
        "c.json",
        lambda p: output.write_json(p, {"format": "boundcalc-certificate/1", "setting": {}}, kinds.CERTIFICATE),
    ),
    "norms": (kinds.NORMS, "n.json", lambda p: output.write_json(p, {"C": 1, "budgets": {}}, kinds.NORMS)),
    "setting": (
        kinds.SETTING,
        "s.json",
        lambda p: output.write_json(p, {"architecture": {}, "norms": {}}, kinds.SETTING),
    ),
    "mapping": (
        kinds.MAPPING,
        "a.json",
        lambda p: output.write_json(p, kinds.with_about({"architecture": {}, "tensors": {}}, {}), kinds.MAPPING),
    ),
    "curves": (kinds.CURVES, "v.json", lambda p: output.write_json(p, {"model": "m", "curves": {}}, kinds.CURVES)),
    "figure": (kinds.FIGURE, "f.json", _figure),
    "image": (kinds.IMAGE, "i.png", lambda p: p.write_bytes(b"\x89PNG boundcalc")),
    "weights": (kinds.WEIGHTS, "w.safetensors", lambda p: _safetensors(p, {"format": "boundcalc-model/1"})),
    "store": (kinds.STORE, "s.db", lambda p: _sqlite(p, kinds.STORE_ID)),
    "journal": (kinds.JOURNAL, "j", lambda p: p.write_text('{"identity": {}, "seed": 1}\n')),
    "csv": (kinds.CSV, "r.csv", lambda p: p.write_text("hash,task,T,m,seed,depth\n")),
    "records": (kinds.RECORDS, "r.json", lambda p: output.write_json(p, [RECORD], kinds.RECORDS)),
    "parquet": (kinds.PARQUET, "r.parquet", lambda p: p.write_bytes(b"PAR1 boundcalc PAR1")),
    "text": (kinds.TEXT, "t.tex", lambda p: output.write_text(p, output.signed(p.name, "x\n"), kinds.TEXT)),
    "derivation": (
        kinds.DERIVATION,
        "d.json",
        lambda p: output.write_json(p, kinds.with_digest({"steps": []}), kinds.DERIVATION),
    ),
    "predictor": (kinds.PREDICTOR, "p.json", lambda p: output.write_json(p, _predictor(), kinds.PREDICTOR)),
    "runs": (kinds.RUNS, "u.json", lambda p: p.write_text('{"of": "a", "runs": {}}')),
    "examples": (kinds.EXAMPLES, "e.npz", lambda p: np.savez(p, x=[1], y=[1], made_by=np.array("boundcalc"))),
}
FOREIGN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "examples of somebody else": ("x.npz", lambda p: np.savez(p, x=[1], y=[1])),
    "an edited certificate": (
        "y.json",
        lambda p: p.write_text(json.dumps(_predictor() | {"delta": 0.01}, indent=1) + "\n"),
    ),
    "notes": ("notes.txt", lambda p: p.write_bytes(NOTES)),
    "config": ("config.json", lambda p: p.write_text('{"model_type": "bert", "architectures": []}')),
    "another database": ("a.db", lambda p: _sqlite(p, 7)),
    "a model of somebody else": ("m.safetensors", lambda p: _safetensors(p, {"format": "pt"})),
    "another picture": ("p.png", lambda p: p.write_bytes(b"\x89PNG of a cat")),
    "norms typed by hand": ("hand.json", lambda p: p.write_text('{"C": 1, "budgets": {"W_V": {"op": 2}}}\n')),
    "an edited article": ("e.tex", lambda p: p.write_text(output.signed(p.name, "x\n").replace("x", "y"))),
    "an article with a line more": ("l.tex", lambda p: p.write_text(output.signed(p.name, "x\n") + "more\n")),
    "a figure with other numbers": ("o.json", lambda p: _figure(p, data={"x": [2]})),
    "an edited mapping": (
        "q.json",
        lambda p: p.write_text(
            json.dumps(kinds.with_about({"architecture": {}, "tensors": {}}, {}) | {"tensors": {"a": "W_O"}}, indent=1)
            + "\n"
        ),
    ),
    "an edited derivation": (
        "x.json",
        lambda p: p.write_text(json.dumps(kinds.with_digest({"steps": []}) | {"steps": [1]}, indent=1) + "\n"),
    ),
}


def test_every_kind_is_tried() -> None:
    assert {id(kind) for kind, _, _ in OURS.values()} == {
        id(k) for k in vars(kinds).values() if isinstance(k, output.Kind)
    }


@pytest.mark.parametrize("name", OURS)
def test_a_file_of_its_own_kind_is_replaced_and_any_other_is_not(name: str, tmp_path: Path) -> None:
    kind, file, write = OURS[name]
    write(tmp_path / file)
    output.write_text(tmp_path / file, "new", kind)
    assert (tmp_path / file).read_text() == "new"
    others = {other: found[1:] for other, found in OURS.items() if other != name} | FOREIGN
    for other, (file, make) in others.items():
        path = tmp_path / other / file
        path.parent.mkdir()
        make(path)
        before = path.read_bytes()
        with pytest.raises(InvalidSetting, match="holds something else than"):
            output.write_text(path, "new", kind)
        assert path.read_bytes() == before
        output.write_text(path, "new", kind, force=True)
        assert path.read_text() == "new"
        assert [left.name for left in path.parent.iterdir()] == [file]
