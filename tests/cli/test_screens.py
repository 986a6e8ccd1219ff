"""What commands print fits its terminal, ends no line in blanks, and has one style of numbers and marks."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from boundcalc.base.rounding import down, near, percent, short, up
from boundcalc.base.table import as_text
from boundcalc.cli import main
from boundcalc.cli._explain import GROUPS

from .conftest import run_line

CLI = Path(__file__).parents[2] / "boundcalc" / "cli"
SCREENS = """
    eval --depth 2
    eval --depth 1 --no-solve --why
    eval --depth 1 --preset gpt2 --bits 16 --no-solve --bound best
    eval --depth 1 --sweep T=8,16 --bound closed
    eval --bound X3 --set L=1000
    eval --depth 4 --C 2 --m 1e5 --bound best --why
    solve --for m --depth 1 --quantity risk
    solve --for n --certify held-out --truth 0.05
    verify gap.json
    explain
    explain statements
    explain certificates
    explain T2
    explain K1
    explain edelman2022
    explain "support set"
    derive --bound K1 --depth 1
    derive --bound zhang2022 --detail full
    norms model.safetensors
    certify model.safetensors --m 1e6
    certify predictions.csv
    plot gap-vs-depth --bound closed -o depth.png
    explore --help
    train conjunction --T 8 --m 16 --steps 2 --certify holdout
    sweep --store runs.db
    latent pairs.csv --value-noise 1 --rkhs-norm 2
    represent "x3 & x5" --T 32
"""
"""A line or more of each command; the files they read are there."""
PIPED = ("explain", "derive", "norms", "latent", "certify")
"""Commands that are also run in a pipe, where tables may be wider; prose is not."""
LINES = [line.strip() for line in SCREENS.strip().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate, a model and its predictions."""
    folder = tmp_path_factory.mktemp("screens")
    (folder / "predictions.csv").write_text("answer,label\n" + "cat,cat\n" * 40 + "dog,cat\n")
    (folder / "pairs.csv").write_text("".join(f"{i / 9},{1 - i / 9},{i / 9}\n" for i in range(10)))
    for line in (
        "eval --depth 1 --no-solve --bound comparison --certificate gap.json",
        'represent "x3 & x5" --T 32 -o model.safetensors',
        "train conjunction --T 8 --m 16 --steps 2 --store runs.db",
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            assert run_line(*shlex.split(line)).exit_code == 0, line
    return folder


def too_wide(text: str, width: int = 80) -> list[str]:
    """Lines that do not fit, apart from those that are mostly one word that cannot be broken."""
    wide = [line for line in text.splitlines() if cell_len(line) > width]
    return [line for line in wide if max(map(len, line.split())) < width // 2]


def padded(text: str) -> list[str]:
    """Lines that end in blanks."""
    return [line for line in text.splitlines() if line != line.rstrip()]


def test_every_command_has_a_screen() -> None:
    assert {line.split()[0] for line in LINES} == set(main.list_commands(click.Context(main)))


@pytest.mark.parametrize("line", LINES)
def test_a_screen_fits_80_columns_and_ends_no_line_in_blanks(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    screens = [run_line(*shlex.split(line))]
    if line.startswith(PIPED):
        monkeypatch.delenv("COLUMNS")
        screens.append(run_line(*shlex.split(line)))
        table = not line.startswith(("explain", "derive")) or line.split()[-1] in ("explain", *GROUPS)
        assert table or too_wide(screens[1].stdout) == []
    for outcome in screens:
        assert outcome.exit_code == 0, outcome.stderr
        assert outcome.stdout
        assert padded(outcome.stdout) == []
    assert too_wide(screens[0].stdout) == []


def test_a_wide_and_a_padded_line_would_be_seen() -> None:
    fits = "x" * 80 + "\n" + "a " * 40
    assert too_wide(fits) == []
    assert too_wide(fits + "\n" + "a " * 41) == ["a " * 41]
    assert too_wide("é" * 30 + " " + "漢" * 26) == ["é" * 30 + " " + "漢" * 26]
    assert padded("a\nb \n") == ["b "]


def formatted(source: str) -> list[int]:
    """Lines with a number that is formatted by hand."""
    specs = (node.format_spec for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FormattedValue))
    parts = [(spec, spec.values[-1]) for spec in specs if isinstance(spec, ast.JoinedStr) and spec.values]
    return [
        spec.lineno
        for spec, last in parts
        if isinstance(last, ast.Constant) and str(last.value)[-1:] in tuple("efgEFG%")
    ]


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_commands_write_every_number_in_one_style(path: Path) -> None:
    assert formatted(path.read_text(encoding="utf-8")) == [], "numbers are written by boundcalc.base.rounding"


def test_a_number_that_is_formatted_by_hand_would_be_seen() -> None:
    assert formatted('x = 1\nf"{x:.3g} {x:>{y}.1%}"') == [2, 2]
    assert formatted('f"{x:>6} {x:{width}} {x} {n:,}"') == []


def test_numbers_have_one_style() -> None:
    """Four digits, plain from 0.0001 to 999,999 and else with one exponent, rounded in the direction of their kind."""
    x = 1234567.8
    assert (up(x), near(x), down(x), short(1.2346e6)) == ("1.235e6", "1.235e6", "1.234e6", "1.2346e6")
    assert (up(2.99901e-5), near(2.99901e-5), down(-0.25)) == ("3.000e-05", "2.999e-05", "-0.2500")
    assert (near(-1.00005, 3), near(0.0), percent(0.2849), percent(0.07001, 3, by=up)) == ("-1.00", "0", "28%", "7.01%")


def test_cells_are_wrapped_and_nothing_is_lost() -> None:
    rows = [("name", "what it says"), ("a", "one two three four five"), ("much longer than it was", "x" * 30)]
    lines = as_text(rows, 50).split("\n")
    assert max(map(len, lines)) <= 50
    assert set(lines.pop(1)) == {"-"}
    assert sorted(" ".join(lines).split()) == sorted(" ".join(map(" ".join, rows)).split())
    assert set(map(len, as_text(rows, 10).split("\n")[1:2])) == {
        10 + 2 + 30
    }  # no word is cut, a column keeps some room
