"""`boundcalc represent`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc.cli import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="boundcalc")


def test_represent_says_first_what_was_certified() -> None:
    outcome = run("represent", "x3 & ~x7 | x11", "--T", "512")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith("Certified: sign(f) F >= 1 on all 2^512 inputs")
    for text in ("general; s 3", "corners", "W_QK[0]"):
        assert text in outcome.stdout


def test_short_sequences_are_tried_in_full() -> None:
    data = json.loads(run("represent", "MAJ(1, 5, 9)", "--T", "10", "--format", "json").stdout)
    assert data["tried"]["inputs"] == 1024
    assert data["tried"]["least"] >= 1 - 1e-9
    assert data["certificate"]["margin"] >= 1
    assert data["structure"] == "monotone symmetric"
    assert data["support"] == [1, 5, 9]
    page = (Path(__file__).parents[3] / "docs" / "representation.md").read_text().partition("## JSON")[2]
    assert [key for key in data if f"`{key}`" not in page] == []


def test_a_truth_table_and_a_named_construction(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    target = tmp_path / "parity.safetensors"
    outcome = run("represent", "01101001", "--T", "9", "--construction", "mean", "--out", str(target))
    assert outcome.exit_code == 0, outcome.stderr
    assert "mean; bits in one coordinate" in outcome.stdout
    with safetensors.safe_open(str(target), framework="numpy") as file:
        about = json.loads(file.metadata()["represents"])
        assert np.isfinite(file.get_tensor("W_V[0]")).all()
    assert about["support"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x3 &", "--T", "8"), "cannot read the expression 'x3 &'"),
        (("x3 & x9", "--T", "8"), "bit x9 is out of range: with T = 8 bits are x0 to x7; choose T of at least 10"),
        (("x3 | ~x3", "--T", "8"), "constant (1 for every input)"),
        ((" | ".join(f"x{i} & x{i + 1}" for i in range(0, 12, 2)), "--T", "20"), "s = 12 is too large"),
        ((" | ".join(f"x{i} & x{i + 1}" for i in range(0, 20, 2)), "--T", "20"), "at most 16 variables"),
        (("PARITY(0..1999)", "--T", "4096"), "at most s = 1024 is offered"),
        (("x3 & ~x4", "--T", "8", "--construction", "mean"), "does not fit"),
        (("011", "--T", "8"), "truth table"),
        (("x3", "--T", "8", "--out", "weights.txt"), ".safetensors"),
        (("x3", "--T", "10000000"), "at most 2^20"),
    ],
)
def test_errors_of_represent_are_one_line(words: tuple[str, ...], says: str) -> None:
    outcome = run("represent", *words)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1
    assert says in outcome.stderr
