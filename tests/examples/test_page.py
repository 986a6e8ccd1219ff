"""docs/examples.md lists every script and commands that are understood."""

from __future__ import annotations

import re

from tests.docs.commands import ROOT
from tests.examples.scripts import EXAMPLES

PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
MODULES = {"common", "thresholds", "example_script"}
"""Shared by scripts."""


def test_every_script_is_on_the_page() -> None:
    scripts = {path.name for path in EXAMPLES.rglob("*.py") if path.stem not in MODULES}
    assert scripts <= {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.py)`", PAGE)}
