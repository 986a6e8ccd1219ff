"""What greets a user: help, extras, and how results show themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from boundcalc import Setting, __version__, compare, evaluate
from boundcalc.base import project
from boundcalc.cli import COMMANDS, GROUPS, lazy, main
from boundcalc.setting import PRESETS

ROOT = Path(__file__).parents[2]


def run(*words: str) -> Any:
    return CliRunner().invoke(main, list(words))


# ------------------------------------------------------------------------------------------- help


def test_every_command_is_in_one_group_of_the_help() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    text = run("--help").stdout
    assert all(f"{title}:" in text for title in GROUPS)


def test_versions() -> None:
    assert run("-V").stdout == run("--version").stdout == f"boundcalc {__version__}\n"


@pytest.mark.parametrize("group", ["figures", "tasks", "sweeps", "families"])
def test_what_commands_take_is_listed(group: str) -> None:
    found = json.loads(run("list", group, "--format", "json").stdout)
    assert len(found) >= 5
    assert {entry["group"] for entry in found} == {group}


# ------------------------------------------------------------------------------------------- installation


@pytest.mark.parametrize(
    ("origin", "typed"),
    [("/a/checkout", "pip install '/a/checkout[plot]'"), ("", "pip install 'boundcalc[plot]'")],
)
def test_extras_are_installed_from_where_the_library_came(
    origin: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "origin", lambda: origin)
    assert project.install("plot") == typed


def test_a_missing_library_is_answered_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(project, "origin", lambda: "")
    for library, extra in (("matplotlib", "plot"), ("torch", "train"), ("joblib", "train")):
        with pytest.raises(SystemExit) as caught:
            lazy._fail(ModuleNotFoundError(f"No module named {library!r}", name=f"{library}.inner"))
        assert caught.value.code == lazy.FAILURE
        assert capsys.readouterr().err == (
            f"boundcalc: this needs {library}, which is not installed: pip install 'boundcalc[{extra}]'\n"
        )


def test_packages_carry_what_messages_point_to() -> None:
    import tomllib

    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert data["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["docs"] == "boundcalc/docs"
    assert {"/docs", "/figures"} <= {*data["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    extras = data["project"]["optional-dependencies"]
    assert set(project.EXTRAS) <= set(extras)
    named = re.findall(r"docs/([\w-]+\.md)", "".join(p.read_text("utf-8") for p in (ROOT / "boundcalc").rglob("*.py")))
    assert named
    assert all((ROOT / "docs" / name).is_file() for name in named)


def test_the_library_cites_its_version() -> None:
    from boundcalc.base.sources import HERE

    assert f"Version {__version__}" in HERE.bibtex
    assert "author = {{boundcalc authors}}" in HERE.bibtex


# ------------------------------------------------------------------------------------------- results


def test_bounds_show_themselves_in_one_line_and_comparisons_as_tables() -> None:
    setting = Setting.of(depth=1, n_train=10**7)
    found = compare(setting)
    assert isinstance(found, list)
    assert str(found).count("\n") + 1 == len(found) + 2 <= 10
    for value in [*found, evaluate(setting)]:
        assert "\n" not in str(value)
        assert len(str(value)) < 120
    assert "gap <= 0.0" in str(evaluate(setting))
    html = found._repr_html_()
    assert html.count("<tr>") == len(found) + 1
    refused = compare(Setting.of("gpt2", depth=1, d=8, heads=2), ["zhang2022"])
    assert "refused" in str(refused)
    assert "refused" in str(refused[0])
    trivial = compare(Setting.of(C=10.0, n_train=100), ["best"])[0]
    assert "gap trivial" in str(trivial)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_compares_in_ten_lines(preset: str) -> None:
    text = repr(compare(Setting.of(preset, depth=1, d=8, heads=2), ["closed", "published"]))
    assert text.count("\n") == 3
    assert max(map(len, text.splitlines())) < 120


def test_an_interrupted_grid_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    from boundcalc.cli.sweeping import _watched

    def points() -> Any:
        yield 1
        yield 2
        raise KeyboardInterrupt

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(_watched(points(), 5))
    assert "interrupted: 2 of 5 points are done" in capsys.readouterr().err
