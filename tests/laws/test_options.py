"""Every option of every command changes what comes out, is refused, or is neutral for a reason written here.

Options enrol themselves: a new one is tried in every base of its command, at the values below or, where it has none, at
those its type suggests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from boundcalc.cli import main

BASES: Mapping[str, tuple[str, ...]] = {
    "eval": (
        "--depth 1 --T 8 --bound closed --no-solve --format json",
        "--depth 1 --T 8 --bound best --bound closed --no-solve --format json",
        "--preset gpt2 --d 8 --heads 2 --depth 1 --T 8 --bound closed --no-solve --format json",
        "--bound X3 --L 512 --set smoothness=1.2 --format json",
        "--sweep m=1e3:1e6:log3 --bound closed --format json",
    ),
    "solve": (
        "--for m --bound closed --depth 1 --format json",
        "--for T --bound closed --depth 1 --m 1e9 --target 0.9 --format json",
        "--for m --bound closed --quantity risk --depth 1 --format json",
        "--for L --bound X3 --set smoothness=1.5 --target 0.5 --format json",
    ),
    "list": ("",),
    "explain": ("T2",),
    "derive": ("--bound edelman2022", "--bound X3", "--bound edelman2022 --format latex"),
    "export": ("--bound edelman2022 --to python", "--bound X3 --to python"),
    "latent bound": ("--L 512 --format json",),
    "latent posterior": ("beta-bernoulli",),
    "latent sufficient": ("--format json",),
    "represent": ("and(x0,x3) --T 8 --format json",),
    "sparse": ("--s 2 --T 8 --format json",),
}
"""Cheap ways to run each command; one that needs files or trains a model is tried in its own tests."""
VALUES: Mapping[str, str | tuple[str, ...]] = {
    "--m": "54321",
    "--T": "9",
    "--C": "1.25",
    "--d": "24",
    "--depth": "3",
    "--heads": "4",
    "--L": "700",
    "--s": "3",
    "--eps": "0.01",
    "--style": ("pre", "post"),
    "--preset": "bert",
    "--activation": "gelu",
    "--normaliser": "linear",
    "--normalisation": ("layernorm", "rmsnorm"),
    "--positions": ("learned", "none"),
    "--readout": "mean",
    "--set": "K=3",
    "--bound": "trauger",
    "--sweep": "T=8,16",
    "--temperature": "1.7",
    "--position-radius": "0.7",
    "--setting": "setting.json",
    "--norms": "norms.json",
}
NEUTRAL: Mapping[tuple[str, str], str] = {
    ("*", "--force"): "allows to write over files, and here there are none",
    ("*", "--quiet"): "less on stderr",
    ("*", "--causal"): "of a fact about the model, which no theorem needs",
}
FILES: Mapping[str, Any] = {
    "setting.json": {"architecture": {"d": 12}, "norms": {"C": 1.5}},
    "norms.json": {"C": 1.0, "budgets": {"W_V": {"op": 2.0, "21": 3.0}}},
}


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    todo = [(name, main.get_command(context, name)) for name in main.list_commands(context)]
    while todo:
        name, command = todo.pop(0)
        if isinstance(command, click.Group):
            todo += [
                (f"{name} {inner}", command.get_command(context, inner)) for inner in command.list_commands(context)
            ]
        elif command is not None:
            yield name, command


def words(option: click.Option) -> Iterator[list[str]]:
    """Ways to give an option."""
    for name in (max(option.opts, key=len), *option.secondary_opts):
        if option.is_flag:
            yield [name]
        elif isinstance(option.type, click.Choice):
            yield from ([name, choice] for choice in option.type.choices)
        elif name in VALUES:
            values = VALUES[name]
            yield from ([name, value] for value in ((values,) if isinstance(values, str) else values))
        elif option.type.name in ("number", "float"):
            yield [name, "0.3"]
        elif option.type.name in ("integer", "integer range"):
            yield [name, "2"]
        else:
            yield [name, "some"]


def ran(folder: Path, line: Sequence[str]) -> tuple[bool, str, dict[str, bytes]]:
    """(done, what it printed, the files it left)."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, content in FILES.items():
            Path(name).write_text(json.dumps(content), encoding="utf-8")
        result = CliRunner().invoke(main, list(line))
        files = {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
    return result.exit_code == 0, result.output, files


def neutral(command: str, option: str) -> bool:
    return any((name, option) in NEUTRAL for name in ("*", command))


def unnoticed(folder: Path, command: str, base: Sequence[str], options: Iterable[click.Option]) -> Iterator[str]:
    """Options that, however they are given, change nothing and are not refused."""
    start = [*command.split(), *base]
    before = ran(folder / "base", start)
    assert before[0], before[1]
    for option in options:
        name = max(option.opts, key=len)
        ways = enumerate(words(option))
        if all(ran(folder / f"{name}{number}", [*start, *given]) == before for number, given in ways):
            yield name


LISTED = dict(commands())
CASES = [(name, base) for name, bases in BASES.items() for base in bases]


def options_of(command: str) -> list[click.Option]:
    options = [option for option in LISTED[command].params if isinstance(option, click.Option)]
    return [option for option in options if not neutral(command, max(option.opts, key=len))]


@pytest.mark.parametrize(("command", "base"), CASES)
def test_an_option_changes_something_or_is_refused(tmp_path: Path, command: str, base: str) -> None:
    assert list(unnoticed(tmp_path, command, base.split(), options_of(command))) == []


def test_an_option_that_nothing_reads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = click.Option(["--idle"], expose_value=False)
    monkeypatch.setattr(LISTED["explain"], "params", [*LISTED["explain"].params, idle])
    assert list(unnoticed(tmp_path, "explain", ["T2"], options_of("explain"))) == ["--idle"]
