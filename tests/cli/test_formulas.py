"""`boundcalc derive`."""

from __future__ import annotations

import shutil
import subprocess
import sys

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
