"""axe-core, the rules of accessibility that browsers' tools use, run inside a page; tests skip where it is not
installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.lab.explore.browser import Browser

GRAVE = ("serious", "critical")
ALL = ("minor", "moderate", *GRAVE)


def _code() -> str:
    spec = importlib.util.find_spec("axe_core_python")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("no axe-core: pip install axe-core-python (in the extra `test`)")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


def findings(browser: Browser, *, impacts: tuple[str, ...] = GRAVE, without: str = "iframe") -> list[str]:
    """What every rule finds in the page as it stands: `impact rule: where`; frames are pages of their own."""
    browser.run(f"if (!window.axe) {{ {_code()} }}")
    report: dict[str, Any] = browser.run(
        "return axe.run({exclude: [[arguments[0]]]}, {iframes: false, preload: false, resultTypes: ['violations']})",
        without,
    )
    return [
        f"{rule['impact']} {rule['id']}: {' '.join(map(str, node['target']))}"
        for rule in report["violations"]
        if rule["impact"] in impacts
        for node in rule["nodes"]
    ]
