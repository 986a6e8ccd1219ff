"""How many commands and options there are, and that every option of a bound's commands changes what comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.cli._setting import ENTRIES

MOST_COMMANDS, MOST_OPTIONS = 13, 175
"""They may fall."""

BASE = (
    "eval --preset bert --depth 1 --d 8 --heads 2 --T 8 --m 1e18 --C 0.5 --set eps=0.1 --bound closed --no-solve "
    "--format json"
)
VALUES = {
    "causal": True,
    **{"depth": "2", "T": "9", "m": "1e11", "C": "1.25", "d": "24", "heads": "4", "style": "pre", "bits": "16"},
    **{"gamma": "0.3", "delta": "0.9", "train_error": "0.3", "lipschitz": "3", "d_head": "3", "d_ff": "5"},
    **{"kv_heads": "1", "activation": "leaky_relu", "normaliser": "linear", "temperature": "0.5", "vocabulary": "9"},
    **{"normalisation": "ball", "eps": "0.5", "variance_floor": "0.3", "residual": False, "bias": False, "gated": True},
    **{"rope": True, "own_row": "3", "positions": "fixed", "embedding_norm": False, "pooler": False},
    **{"readout": "mean", "classes": "3"},
}
APART = {
    "d_patch": "--set vocabulary=0",
    "input_radius": "--set vocabulary=0",
    "position_radius": "--set positions=fixed",
    "normaliser_c": "--set normaliser=custom --set normaliser_mu=1 --set normaliser_c=1",
    "normaliser_mu": "--set normaliser=custom --set normaliser_c=1 --set normaliser_mu=1",
}
"""Fields that need another first."""


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield name, command


def printed(line: str) -> tuple[int, object]:
    result = CliRunner().invoke(main, line.split())
    if result.exit_code:
        return result.exit_code, result.output
    found = json.loads(result.stdout)
    return 0, [{key: each[key] for key in ("log10_gap", "log10_risk")} for each in found["results"]]


def test_commands_and_options_do_not_grow() -> None:
    assert len(main.list_commands(click.Context(main))) <= MOST_COMMANDS
    assert sum(isinstance(p, click.Option) for _, each in commands() for p in each.params) <= MOST_OPTIONS


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
def test_every_field_of_a_setting_changes_a_bound_or_is_refused(name: str) -> None:
    entry = next(each for each in ENTRIES if each.name == name)
    base = f"{BASE} {APART.get(name, '')}"
    line = base.split()
    value = VALUES.get(name, "0.7" if name != "d_patch" else "5")
    if entry.option in line:
        line[line.index(entry.option) + 1] = value
    elif any(word.startswith(f"{name}=") for word in line):
        line = [f"{name}=2" if word.startswith(f"{name}=") else word for word in line]
    else:
        line += [entry.option, value] if entry.spec.help else ["--set", f"{name}={value}"]
    before = printed(base)
    assert before[0] == 0, before
    after = printed(" ".join(line))
    assert (after != before) is (name != "causal"), after


@pytest.mark.parametrize(
    "line",
    [
        "train conjunction --T 16 --set task.T=8",
        "train conjunction --set train.lr=0.1 --set train.lr=0.2",
        "train conjunction --set train.lr=NaN",
        "eval --bound X3 --set L=512 --set smoothness=1 --set smoothness=2",
        "eval --set causal=yes --set causal=no",
        "eval --depth 2 --set depth=3",
        "derive --depth 2 --set depth=3",
    ],
)
def test_what_is_said_twice_is_refused(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
