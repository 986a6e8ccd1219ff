"""`boundcalc derive`."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boundcalc.formulas.theorems import edelman2022

VALUES = {"C": 1.5, "T": 512, "m": 10**9, "depth": 3, "d": 64, "heads": 2, "gamma": 1, "delta": 0.05}


def run(*words: str, code: int = 0) -> str:
    """Stdout of a command, or its one line of stderr when it is to fail."""
    done = subprocess.run([sys.executable, "-m", "boundcalc", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
    return done.stderr if code else done.stdout


def test_symbolic_depth_and_length() -> None:
    text = run("derive", "--depth", "D", "--T", "T")
    assert "G = depth - 1 if r = 1" in text
    assert "chaining in one line  [G1]" in text


def test_numbers_are_put_in() -> None:
    assert "C**" not in run("derive", "--set", "C=2", "--detail", "formula")
    assert run("derive", "--set", "C=2", "--expand").startswith("gap <= ")


def test_whole_numbers_are_exact() -> None:
    text = run("derive", "--bound", "edelman2022_head", "--T", "1e30", "--detail", "brief")
    assert "log(2e30*m + 1)" in text
    assert run("derive", "--bound", "edelman2022_head", "--T", "10^30", "--detail", "brief") == text


def test_text_has_no_endless_zeros_and_says_nothing_twice() -> None:
    text = run("derive", "--preset", "bert")
    assert "S_0 = 10**20*C**(14/3)" in text
    assert "00000000" not in text
    for line, following in itertools.pairwise(text.splitlines()):
        assert line.strip() != following.strip()


def test_files(tmp_path: Path) -> None:
    out = run("derive", "--format", "latex", "--detail", "brief", "--out", str(tmp_path)).splitlines()
    assert {Path(line).name for line in out} == {"edelman2022.tex", "boundcalc-macros.tex", "boundcalc.bib"}


def test_code_runs_elsewhere() -> None:
    values = [VALUES[symbol.name] for symbol in edelman2022.gap.inputs]
    want = edelman2022.gap.value(**VALUES)
    for language in ("python", "numpy"):
        program = run("derive", "--format", language) + f"\nprint(float(gap(*{values!r})))"
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert float(out) == pytest.approx(want, rel=1e-12)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: exported JavaScript was not run")
def test_javascript_runs_in_node() -> None:
    program = run("derive", "--format", "javascript", "--depth", "3", "--heads", "2")
    call = "console.log(gap(1.5, 512, 1e9, 64, 1, 0.05));"
    out = subprocess.run(["node", "-e", program + call], capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(edelman2022.gap.value(**VALUES), rel=1e-12)


def test_a_formula_alone_a_preset_and_a_citation() -> None:
    assert "def gap(C, T, m, gamma, delta)" in run("derive", "--preset", "bert", "--format", "numpy", "--depth", "12")
    assert run("derive", "--detail", "formula", "--format", "latex").startswith(r"\begin{aligned}")
    assert run("derive", "--bound", "trauger2024", "--format", "bibtex").startswith("@")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("derive", "--bound", "edelman2020"), "did you mean 'edelman2022'"),
        (("derive", "--T", "N"), "or the letter T"),
        (("derive", "--T", "0"), "whole number of at least 1"),
        (("derive", "--T", "nan"), "whole number of at least 1"),
        (("derive", "--T", "2", "--set", "T=3"), "--T and --set T=... give the same size"),
        (("derive", "--set", "=3"), "needs NAME=VALUE"),
        (("derive", "--set", "C=inf"), "needs NAME=VALUE"),
        (("derive", "--expand", "--out", "somewhere"), "a formula alone is printed"),
        (("derive", "--set", "Q=3"), "no symbol 'Q'"),
        (("derive", "--set", "K"), "needs NAME=VALUE"),
        (("derive", "--bound", "zhang2022", "--T", "5"), "gap does not depend on T: gap has C, m"),
        (
            ("derive", "--bound", "zhang2022", "--preset", "bert"),
            "eval --preset bert --bound zhang2022` gives a number",
        ),
        (("derive", "--bound", "X3", "--preset", "bert"), "not stated for preset bert"),
        (("derive", "--bound", "best"), "gives numbers, not a formula"),
        (("derive", "--set", "CC=3"), "no symbol 'CC' (did you mean 'C'?): gap has C, T, m, depth"),
        (("derive", "--set", "delta=2"), "delta must be above 0 and below 1, got 2"),
        (
            ("derive", "--bound", "X3", "--set", "r=0.4"),
            "smoothness must be above 0.5 and at most 1.5",
        ),
        (("derive", "--bound", "edelman2022_head", "--quantity", "gap"), "needs one of covering_number"),
        (("derive", "--preset", "brt"), "did you mean 'bert'"),
        (("derive", "--preset", "bert", "--fragment"), "--fragment is for --format latex"),
    ],
)
def test_refusals_say_what_to_type(words: tuple[str, ...], says: str) -> None:
    assert says in run(*words, code=2)
