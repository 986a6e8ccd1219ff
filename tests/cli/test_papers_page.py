"""docs/papers.md: every command it names is one, with options that exist, and every page and file it points to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from boundcalc.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`(boundcalc [^`]+)`", PAGE)))


def parsed(line: str) -> None:
    """Reads a command line to its end without running it; raises on a name or option that there is not."""
    words = shlex.split(line)[1:]
    command: click.Command = main
    context = click.Context(main, info_name="boundcalc")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]}")
        command, words = found, words[1:]
    command.make_context("boundcalc", list(words))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_one(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.db").touch()
    parsed(line)


def test_a_command_that_is_none_is_noticed() -> None:
    for line in ("boundcalc latent maximal", "boundcalc latent minimal --colour red", "boundcalc derives"):
        with pytest.raises(click.ClickException):
            parsed(line)


def test_what_it_points_to_is_there() -> None:
    assert len(COMMANDS) > 12
    for name in re.findall(r"\]\(([a-z]+\.md)\)", PAGE):
        assert (ROOT / "docs" / name).exists(), name
    for name in re.findall(r"(?:examples|tests)/[\w/]+\.py", PAGE):
        assert (ROOT / name).exists(), name


def test_every_line_says_whether_it_was_shown() -> None:
    claims = PAGE.split("\n## Every bound")[0]
    rows = [line for line in claims.splitlines() if line.startswith("| ") and "---" not in line and "claim" not in line]
    assert len(rows) >= 28
    for row in rows:
        verdict = row.rstrip(" |").rsplit("|", 1)[-1]
        assert "proved" in verdict or "shown" in verdict, row
