"""`boundcalc represent`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from boundcalc.cli import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="boundcalc")


def test_represent_says_first_what_was_certified() -> None:
    outcome = run("represent", "x3 & ~x7 | x11", "--T", "512")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith("✓ Certified: sign(f) F >= 1.000 on all 2^512 inputs")
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
