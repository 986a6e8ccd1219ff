"""What greets a user: help, extras, and how results show themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from boundcalc.base import project

ROOT = Path(__file__).parents[2]


# ------------------------------------------------------------------------------------------- installation


def test_packages_carry_what_messages_point_to() -> None:
    import tomllib

    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert data["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["docs"] == "boundcalc/docs"
    assert {"/docs", "/figures"} <= {*data["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    extras = data["project"]["optional-dependencies"]
    assert set(project.EXTRA_OF.values()) <= set(extras)
    named = re.findall(r"docs/([\w-]+\.md)", "".join(p.read_text("utf-8") for p in (ROOT / "boundcalc").rglob("*.py")))
    assert named
    assert all((ROOT / "docs" / name).is_file() for name in named)


# ------------------------------------------------------------------------------------------- results


def test_an_interrupted_grid_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    from boundcalc.cli.sweeping import _watched

    def points() -> Any:
        yield 1
        yield 2
        raise KeyboardInterrupt

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(_watched(points(), 5))
    assert "interrupted: 2 of 5 points are done" in capsys.readouterr().err
