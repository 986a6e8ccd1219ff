"""Twelve models as users write them: each gets a verdict from at most five lines or two commands, within seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.certify.twelve import CASES, HEAD, Got, row, run, shown

pytestmark = pytest.mark.filterwarnings("ignore")
SECONDS = 15
"""Of the processor, beyond loading."""


def held(name: str, got: Got) -> None:
    lines = CASES[name].lines.splitlines()
    assert len(lines) <= (2 if lines[0].startswith("boundcalc") else 5)
    assert "held-out" in got.has
    assert got.seconds < SECONDS
    assert row(name, got) in shown()


@pytest.mark.parametrize("name", CASES)
def test_a_model_gets_what_the_table_says(name: str, tmp_path: Path) -> None:
    held(name, run(name, tmp_path, quick=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_trained_model_gets_a_verdict(name: str, tmp_path: Path) -> None:
    got = run(name, tmp_path)
    held(name, got)
    assert got.verdict.startswith("Error of")


def test_the_table_has_twelve_models() -> None:
    assert shown()[:2] == HEAD
    assert len(shown()) == 2 + len(CASES) == 14
