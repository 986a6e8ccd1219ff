"""The page of commands in docs/examples.md: one for every figure, each a command that is understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boundcalc.lab.plot.registry import FIGURES
from tests.docs.commands import parsed

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
COMMANDS = [line for line in re.findall(r"^\| `(boundcalc [^`]+)` \|", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line: str) -> None:
    options = parsed(line)
    assert options["what"] in FIGURES
    trials = FIGURES[str(options["what"])].trials
    assert (options["store"] is not None) or trials != "needs"


def test_there_is_a_command_for_every_figure() -> None:
    assert {str(parsed(line)["what"]) for line in COMMANDS} == set(FIGURES)


def test_a_command_with_an_unknown_option_would_be_seen() -> None:
    with pytest.raises(Exception, match="valeus"):
        parsed("boundcalc plot gap-vs-m --valeus 3")


def test_every_script_is_on_the_page() -> None:
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", PAGE)) == scripts
