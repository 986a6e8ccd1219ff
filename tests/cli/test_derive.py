"""`boundcalc derive`."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from boundcalc.theorems import edelman2022

from .conftest import printed

VALUES = {"C": 1.5, "T": 512, "m": 10**9, "depth": 3, "d": 64, "heads": 2, "gamma": 1, "delta": 0.05}


def test_a_theorem_is_brief_by_default_and_fits_the_terminal() -> None:
    text = printed("derive")
    assert "G = D - 1 if r = 1" in text
    assert "7. Chaining in one line (Lemmas G1, G2)" in text
    assert "with probability at least 1-δ over the sample" in " ".join(text.split())
    assert len(text.splitlines()) < 60
    assert len(printed("derive --detail full")) > 5 * len(text)


def test_numbers_are_put_in() -> None:
    assert "C^2" not in printed("derive --set C=2 --detail formula")
    assert "G_3 = " in printed("derive --bound K1 --depth 3")


def test_code_runs_elsewhere() -> None:
    values = [VALUES[symbol.name] for symbol in edelman2022.gap.inputs]
    want = edelman2022.gap.value(**VALUES)
    program = printed("derive --format python") + f"\nprint(float(gap(*{values!r})))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(want, rel=1e-12)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: exported JavaScript was not run")
def test_javascript_runs_in_node() -> None:
    program = printed("derive --format javascript --depth 3 --heads 2")
    call = "console.log(gap(1.5, 512, 1e9, 64, 1, 0.05));"
    out = subprocess.run(["node", "-e", program + call], capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(edelman2022.gap.value(**VALUES), rel=1e-12)


def test_a_formula_alone_and_a_citation() -> None:
    assert printed("derive --detail formula --format latex").startswith(r"\begin{aligned}")
    assert printed("derive --bound trauger2024 --format bibtex").startswith("@")
