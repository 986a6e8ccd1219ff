"""Twelve models as users write them: each gets a verdict from at most five lines or two commands, within seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.certify.twelve import CASES, HEAD, row, run, shown

pytestmark = pytest.mark.filterwarnings("ignore")
SECONDS = 15
"""Of the processor, beyond loading."""


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "trained"])
@pytest.mark.parametrize("name", CASES)
def test_a_model_gets_what_the_table_says(name: str, quick: bool, tmp_path: Path) -> None:
    got, lines = run(name, tmp_path, quick=quick), CASES[name].lines.splitlines()
    assert len(lines) <= (2 if lines[0].startswith("boundcalc") else 5)
    assert "held-out" in got.has
    assert got.seconds < SECONDS
    assert row(name, got) in shown()
    assert quick or got.verdict.startswith("Error of")


def test_the_table_has_twelve_models() -> None:
    assert shown()[:2] == HEAD
    assert len(shown()) == 2 + len(CASES) == 14
