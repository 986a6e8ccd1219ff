"""`boundcalc represent`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from boundcalc.cli import main


def run(*words: str) -> str:
    outcome = CliRunner().invoke(main, ["represent", *words], prog_name="boundcalc")
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


def test_represent_says_first_what_was_certified() -> None:
    text = run("x3 & ~x7 | x11", "--T", "512")
    assert text.startswith("✓ Certified: sign(f) F >= 1.000 on all 2^512 inputs")
    assert all(word in text for word in ("s 3, T 512", "corners", "W_QK[0]"))
    data = json.loads(run("MAJ(1, 5, 9)", "--T", "10", "--format", "json"))
    assert data["certificate"]["margin"] >= 1
    assert data["support"] == [1, 5, 9]
    page = (Path(__file__).parents[3] / "docs" / "representation.md").read_text().partition("## JSON")[2]
    assert [key for key in data if f"`{key}`" not in page] == []
